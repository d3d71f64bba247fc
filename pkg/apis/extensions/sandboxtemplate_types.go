// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package extensions

import (
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SandboxTemplate describes Sandboxes that warm pools and claims make.
type SandboxTemplate struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Spec SandboxTemplateSpec
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SandboxTemplateList is a list of SandboxTemplates.
type SandboxTemplateList struct {
	metav1.TypeMeta
	metav1.ListMeta

	Items []SandboxTemplate
}

// NetworkPolicyManagement says who looks after the NetworkPolicy of a template.
type NetworkPolicyManagement string

// The managements of a NetworkPolicy.
const (
	NetworkPolicyManagementManaged   NetworkPolicyManagement = "Managed"
	NetworkPolicyManagementUnmanaged NetworkPolicyManagement = "Unmanaged"
)

// EnvVarsInjectionPolicy says what the environment variables of a claim may do.
type EnvVarsInjectionPolicy string

// The policies for environment variables.
const (
	EnvVarsInjectionPolicyAllowed    EnvVarsInjectionPolicy = "Allowed"
	EnvVarsInjectionPolicyOverrides  EnvVarsInjectionPolicy = "Overrides"
	EnvVarsInjectionPolicyDisallowed EnvVarsInjectionPolicy = "Disallowed"
)

// VolumeClaimTemplatesPolicy says what the volume claim templates of a claim may do.
type VolumeClaimTemplatesPolicy string

// The policies for volume claim templates.
const (
	VolumeClaimTemplatesPolicyDisallowed VolumeClaimTemplatesPolicy = "Disallowed"
	VolumeClaimTemplatesPolicyAllowed    VolumeClaimTemplatesPolicy = "Allowed"
	VolumeClaimTemplatesPolicyOverrides  VolumeClaimTemplatesPolicy = "Overrides"
)

// SandboxTemplateSpec is what a SandboxTemplate says.
type SandboxTemplateSpec struct {
	agents.SandboxBlueprint
	NetworkPolicy              *NetworkPolicySpec
	NetworkPolicyManagement    NetworkPolicyManagement
	EnvVarsInjectionPolicy     EnvVarsInjectionPolicy
	VolumeClaimTemplatesPolicy VolumeClaimTemplatesPolicy
}

// NetworkPolicySpec holds the rules of the NetworkPolicy of a template.
type NetworkPolicySpec struct {
	Ingress []networkingv1.NetworkPolicyIngressRule
	Egress  []networkingv1.NetworkPolicyEgressRule
}
