// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package extensions

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SandboxClaim asks for one Sandbox from a warm pool.
type SandboxClaim struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Spec   SandboxClaimSpec
	Status SandboxClaimStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SandboxClaimList is a list of SandboxClaims.
type SandboxClaimList struct {
	metav1.TypeMeta
	metav1.ListMeta

	Items []SandboxClaim
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SandboxClaimBind is the body of the bind subresource: it asks that a claim which waits be given a member of its pool now.
type SandboxClaimBind struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Preconditions *agents.Preconditions
}

// ClaimShutdownPolicy says what becomes of a claim when it expires.
type ClaimShutdownPolicy string

// The shutdown policies of a claim.
const (
	ClaimShutdownPolicyDelete           ClaimShutdownPolicy = "Delete"
	ClaimShutdownPolicyDeleteForeground ClaimShutdownPolicy = "DeleteForeground"
	ClaimShutdownPolicyRetain           ClaimShutdownPolicy = "Retain"
)

// SandboxClaimSpec is the desired state of a SandboxClaim.
type SandboxClaimSpec struct {
	WarmPoolRef           SandboxWarmPoolRef
	Lifecycle             *Lifecycle
	AdditionalPodMetadata agents.PodMetadata
	Env                   []EnvVar
	VolumeClaimTemplates  []agents.PersistentVolumeClaimTemplate
}

// SandboxWarmPoolRef names a SandboxWarmPool in the same namespace.
type SandboxWarmPoolRef struct {
	Name string
}

// Lifecycle says when a claim expires, and what becomes of it then.
type Lifecycle struct {
	ShutdownTime            *metav1.Time
	TTLSecondsAfterFinished *int32
	ShutdownPolicy          ClaimShutdownPolicy
}

// EnvVar is an environment variable of one container.
type EnvVar struct {
	Name          string
	Value         string
	ContainerName string
}

// SandboxClaimStatus is the observed state of a SandboxClaim.
type SandboxClaimStatus struct {
	Conditions []metav1.Condition
	Sandbox    ClaimedSandboxStatus
}

// ClaimedSandboxStatus tells of the Sandbox that a claim has got.
type ClaimedSandboxStatus struct {
	Name        string
	PodIPs      []string
	ServiceFQDN string
}
