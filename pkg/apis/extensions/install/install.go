// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package install registers every version of the extensions.agents.x-k8s.io API group with a scheme.
package install

import (
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
)

// Install registers the internal and the served versions of the group and their priority.
func Install(scheme *runtime.Scheme) {
	utilruntime.Must(extensions.AddToScheme(scheme))
	utilruntime.Must(v1beta1.AddToScheme(scheme))
	utilruntime.Must(scheme.SetVersionPriority(v1beta1.SchemeGroupVersion))
}
