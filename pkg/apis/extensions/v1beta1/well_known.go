// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Annotations of claims that the system reads or sets. Who creates a claim sets none of them but ClientFirstRequestedAtAnnotation and
// WebhookFirstObservedAtAnnotation; the others are dropped from what he sends.
const (
	// SandboxNameAnnotation is the name of the pool member that the claim was given. It is a record only: a Sandbox belongs to a claim
	// if the claim controls it by UID.
	SandboxNameAnnotation = "agents.x-k8s.io/sandbox-name"
	// ControllerFirstObservedAtAnnotation is when the controller first saw the claim, in RFC 3339 with nanoseconds. Of a claim that the
	// API server bound in the request that created it, it is when it did.
	ControllerFirstObservedAtAnnotation = "agents.x-k8s.io/controller-first-observed-at"
	// ClaimFirstReadyAtAnnotation is when the claim was first ready, in RFC 3339 with nanoseconds. Writing it is the event by which clients
	// that watch a claim from its creation on learn that it is.
	ClaimFirstReadyAtAnnotation = "agents.x-k8s.io/claim-first-ready-at"
	// ClientFirstRequestedAtAnnotation is when the client asked for the claim, in RFC 3339. Clients set it.
	ClientFirstRequestedAtAnnotation = "agents.x-k8s.io/client-first-requested-at"
	// WebhookFirstObservedAtAnnotation is when an admission webhook first saw the claim, in RFC 3339. Webhooks may set it.
	WebhookFirstObservedAtAnnotation = "agents.x-k8s.io/webhook-first-observed-at"
)

// ReservedForClaimAnnotation is the UID of the claim that is to get the member of a warm pool that has it. It is there between the two writes
// that give away a member where both cannot be made in one transaction; no other claim is given the member meanwhile.
const ReservedForClaimAnnotation = "agents.x-k8s.io/reserved-for-claim"

// ReservedAtAnnotation is set beside ReservedForClaimAnnotation: when the member was reserved, in RFC 3339. A member that has been reserved
// for long, for a claim that does not exist, was left so by a server that ended; it is deleted rather than given to another claim.
const ReservedAtAnnotation = "agents.x-k8s.io/reserved-at"

// Condition types of a SandboxClaim.
const (
	// ClaimConditionReady is that of the claim's Sandbox, or says why the claim has none.
	ClaimConditionReady = "Ready"
	// ClaimConditionFinished is that of the claim's Sandbox, and absent when the Sandbox has none.
	ClaimConditionFinished = "Finished"
)

// Reasons of the Ready condition of a claim that are not its Sandbox's.
const (
	// ClaimReasonSandboxNotReady means that the Sandbox was made and says nothing about itself yet.
	ClaimReasonSandboxNotReady = "SandboxNotReady"
	// ClaimReasonSandboxExpired means that the Sandbox expired by a shutdown time of its own. Terminal.
	ClaimReasonSandboxExpired = "SandboxExpired"
	// ClaimReasonSandboxMissing means that the Sandbox of the claim is gone. Terminal.
	ClaimReasonSandboxMissing = "SandboxMissing"
	// ClaimReasonWarmPoolNotFound means that there is no pool of the name; it ends when there is one.
	ClaimReasonWarmPoolNotFound = "WarmPoolNotFound"
	// ClaimReasonTemplateNotFound means that there is no template of the name that the pool says; it ends when there is one.
	ClaimReasonTemplateNotFound = "TemplateNotFound"
	// ClaimReasonAdoptionConflict means that others were faster at every member of the pool; it is tried again.
	ClaimReasonAdoptionConflict = "AdoptionConflict"
	// ClaimReasonSandboxCreatePending means that a Sandbox of its own is being made for the claim, which gets no member of its pool any more.
	// Its name is in the status once it has said something of itself.
	ClaimReasonSandboxCreatePending = "SandboxCreatePending"
	// ClaimReasonInvalidMetadata means that additionalPodMetadata breaks a rule. Terminal until the claim is changed.
	ClaimReasonInvalidMetadata = "InvalidMetadata"
	// ClaimReasonEnvVarsInjectionRejected means that the template does not allow the env. Terminal until claim or template is changed.
	ClaimReasonEnvVarsInjectionRejected = "EnvVarsInjectionRejected"
	// ClaimReasonVolumeClaimTemplatesError means that the template does not allow the volumeClaimTemplates, or that they are not valid.
	// Terminal until claim or template is changed.
	ClaimReasonVolumeClaimTemplatesError = "VolumeClaimTemplatesError"
	// ClaimReasonExpired means that the claim's lifecycle is over. Terminal until the lifecycle is changed.
	ClaimReasonExpired = "ClaimExpired"
	// ClaimReasonReconcilerError means that something else failed; it is tried again.
	ClaimReasonReconcilerError = "ReconcilerError"
)

// StartedCold says whether a Sandbox of its own is being made for the claim that has the conditions. Nothing may give it another one then:
// the request to make it may be under way, and nobody can tell.
func StartedCold(conditions []metav1.Condition) bool {
	ready := meta.FindStatusCondition(conditions, ClaimConditionReady)
	return ready != nil && ready.Reason == ClaimReasonSandboxCreatePending
}

// WarmPoolConditionProgressing is False while members of a pool that are missing cannot be made or cannot run.
const WarmPoolConditionProgressing = "Progressing"

// Reasons of the Progressing condition of a pool.
const (
	WarmPoolReasonProgressing      = "Progressing"
	WarmPoolReasonTemplateNotFound = "TemplateNotFound"
	WarmPoolReasonFailedCreate     = "FailedCreate"
	WarmPoolReasonUnschedulable    = "Unschedulable"
)
