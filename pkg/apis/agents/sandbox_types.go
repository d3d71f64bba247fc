// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Sandbox is one isolated, stateful, named environment backed by a single Pod.
type Sandbox struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Spec   SandboxSpec
	Status SandboxStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SandboxList is a list of Sandboxes.
type SandboxList struct {
	metav1.TypeMeta
	metav1.ListMeta

	Items []Sandbox
}

// SandboxOperatingMode is the run state a Sandbox is meant to be in.
type SandboxOperatingMode string

// The operating modes of a Sandbox.
const (
	SandboxOperatingModeRunning   SandboxOperatingMode = "Running"
	SandboxOperatingModeSuspended SandboxOperatingMode = "Suspended"
)

// ShutdownPolicy says what becomes of the Sandbox object when its shutdown time is reached.
type ShutdownPolicy string

// The shutdown policies of a Sandbox.
const (
	ShutdownPolicyDelete ShutdownPolicy = "Delete"
	ShutdownPolicyRetain ShutdownPolicy = "Retain"
)

// SandboxSpec is the desired state of a Sandbox.
type SandboxSpec struct {
	SandboxBlueprint
	ShutdownTime   *metav1.Time
	ShutdownPolicy *ShutdownPolicy
	OperatingMode  SandboxOperatingMode
}

// SandboxBlueprint is the part of a Sandbox that templates share with it.
type SandboxBlueprint struct {
	PodTemplate          PodTemplate
	VolumeClaimTemplates []PersistentVolumeClaimTemplate
	Service              *bool
}

// PodTemplate describes the Pod behind a Sandbox.
type PodTemplate struct {
	Spec     corev1.PodSpec
	Metadata PodMetadata
}

// PodMetadata is the metadata that may be set on the Pod.
type PodMetadata struct {
	Labels      map[string]string
	Annotations map[string]string
}

// PersistentVolumeClaimTemplate describes one PersistentVolumeClaim of a Sandbox.
type PersistentVolumeClaimTemplate struct {
	Metadata EmbeddedObjectMetadata
	Spec     corev1.PersistentVolumeClaimSpec
}

// EmbeddedObjectMetadata is the metadata of an object that is described inside another one.
type EmbeddedObjectMetadata struct {
	Name        string
	Labels      map[string]string
	Annotations map[string]string
}

// SandboxStatus is the observed state of a Sandbox.
type SandboxStatus struct {
	ServiceFQDN string
	Service     string
	Conditions  []metav1.Condition
	Selector    string
	PodIPs      []string
	NodeName    string
}
