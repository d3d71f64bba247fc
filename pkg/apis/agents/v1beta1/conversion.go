// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"fmt"

	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
)

// The conversions below are the generated ones under the names that the generator looks for in other packages: templates and claims hold
// these types, and it finds only what is written by hand.

// Convert_v1beta1_SandboxBlueprint_To_agents_SandboxBlueprint converts a blueprint to its internal form.
func Convert_v1beta1_SandboxBlueprint_To_agents_SandboxBlueprint(in *SandboxBlueprint, out *agents.SandboxBlueprint, s conversion.Scope) error {
	return autoConvert_v1beta1_SandboxBlueprint_To_agents_SandboxBlueprint(in, out, s)
}

// Convert_agents_SandboxBlueprint_To_v1beta1_SandboxBlueprint converts a blueprint from its internal form.
func Convert_agents_SandboxBlueprint_To_v1beta1_SandboxBlueprint(in *agents.SandboxBlueprint, out *SandboxBlueprint, s conversion.Scope) error {
	return autoConvert_agents_SandboxBlueprint_To_v1beta1_SandboxBlueprint(in, out, s)
}

// Convert_v1beta1_PodMetadata_To_agents_PodMetadata converts a Pod's metadata to its internal form.
func Convert_v1beta1_PodMetadata_To_agents_PodMetadata(in *PodMetadata, out *agents.PodMetadata, s conversion.Scope) error {
	return autoConvert_v1beta1_PodMetadata_To_agents_PodMetadata(in, out, s)
}

// Convert_agents_PodMetadata_To_v1beta1_PodMetadata converts a Pod's metadata from its internal form.
func Convert_agents_PodMetadata_To_v1beta1_PodMetadata(in *agents.PodMetadata, out *PodMetadata, s conversion.Scope) error {
	return autoConvert_agents_PodMetadata_To_v1beta1_PodMetadata(in, out, s)
}

// addFieldLabelConversions names the fields that a field selector may use. Without it every selector on this version is
// refused, metadata.name included.
func addFieldLabelConversions(scheme *runtime.Scheme) error {
	return scheme.AddFieldLabelConversionFunc(SchemeGroupVersion.WithKind("Sandbox"), func(label, value string) (string, string, error) {
		switch label {
		case "metadata.name", "metadata.namespace":
			return label, value, nil
		default:
			return "", "", fmt.Errorf("field label not supported: %s", label)
		}
	})
}
