// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package claimedsandbox

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
)

// Status returns what the claim says of its Sandbox: where it is, and its conditions Finished, with the generation that the Sandbox gives,
// and Ready, with the claim's. The times of transitions are the Sandbox's, so that of a member of a pool is usually before the claim's
// own creation. Conditions are sorted by type.
func Status(claim *extensionsv1beta1.SandboxClaim, sandbox *agentsv1beta1.Sandbox) extensionsv1beta1.SandboxClaimStatus {
	status := extensionsv1beta1.SandboxClaimStatus{Sandbox: extensionsv1beta1.ClaimedSandboxStatus{
		Name:        sandbox.Name,
		PodIPs:      slices.Clone(sandbox.Status.PodIPs),
		ServiceFQDN: sandbox.Status.ServiceFQDN,
	}}
	if finished := meta.FindStatusCondition(sandbox.Status.Conditions, agentsv1beta1.SandboxConditionFinished); finished != nil {
		status.Conditions = append(status.Conditions, *finished)
	}
	ready := readyCondition(sandbox)
	ready.ObservedGeneration = claim.Generation
	status.Conditions = append(status.Conditions, ready)
	return status
}

// readyCondition returns the Ready condition of the Sandbox in the words of a claim.
func readyCondition(sandbox *agentsv1beta1.Sandbox) metav1.Condition {
	condition := metav1.Condition{
		Type:               extensionsv1beta1.ClaimConditionReady,
		Status:             metav1.ConditionFalse,
		Reason:             extensionsv1beta1.ClaimReasonSandboxNotReady,
		Message:            "Sandbox is not ready",
		LastTransitionTime: sandbox.CreationTimestamp,
	}
	ready := meta.FindStatusCondition(sandbox.Status.Conditions, agentsv1beta1.SandboxConditionReady)
	switch {
	case ready == nil:
	case ready.Reason == agentsv1beta1.SandboxReasonExpired:
		condition.Reason = extensionsv1beta1.ClaimReasonSandboxExpired
		condition.Message = "Underlying Sandbox resource has expired independently of the Claim."
		condition.LastTransitionTime = ready.LastTransitionTime
	case ready.Status == metav1.ConditionTrue && !Ready(sandbox):
		// Whoever reads Ready goes on to connect.
		condition.Reason, condition.Message = agentsv1beta1.SandboxReasonDependenciesNotReady, "Pod is Ready but has no podIPs yet"
		condition.LastTransitionTime = ready.LastTransitionTime
	default:
		condition = *ready
	}
	return condition
}
