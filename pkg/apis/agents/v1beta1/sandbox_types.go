// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +genclient:method=Suspend,verb=create,subresource=suspend,input=SandboxSuspend,result=Sandbox
// +genclient:method=Resume,verb=create,subresource=resume,input=SandboxResume,result=Sandbox
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Sandbox is one isolated, stateful, named environment: a single Pod with a stable identity, its own persistent volumes and,
// if asked for, a headless Service. It can be suspended (the Pod goes, everything else stays) and resumed.
type Sandbox struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The name also names the Pod and the Service, and ends the names of the
	// PersistentVolumeClaims.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero" protobuf:"bytes,1,opt,name=metadata"`

	// spec is the desired state of the Sandbox.
	// +required
	Spec SandboxSpec `json:"spec" protobuf:"bytes,2,opt,name=spec"`

	// status is what was last observed of the Sandbox. It is written by the controller and read-only to everybody else.
	// +optional
	Status SandboxStatus `json:"status,omitempty,omitzero" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SandboxList is a list of Sandboxes.
type SandboxList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// items are the Sandboxes.
	Items []Sandbox `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// SandboxOperatingMode is the run state a Sandbox is meant to be in.
// +enum
type SandboxOperatingMode string

const (
	// SandboxOperatingModeRunning means that the Sandbox has a Pod.
	SandboxOperatingModeRunning SandboxOperatingMode = "Running"
	// SandboxOperatingModeSuspended means that the Sandbox has no Pod, but keeps its volumes, its Service and its name.
	SandboxOperatingModeSuspended SandboxOperatingMode = "Suspended"
)

// ShutdownPolicy says what becomes of the Sandbox object when its shutdown time is reached.
// +enum
type ShutdownPolicy string

const (
	// ShutdownPolicyDelete deletes the Sandbox, and with it everything it owns, its volumes included.
	ShutdownPolicyDelete ShutdownPolicy = "Delete"
	// ShutdownPolicyRetain deletes the Pod and the Service, and keeps the Sandbox and its volumes.
	ShutdownPolicyRetain ShutdownPolicy = "Retain"
)

// SandboxSpec is the desired state of a Sandbox.
type SandboxSpec struct {
	// SandboxBlueprint is what to run: the Pod, its volumes and its Service.
	SandboxBlueprint `json:",inline" protobuf:"bytes,1,opt,name=sandboxBlueprint"`

	// shutdownTime is the moment, as an RFC 3339 date-time, at which the Sandbox expires: its Pod and Service are deleted, and
	// shutdownPolicy decides about the rest. Unset means never. It may be moved at any time; moving it into the future brings
	// an expired Sandbox back.
	// +optional
	ShutdownTime *metav1.Time `json:"shutdownTime,omitempty" protobuf:"bytes,2,opt,name=shutdownTime"`

	// shutdownPolicy says what becomes of the Sandbox object when shutdownTime is reached: Retain keeps it and its volumes,
	// Delete removes it with all it owns. Defaults to Retain.
	// +optional
	// +default="Retain"
	ShutdownPolicy *ShutdownPolicy `json:"shutdownPolicy,omitempty" protobuf:"bytes,3,opt,name=shutdownPolicy,casttype=ShutdownPolicy"`

	// operatingMode is the run state the Sandbox is meant to be in. Running: it has a Pod. Suspended: the Pod is deleted, while
	// volumes, Service and name are kept, so that Running again finds the same disks. The suspend and resume subresources set
	// this field. Defaults to Running.
	// +optional
	// +default="Running"
	OperatingMode SandboxOperatingMode `json:"operatingMode,omitempty" protobuf:"bytes,4,opt,name=operatingMode,casttype=SandboxOperatingMode"`
}

// SandboxBlueprint is the part of a Sandbox that templates share with it.
type SandboxBlueprint struct {
	// podTemplate describes the Pod behind the Sandbox. A change of its spec takes effect when the next Pod is made, at
	// resume for example; a change of its metadata reaches the running Pod.
	// +required
	PodTemplate PodTemplate `json:"podTemplate" protobuf:"bytes,1,opt,name=podTemplate"`

	// volumeClaimTemplates describe the persistent volumes of the Sandbox. For each entry there is a PersistentVolumeClaim named
	// <entry name>-<sandbox name> and a volume of the entry's name in the Pod. They outlive suspension and are deleted with the
	// Sandbox. Immutable in a Sandbox.
	// +optional
	// +listType=atomic
	VolumeClaimTemplates []PersistentVolumeClaimTemplate `json:"volumeClaimTemplates,omitempty" protobuf:"bytes,2,rep,name=volumeClaimTemplates"`

	// service says whether the Sandbox has a headless Service of its own name. true: one is made and kept in repair. false: one
	// that the Sandbox owns is removed. Unset: none is made, and one that the Sandbox owns is left alone. With true, the name of
	// the Sandbox may have at most 63 characters.
	// +optional
	Service *bool `json:"service,omitempty" protobuf:"varint,3,opt,name=service"`
}

// PodTemplate describes the Pod behind a Sandbox.
type PodTemplate struct {
	// spec is the specification of the Pod. At least one container is required.
	// +required
	Spec corev1.PodSpec `json:"spec" protobuf:"bytes,1,opt,name=spec"`

	// metadata holds labels and annotations for the Pod. Keys that begin with agents.x-k8s.io/ or extensions.agents.x-k8s.io/ are
	// reserved and ignored.
	// +optional
	Metadata PodMetadata `json:"metadata,omitempty,omitzero" protobuf:"bytes,2,opt,name=metadata"`
}

// PodMetadata is the metadata that may be set on the Pod of a Sandbox.
type PodMetadata struct {
	// labels are added to the labels of the Pod.
	// +optional
	Labels map[string]string `json:"labels,omitempty" protobuf:"bytes,1,rep,name=labels"`

	// annotations are added to the annotations of the Pod.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty" protobuf:"bytes,2,rep,name=annotations"`
}

// PersistentVolumeClaimTemplate describes one PersistentVolumeClaim of a Sandbox.
type PersistentVolumeClaimTemplate struct {
	// metadata holds the name, labels and annotations of the claim. The name is also that of the volume in the Pod.
	// +optional
	Metadata EmbeddedObjectMetadata `json:"metadata,omitempty,omitzero" protobuf:"bytes,1,opt,name=metadata"`

	// spec is the specification of the PersistentVolumeClaim.
	// +required
	Spec corev1.PersistentVolumeClaimSpec `json:"spec" protobuf:"bytes,2,opt,name=spec"`
}

// EmbeddedObjectMetadata is the metadata of an object that is described inside another one.
type EmbeddedObjectMetadata struct {
	// name is the name of the volume; the PersistentVolumeClaim is named <name>-<sandbox name>.
	// +optional
	Name string `json:"name,omitempty" protobuf:"bytes,1,opt,name=name"`

	// labels are set on the PersistentVolumeClaim when it is made.
	// +optional
	Labels map[string]string `json:"labels,omitempty" protobuf:"bytes,2,rep,name=labels"`

	// annotations are set on the PersistentVolumeClaim when it is made.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty" protobuf:"bytes,3,rep,name=annotations"`
}

// SandboxStatus is what was last observed of a Sandbox.
type SandboxStatus struct {
	// serviceFQDN is the DNS name of the Service, <service>.<namespace>.svc.<cluster domain>. Empty without a Service.
	// +optional
	ServiceFQDN string `json:"serviceFQDN,omitempty" protobuf:"bytes,1,opt,name=serviceFQDN"`

	// service is the name of the headless Service. Empty without one.
	// +optional
	Service string `json:"service,omitempty" protobuf:"bytes,2,opt,name=service"`

	// conditions say what is true of the Sandbox: Ready (its Pod is ready, and its Service is there if asked for), Suspended
	// (it has no Pod because it is meant to have none), PodScheduled (as the Pod says) and Finished (the Pod ended by itself).
	// +optional
	// +listType=atomic
	Conditions []metav1.Condition `json:"conditions,omitempty" protobuf:"bytes,3,rep,name=conditions"`

	// selector is the label selector, in its string form, that finds the Pod of the Sandbox.
	// +optional
	Selector string `json:"selector,omitempty" protobuf:"bytes,4,opt,name=selector"`

	// podIPs are the addresses of the Pod, in the Pod's own order. Empty without a Pod.
	// +optional
	// +listType=atomic
	PodIPs []string `json:"podIPs,omitempty" protobuf:"bytes,5,rep,name=podIPs"`

	// nodeName is the node that the Pod is on. Empty without a Pod.
	// +optional
	NodeName string `json:"nodeName,omitempty" protobuf:"bytes,6,opt,name=nodeName"`
}
