// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
)

// +genclient
// +genclient:noStatus
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SandboxTemplate describes Sandboxes that warm pools and claims make, and what claims may change in them. All of them share one
// NetworkPolicy, which is kept for the template unless it says otherwise.
type SandboxTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero" protobuf:"bytes,1,opt,name=metadata"`

	// spec is what the template says.
	// +required
	Spec SandboxTemplateSpec `json:"spec" protobuf:"bytes,2,opt,name=spec"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SandboxTemplateList is a list of SandboxTemplates.
type SandboxTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// items are the SandboxTemplates.
	Items []SandboxTemplate `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// NetworkPolicyManagement says who looks after the NetworkPolicy of a template.
// +enum
type NetworkPolicyManagement string

const (
	// NetworkPolicyManagementManaged means that one NetworkPolicy for all Sandboxes of the template is kept by the controller.
	NetworkPolicyManagementManaged NetworkPolicyManagement = "Managed"
	// NetworkPolicyManagementUnmanaged means that the controller keeps none.
	NetworkPolicyManagementUnmanaged NetworkPolicyManagement = "Unmanaged"
)

// EnvVarsInjectionPolicy says what the environment variables of a claim may do.
// +enum
type EnvVarsInjectionPolicy string

const (
	// EnvVarsInjectionPolicyAllowed lets claims add environment variables that the template does not set.
	EnvVarsInjectionPolicyAllowed EnvVarsInjectionPolicy = "Allowed"
	// EnvVarsInjectionPolicyOverrides lets claims add environment variables and replace those of the template.
	EnvVarsInjectionPolicyOverrides EnvVarsInjectionPolicy = "Overrides"
	// EnvVarsInjectionPolicyDisallowed refuses claims with environment variables.
	EnvVarsInjectionPolicyDisallowed EnvVarsInjectionPolicy = "Disallowed"
)

// VolumeClaimTemplatesPolicy says what the volume claim templates of a claim may do.
// +enum
type VolumeClaimTemplatesPolicy string

const (
	// VolumeClaimTemplatesPolicyDisallowed refuses claims with volume claim templates.
	VolumeClaimTemplatesPolicyDisallowed VolumeClaimTemplatesPolicy = "Disallowed"
	// VolumeClaimTemplatesPolicyAllowed lets claims add volumes of other names than the template's.
	VolumeClaimTemplatesPolicyAllowed VolumeClaimTemplatesPolicy = "Allowed"
	// VolumeClaimTemplatesPolicyOverrides lets claims add volumes and replace those of the template.
	VolumeClaimTemplatesPolicyOverrides VolumeClaimTemplatesPolicy = "Overrides"
)

// SandboxTemplateSpec is what a SandboxTemplate says.
type SandboxTemplateSpec struct {
	// SandboxBlueprint is what the Sandboxes run.
	agentsv1beta1.SandboxBlueprint `json:",inline" protobuf:"bytes,1,opt,name=sandboxBlueprint"`

	// networkPolicy holds the rules of the NetworkPolicy that is shared by all Sandboxes of the template. A direction without rules is
	// denied. Unset means the secure default: traffic in from the sandbox router only; traffic out to public addresses only, which
	// leaves out the cluster's own DNS. Ignored when networkPolicyManagement is Unmanaged.
	// +optional
	NetworkPolicy *NetworkPolicySpec `json:"networkPolicy,omitempty" protobuf:"bytes,2,opt,name=networkPolicy"`

	// networkPolicyManagement says who looks after the NetworkPolicy. Managed: the controller keeps one, named
	// <template name>-network-policy. Unmanaged: it keeps none, and removes the one it made. Defaults to Managed.
	// +optional
	// +default="Managed"
	NetworkPolicyManagement NetworkPolicyManagement `json:"networkPolicyManagement,omitempty" protobuf:"bytes,3,opt,name=networkPolicyManagement,casttype=NetworkPolicyManagement"`

	// envVarsInjectionPolicy says what the env of a claim may do. Disallowed: nothing, such a claim is refused. Allowed: add variables
	// that the template does not set. Overrides: also replace the template's. Defaults to Disallowed.
	// +optional
	// +default="Disallowed"
	EnvVarsInjectionPolicy EnvVarsInjectionPolicy `json:"envVarsInjectionPolicy,omitempty" protobuf:"bytes,4,opt,name=envVarsInjectionPolicy,casttype=EnvVarsInjectionPolicy"`

	// volumeClaimTemplatesPolicy says what the volumeClaimTemplates of a claim may do. Disallowed: nothing, such a claim is refused.
	// Allowed: add volumes of other names. Overrides: also replace the template's. Defaults to Disallowed.
	// +optional
	// +default="Disallowed"
	VolumeClaimTemplatesPolicy VolumeClaimTemplatesPolicy `json:"volumeClaimTemplatesPolicy,omitempty" protobuf:"bytes,5,opt,name=volumeClaimTemplatesPolicy,casttype=VolumeClaimTemplatesPolicy"`
}

// NetworkPolicySpec holds the rules of the NetworkPolicy of a template. It has always both policy types, so no rules for a direction
// deny it.
type NetworkPolicySpec struct {
	// ingress are the rules for traffic to the Sandboxes. None means that none is let in.
	// +optional
	// +listType=atomic
	Ingress []networkingv1.NetworkPolicyIngressRule `json:"ingress,omitempty" protobuf:"bytes,1,rep,name=ingress"`

	// egress are the rules for traffic from the Sandboxes. None means that none is let out.
	// +optional
	// +listType=atomic
	Egress []networkingv1.NetworkPolicyEgressRule `json:"egress,omitempty" protobuf:"bytes,2,rep,name=egress"`
}
