// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"k8s.io/apimachinery/pkg/runtime"
)

// addDefaultingFuncs registers the defaults that the +default markers of this package and of the core types inside it state.
// Of a PodSpec only those are filled that a structural schema fills (a port's protocol, say), never what a Pod gets when it is
// stored: the template stays as its author wrote it, and its hash with it.
func addDefaultingFuncs(scheme *runtime.Scheme) error {
	return RegisterDefaults(scheme)
}
