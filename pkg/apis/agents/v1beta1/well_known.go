// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import "strings"

// Labels that the system sets. Keys with these prefixes are reserved: users' values for them are ignored.
const (
	// SandboxNameHashLabel is on every Pod, Service and PersistentVolumeClaim of a Sandbox; its value is the hash of the
	// Sandbox's name (the namespace is not part of it).
	SandboxNameHashLabel = "agents.x-k8s.io/sandbox-name-hash"
	// AdoptableLabel, when exactly "true", lets a Sandbox take over an existing Pod, Service or PersistentVolumeClaim of the
	// right name that nobody controls.
	AdoptableLabel = "agents.x-k8s.io/adoptable"
	// CreatedByLabel says what kind of client a Sandbox was made by.
	CreatedByLabel = "agents.x-k8s.io/created-by"
	// WarmPoolSandboxLabel is on the members of a warm pool; its value is the hash of the pool's name.
	WarmPoolSandboxLabel = "agents.x-k8s.io/warm-pool-sandbox"
	// SandboxTemplateRefHashLabel is on what was made from a template; its value is the hash of the template's name.
	SandboxTemplateRefHashLabel = "agents.x-k8s.io/sandbox-template-ref-hash"
	// SandboxTemplateHashLabel is on the idle members of a warm pool; its value is a hash of the template they were made from.
	SandboxTemplateHashLabel = "agents.x-k8s.io/sandbox-template-hash"
	// SandboxPodTemplateHashLabel is the predecessor of SandboxTemplateHashLabel. It is not written, and goes when a member is claimed.
	SandboxPodTemplateHashLabel = "agents.x-k8s.io/sandbox-pod-template-hash"
	// LaunchTypeLabel says whether a Sandbox was made ahead for a pool (LaunchTypeWarm) or for a claim (LaunchTypeCold).
	LaunchTypeLabel = "agents.x-k8s.io/launch-type"
	// ClaimUIDLabel is on what belongs to a claim; its value is the claim's UID.
	ClaimUIDLabel = "agents.x-k8s.io/claim-uid"
)

// Values of LaunchTypeLabel.
const (
	LaunchTypeWarm = "warm"
	LaunchTypeCold = "cold"
)

// CreatedByController is the value of CreatedByLabel on the members of a warm pool.
const CreatedByController = "controller"

// Annotations that the system reads or sets.
const (
	// SandboxTemplateRefAnnotation, on a Sandbox, is the name of the template it was made from. It is not kept up to date, and serves
	// metrics only.
	SandboxTemplateRefAnnotation = "agents.x-k8s.io/sandbox-template-ref"
	// SafeToEvictAnnotation, on a Pod, lets the cluster autoscaler evict it. Idle members of a warm pool have it.
	SafeToEvictAnnotation = "cluster-autoscaler.kubernetes.io/safe-to-evict"
	// SandboxPodNameAnnotation names the backing Pod of a Sandbox whose Pod has another name than itself. It is no longer
	// written, and nothing but a hint: a Pod counts only if the Sandbox controls it by UID.
	SandboxPodNameAnnotation = "agents.x-k8s.io/pod-name"
	// PropagatedLabelsAnnotation, on a Pod, lists the label keys taken from podTemplate.metadata, sorted and comma-joined.
	PropagatedLabelsAnnotation = "agents.x-k8s.io/propagated-labels"
	// PropagatedAnnotationsAnnotation, on a Pod, lists the annotation keys taken from podTemplate.metadata likewise.
	PropagatedAnnotationsAnnotation = "agents.x-k8s.io/propagated-annotations"
	// TraceContextAnnotation carries the W3C trace context of the request that made the object.
	TraceContextAnnotation = "opentelemetry.io/trace-context"
)

// Condition types of a Sandbox.
const (
	// SandboxConditionReady is True when the Pod is ready and the Service, if asked for, exists.
	SandboxConditionReady = "Ready"
	// SandboxConditionSuspended is True when the Sandbox is meant to have no Pod and has none.
	SandboxConditionSuspended = "Suspended"
	// SandboxConditionPodScheduled mirrors the Pod's condition of that name, and is absent without a Pod.
	SandboxConditionPodScheduled = "PodScheduled"
	// SandboxConditionFinished is True when the Pod ended by itself, and absent otherwise.
	SandboxConditionFinished = "Finished"
)

// Reasons of the conditions of a Sandbox.
const (
	SandboxReasonDependenciesReady    = "DependenciesReady"
	SandboxReasonDependenciesNotReady = "DependenciesNotReady"
	SandboxReasonReconcilerError      = "ReconcilerError"
	SandboxReasonMultiplePods         = "MultiplePods"
	SandboxReasonSuspended            = "SandboxSuspended"
	SandboxReasonPodSucceeded         = "PodSucceeded"
	SandboxReasonPodFailed            = "PodFailed"
	SandboxReasonExpired              = "SandboxExpired"
	SandboxReasonInvalidConfiguration = "InvalidConfiguration"
	SandboxReasonNotSuspended         = "NotSuspended"
	SandboxReasonPodTerminating       = "PodTerminating"
	SandboxReasonPodNotOwned          = "PodNotOwned"
	SandboxReasonPodTerminated        = "PodTerminated"
	SandboxReasonPodStateUnknown      = "PodStateUnknown"
	SandboxReasonPodScheduled         = "PodScheduled"
	SandboxReasonPodSchedulingUnknown = "PodSchedulingUnknown"
)

// IsReservedPodMetadataKey says whether a label or annotation key belongs to the system, so that podTemplate.metadata has no say in
// it: what it holds under such a key is ignored.
func IsReservedPodMetadataKey(key string) bool {
	return strings.HasPrefix(key, GroupName+"/") ||
		strings.HasPrefix(key, "extensions."+GroupName+"/") ||
		key == TraceContextAnnotation
}
