// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

func addDefaultingFuncs(scheme *runtime.Scheme) error {
	return RegisterDefaults(scheme)
}

// SetDefaults_SandboxSpec fills what the spec leaves out: a Sandbox runs, and outlives its shutdown time as an object.
func SetDefaults_SandboxSpec(spec *SandboxSpec) {
	if spec.OperatingMode == "" {
		spec.OperatingMode = SandboxOperatingModeRunning
	}
	if spec.ShutdownPolicy == nil {
		spec.ShutdownPolicy = ptr.To(ShutdownPolicyRetain)
	}
}
