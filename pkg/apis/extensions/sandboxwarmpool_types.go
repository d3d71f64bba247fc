// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package extensions

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SandboxWarmPool keeps a number of Sandboxes running that nobody has claimed yet.
type SandboxWarmPool struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Spec   SandboxWarmPoolSpec
	Status SandboxWarmPoolStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SandboxWarmPoolList is a list of SandboxWarmPools.
type SandboxWarmPoolList struct {
	metav1.TypeMeta
	metav1.ListMeta

	Items []SandboxWarmPool
}

// SandboxWarmPoolUpdateStrategyType says what becomes of idle members when the template changes.
type SandboxWarmPoolUpdateStrategyType string

// The update strategies of a pool.
const (
	RecreateSandboxWarmPoolUpdateStrategyType    SandboxWarmPoolUpdateStrategyType = "Recreate"
	OnReplenishSandboxWarmPoolUpdateStrategyType SandboxWarmPoolUpdateStrategyType = "OnReplenish"
)

// SandboxWarmPoolSpec is the desired state of a SandboxWarmPool.
type SandboxWarmPoolSpec struct {
	Replicas           *int32
	SandboxTemplateRef SandboxTemplateRef
	UpdateStrategy     *SandboxWarmPoolUpdateStrategy
}

// SandboxTemplateRef names a SandboxTemplate in the same namespace.
type SandboxTemplateRef struct {
	Name string
}

// SandboxWarmPoolUpdateStrategy says how a pool follows its template.
type SandboxWarmPoolUpdateStrategy struct {
	Type SandboxWarmPoolUpdateStrategyType
}

// SandboxWarmPoolStatus is the observed state of a SandboxWarmPool.
type SandboxWarmPoolStatus struct {
	Replicas           int32
	ReadyReplicas      int32
	Selector           string
	ObservedGeneration int64
	Conditions         []metav1.Condition
}
