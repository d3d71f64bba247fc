// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"k8s.io/apimachinery/pkg/runtime"
)

// addDefaultingFuncs registers the defaults that the +default markers of this package, of Sandbox's and of the core types inside
// them state: those of a structural schema, and no others.
func addDefaultingFuncs(scheme *runtime.Scheme) error {
	return RegisterDefaults(scheme)
}
