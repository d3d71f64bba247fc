// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
)

// +genclient
// +genclient:method=Bind,verb=create,subresource=bind,input=SandboxClaimBind,result=SandboxClaim
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SandboxClaim asks for one Sandbox. If its pool has a ready member, the claim gets it within the request that creates the claim, and
// the response says so; otherwise a Sandbox is made for it.
type SandboxClaim struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The name also names the Sandbox if one is made for the claim; a member of a pool
	// keeps its own name.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero" protobuf:"bytes,1,opt,name=metadata"`

	// spec is the desired state of the claim.
	// +required
	Spec SandboxClaimSpec `json:"spec" protobuf:"bytes,2,opt,name=spec"`

	// status is what was last observed of the claim. It is written when the claim is bound and by the controller, and read-only to
	// everybody else.
	// +optional
	Status SandboxClaimStatus `json:"status,omitempty,omitzero" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SandboxClaimList is a list of SandboxClaims.
type SandboxClaimList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// items are the SandboxClaims.
	Items []SandboxClaim `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SandboxClaimBind asks that a claim which waits be given a ready member of its pool now. It is the body of the bind subresource, which
// is the controller's; the answer is the claim, bound or, if there was nothing to give, as it was.
type SandboxClaimBind struct {
	metav1.TypeMeta `json:",inline"`
	// metadata may name the claim; a name other than that in the path is refused.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero" protobuf:"bytes,1,opt,name=metadata"`

	// preconditions must hold of the claim, or the request fails with 409 Conflict.
	// +optional
	Preconditions *agentsv1beta1.Preconditions `json:"preconditions,omitempty" protobuf:"bytes,2,opt,name=preconditions"`
}

// ClaimShutdownPolicy says what becomes of a claim when it expires.
// +enum
type ClaimShutdownPolicy string

const (
	// ClaimShutdownPolicyDelete deletes the claim, and its Sandbox after it.
	ClaimShutdownPolicyDelete ClaimShutdownPolicy = "Delete"
	// ClaimShutdownPolicyDeleteForeground deletes the claim, which stays visible until its Sandbox is gone.
	ClaimShutdownPolicyDeleteForeground ClaimShutdownPolicy = "DeleteForeground"
	// ClaimShutdownPolicyRetain keeps the claim and deletes its Sandbox.
	ClaimShutdownPolicyRetain ClaimShutdownPolicy = "Retain"
)

// SandboxClaimSpec is the desired state of a SandboxClaim.
type SandboxClaimSpec struct {
	// warmPoolRef names the pool to take a Sandbox from. The pool also says which template a Sandbox is made from if it has no member
	// to give. Immutable once the claim has a Sandbox.
	// +required
	WarmPoolRef SandboxWarmPoolRef `json:"warmPoolRef" protobuf:"bytes,1,opt,name=warmPoolRef"`

	// lifecycle says when the claim expires, and what becomes of it then. Unset means never. It may be changed at any time.
	// +optional
	Lifecycle *Lifecycle `json:"lifecycle,omitempty" protobuf:"bytes,2,opt,name=lifecycle"`

	// additionalPodMetadata holds labels and annotations for the Pod, beside those of the template. Labels need a prefix from the list
	// that the cluster's operator allows (sandbox.users.io if he said nothing). What the template sets cannot be changed.
	// +optional
	AdditionalPodMetadata agentsv1beta1.PodMetadata `json:"additionalPodMetadata,omitempty,omitzero" protobuf:"bytes,3,opt,name=additionalPodMetadata"`

	// env are environment variables for the Sandbox, as far as the envVarsInjectionPolicy of the template allows them. A claim with env is
	// always started cold. No effect once the claim has a Sandbox.
	// +optional
	// +listType=atomic
	Env []EnvVar `json:"env,omitempty" protobuf:"bytes,4,rep,name=env"`

	// volumeClaimTemplates are persistent volumes for the Sandbox, as far as the volumeClaimTemplatesPolicy of the template allows them. A
	// claim with volumeClaimTemplates is always started cold. No effect once the claim has a Sandbox.
	// +optional
	// +listType=atomic
	VolumeClaimTemplates []agentsv1beta1.PersistentVolumeClaimTemplate `json:"volumeClaimTemplates,omitempty" protobuf:"bytes,5,rep,name=volumeClaimTemplates"`
}

// SandboxWarmPoolRef names a SandboxWarmPool in the same namespace.
type SandboxWarmPoolRef struct {
	// name is the name of the SandboxWarmPool.
	// +required
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
}

// Lifecycle says when a claim expires, and what becomes of it then.
type Lifecycle struct {
	// shutdownTime is the moment, as an RFC 3339 date-time, at which the claim expires. Unset means that time alone does not end it.
	// +optional
	ShutdownTime *metav1.Time `json:"shutdownTime,omitempty" protobuf:"bytes,1,opt,name=shutdownTime"`

	// ttlSecondsAfterFinished is the number of seconds after which the claim expires when its Sandbox has finished, that is when its Pod
	// ended by itself. 0 means at once. Unset means that finishing does not end it.
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty" protobuf:"varint,2,opt,name=ttlSecondsAfterFinished"`

	// shutdownPolicy says what becomes of the claim when it expires. Retain keeps it and deletes its Sandbox, volumes included. Delete
	// removes both. DeleteForeground does so too, and the claim stays visible until its Sandbox is gone. Defaults to Retain.
	// +optional
	// +default="Retain"
	ShutdownPolicy ClaimShutdownPolicy `json:"shutdownPolicy,omitempty" protobuf:"bytes,3,opt,name=shutdownPolicy,casttype=ClaimShutdownPolicy"`
}

// EnvVar is an environment variable for one container of the Sandbox.
type EnvVar struct {
	// name is the name of the variable.
	// +required
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`

	// value is the value of the variable.
	// +required
	Value string `json:"value" protobuf:"bytes,2,opt,name=value"`

	// containerName is the name of the container, or init container, that gets the variable. Empty means the first container.
	// +optional
	ContainerName string `json:"containerName,omitempty" protobuf:"bytes,3,opt,name=containerName"`
}

// SandboxClaimStatus is what was last observed of a SandboxClaim.
type SandboxClaimStatus struct {
	// conditions say what is true of the claim: Ready, as its Sandbox says or why it has none, and Finished, as its Sandbox says.
	// +optional
	// +listType=atomic
	Conditions []metav1.Condition `json:"conditions,omitempty" protobuf:"bytes,1,rep,name=conditions"`

	// sandbox tells of the Sandbox that the claim has got.
	// +optional
	Sandbox ClaimedSandboxStatus `json:"sandbox,omitempty,omitzero" protobuf:"bytes,2,opt,name=sandbox"`
}

// ClaimedSandboxStatus tells of the Sandbox that a claim has got.
type ClaimedSandboxStatus struct {
	// name is the name of the Sandbox. It need not be that of the claim.
	// +optional
	Name string `json:"name,omitempty" protobuf:"bytes,1,opt,name=name"`

	// podIPs are the addresses of the Pod, as the Sandbox says.
	// +optional
	// +listType=atomic
	PodIPs []string `json:"podIPs,omitempty" protobuf:"bytes,2,rep,name=podIPs"`

	// serviceFQDN is the DNS name of the Sandbox's Service, as the Sandbox says. Empty without a Service.
	// +optional
	ServiceFQDN string `json:"serviceFQDN,omitempty" protobuf:"bytes,3,opt,name=serviceFQDN"`
}
