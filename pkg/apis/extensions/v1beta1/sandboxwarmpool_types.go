// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +genclient:method=GetScale,verb=get,subresource=scale,result=k8s.io/api/autoscaling/v1.Scale
// +genclient:method=UpdateScale,verb=update,subresource=scale,input=k8s.io/api/autoscaling/v1.Scale,result=k8s.io/api/autoscaling/v1.Scale
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SandboxWarmPool keeps a number of Sandboxes of one template running that nobody has claimed yet. A claim takes one of them, at
// once, and the pool makes another.
type SandboxWarmPool struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero" protobuf:"bytes,1,opt,name=metadata"`

	// spec is the desired state of the pool.
	// +required
	Spec SandboxWarmPoolSpec `json:"spec" protobuf:"bytes,2,opt,name=spec"`

	// status is what was last observed of the pool. It is written by the controller and read-only to everybody else.
	// +optional
	Status SandboxWarmPoolStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SandboxWarmPoolList is a list of SandboxWarmPools.
type SandboxWarmPoolList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// items are the SandboxWarmPools.
	Items []SandboxWarmPool `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// SandboxWarmPoolUpdateStrategyType says what becomes of idle members when the template changes.
// +enum
type SandboxWarmPoolUpdateStrategyType string

const (
	// RecreateSandboxWarmPoolUpdateStrategyType replaces idle members that no longer follow the template, all at once.
	RecreateSandboxWarmPoolUpdateStrategyType SandboxWarmPoolUpdateStrategyType = "Recreate"
	// OnReplenishSandboxWarmPoolUpdateStrategyType keeps idle members and makes new ones from the changed template.
	OnReplenishSandboxWarmPoolUpdateStrategyType SandboxWarmPoolUpdateStrategyType = "OnReplenish"
)

// SandboxWarmPoolSpec is the desired state of a SandboxWarmPool.
type SandboxWarmPoolSpec struct {
	// replicas is the number of Sandboxes to keep that nobody has claimed. With 0, claims on the pool are always started cold.
	// Defaults to 1.
	// +optional
	// +default=1
	Replicas *int32 `json:"replicas,omitempty" protobuf:"varint,1,opt,name=replicas"`

	// sandboxTemplateRef names the template that the Sandboxes are made from. It may be changed; what becomes of the members of the
	// template before is up to updateStrategy.
	// +required
	SandboxTemplateRef SandboxTemplateRef `json:"sandboxTemplateRef" protobuf:"bytes,2,opt,name=sandboxTemplateRef"`

	// updateStrategy says what becomes of idle members when the template changes. Unset means OnReplenish.
	// +optional
	UpdateStrategy *SandboxWarmPoolUpdateStrategy `json:"updateStrategy,omitempty" protobuf:"bytes,3,opt,name=updateStrategy"`
}

// SandboxTemplateRef names a SandboxTemplate in the same namespace.
type SandboxTemplateRef struct {
	// name is the name of the SandboxTemplate.
	// +required
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
}

// SandboxWarmPoolUpdateStrategy says how a pool follows its template.
type SandboxWarmPoolUpdateStrategy struct {
	// type is Recreate, which replaces idle members when the Pod's spec, the volumes or the service of the template change, all at once;
	// or OnReplenish, which leaves them to be claimed and makes new ones from the changed template. A change of the Pod's metadata
	// alone replaces nothing. Defaults to OnReplenish.
	// +optional
	// +default="OnReplenish"
	Type SandboxWarmPoolUpdateStrategyType `json:"type,omitempty" protobuf:"bytes,1,opt,name=type,casttype=SandboxWarmPoolUpdateStrategyType"`
}

// SandboxWarmPoolStatus is what was last observed of a SandboxWarmPool.
type SandboxWarmPoolStatus struct {
	// replicas is the number of members: Sandboxes of the pool that nobody has claimed and that are not being deleted.
	// +optional
	Replicas int32 `json:"replicas,omitempty" protobuf:"varint,1,opt,name=replicas"`

	// readyReplicas is the number of members that are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty" protobuf:"varint,2,opt,name=readyReplicas"`

	// selector is the label selector, in its string form, that finds the members and their Pods.
	// +optional
	Selector string `json:"selector,omitempty" protobuf:"bytes,3,opt,name=selector"`

	// observedGeneration is the generation of the pool that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"varint,4,opt,name=observedGeneration"`

	// conditions say what is true of the pool: Progressing is False while members that are missing cannot be made or cannot run, and
	// says why.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" protobuf:"bytes,5,rep,name=conditions"`
}
