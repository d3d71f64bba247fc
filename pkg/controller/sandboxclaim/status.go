// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxclaim

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/claimedsandbox"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/failure"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/message"
)

// notReady is why a claim is not ready, in the words of its Ready condition.
type notReady struct {
	reason, message string
}

// missing is the state of a claim whose Sandbox is gone.
func missing() *notReady {
	return &notReady{extensionsv1beta1.ClaimReasonSandboxMissing, "Sandbox does not exist"}
}

// blame returns what a claim says of an error that keeps it from getting a Sandbox, and whether a retry may help.
func blame(err error) (problem *notReady, retry bool) {
	var rejection *claimedsandbox.Rejection
	switch {
	case errors.As(err, &rejection) && rejection.Reason != extensionsv1beta1.ClaimReasonReconcilerError:
		return &notReady{rejection.Reason, err.Error()}, false
	case failure.Terminal(err):
		return &notReady{agentsv1beta1.SandboxReasonInvalidConfiguration, err.Error()}, false
	default:
		return reconcilerError(err), rejection == nil && !errors.As(err, new(*nameTakenError))
	}
}

func reconcilerError(err error) *notReady {
	return &notReady{extensionsv1beta1.ClaimReasonReconcilerError, "Error seen: " + err.Error()}
}

// statusNotReady returns the status of a claim that is not ready for a reason of its own. What it says of a Sandbox stays. Conditions are
// sorted by type, among which Ready is the last.
func statusNotReady(claim *extensionsv1beta1.SandboxClaim, problem *notReady, now time.Time) *extensionsv1beta1.SandboxClaimStatus {
	status := claim.Status.DeepCopy()
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type:               extensionsv1beta1.ClaimConditionReady,
		Status:             metav1.ConditionFalse,
		Reason:             problem.reason,
		Message:            message.Cut(problem.message, message.MaxCondition),
		ObservedGeneration: claim.Generation,
		LastTransitionTime: metav1.NewTime(now).Rfc3339Copy(),
	})
	return status
}

// statusWithoutSandbox is statusNotReady for a claim that has no Sandbox, or none any more.
func statusWithoutSandbox(claim *extensionsv1beta1.SandboxClaim, problem *notReady, now time.Time) *extensionsv1beta1.SandboxClaimStatus {
	status := statusNotReady(claim, problem, now)
	status.Sandbox = extensionsv1beta1.ClaimedSandboxStatus{}
	return status
}

// unbound says whether the claim has no Sandbox, as far as it says, and may get one.
func unbound(claim *extensionsv1beta1.SandboxClaim) bool {
	return claim.Status.Sandbox.Name == "" && claim.DeletionTimestamp == nil
}

func isReady(status *extensionsv1beta1.SandboxClaimStatus) bool {
	return meta.IsStatusConditionTrue(status.Conditions, extensionsv1beta1.ClaimConditionReady)
}

// readyReason returns the reason of the Ready condition, or nothing if there is none.
func readyReason(status *extensionsv1beta1.SandboxClaimStatus) string {
	if ready := meta.FindStatusCondition(status.Conditions, extensionsv1beta1.ClaimConditionReady); ready != nil {
		return ready.Reason
	}
	return ""
}
