// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxclaim

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
)

// deadline returns when the claim expires: at its shutdown time, or its time to live after the moment at which its Sandbox finished, as the
// claim itself says, whichever comes first. The zero time means never.
func deadline(claim *extensionsv1beta1.SandboxClaim) time.Time {
	lifecycle := claim.Spec.Lifecycle
	if lifecycle == nil {
		return time.Time{}
	}
	var first time.Time
	if lifecycle.ShutdownTime != nil {
		first = lifecycle.ShutdownTime.Time
	}
	finished := meta.FindStatusCondition(claim.Status.Conditions, extensionsv1beta1.ClaimConditionFinished)
	if lifecycle.TTLSecondsAfterFinished != nil && finished != nil && finished.Status == metav1.ConditionTrue {
		ttl := time.Duration(*lifecycle.TTLSecondsAfterFinished) * time.Second
		if end := finished.LastTransitionTime.Add(ttl); first.IsZero() || end.Before(first) {
			first = end
		}
	}
	return first
}

// expired says whether the claim's time is over. The moment itself counts.
func expired(claim *extensionsv1beta1.SandboxClaim, now time.Time) bool {
	end := deadline(claim)
	return !end.IsZero() && !now.Before(end)
}

// expiryDelay returns after which time a pass has to look at the expiry: never 0 for a claim that expires, even if the time has come
// meanwhile.
func expiryDelay(claim *extensionsv1beta1.SandboxClaim, now time.Time) time.Duration {
	end := deadline(claim)
	if end.IsZero() {
		return 0
	}
	return max(time.Nanosecond, end.Sub(now))
}

// deletedOnExpiry says whether the claim itself goes when it expires.
func deletedOnExpiry(claim *extensionsv1beta1.SandboxClaim) bool {
	policy := claim.Spec.Lifecycle.ShutdownPolicy
	return policy == extensionsv1beta1.ClaimShutdownPolicyDelete || policy == extensionsv1beta1.ClaimShutdownPolicyDeleteForeground
}

// propagation returns how the deletion of the claim reaches its Sandbox.
func propagation(claim *extensionsv1beta1.SandboxClaim) *metav1.DeletionPropagation {
	if claim.Spec.Lifecycle.ShutdownPolicy != extensionsv1beta1.ClaimShutdownPolicyDeleteForeground {
		return nil
	}
	foreground := metav1.DeletePropagationForeground
	return &foreground
}

// markedExpired says whether the status already announces the expiry.
func markedExpired(status *extensionsv1beta1.SandboxClaimStatus) bool {
	return readyReason(status) == extensionsv1beta1.ClaimReasonExpired
}
