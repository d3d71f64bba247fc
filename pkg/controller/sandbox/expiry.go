// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
)

// expired says whether the shutdown time of the Sandbox is reached. The moment itself counts.
func expired(sandbox *agentsv1beta1.Sandbox, now time.Time) bool {
	return sandbox.Spec.ShutdownTime != nil && !now.Before(sandbox.Spec.ShutdownTime.Time)
}

// untilExpiry returns how long the Sandbox has to live, or 0 if it has no shutdown time or the time is reached.
func untilExpiry(sandbox *agentsv1beta1.Sandbox, now time.Time) time.Duration {
	if sandbox.Spec.ShutdownTime == nil {
		return 0
	}
	return max(0, sandbox.Spec.ShutdownTime.Sub(now))
}

// expiryDelay returns after which time a pass has to look at the expiry: never 0 for a Sandbox that has a shutdown time, even if
// the time has come meanwhile.
func expiryDelay(sandbox *agentsv1beta1.Sandbox, now time.Time) time.Duration {
	if sandbox.Spec.ShutdownTime == nil {
		return 0
	}
	return max(time.Nanosecond, untilExpiry(sandbox, now))
}

func deletedOnExpiry(sandbox *agentsv1beta1.Sandbox) bool {
	return ptr.Deref(sandbox.Spec.ShutdownPolicy, agentsv1beta1.ShutdownPolicyRetain) == agentsv1beta1.ShutdownPolicyDelete
}

// markedExpired says whether the status already announces the expiry.
func markedExpired(status *agentsv1beta1.SandboxStatus) bool {
	ready := meta.FindStatusCondition(status.Conditions, agentsv1beta1.SandboxConditionReady)
	return ready != nil && ready.Reason == agentsv1beta1.SandboxReasonExpired
}

// expiredStatus is the status that announces the expiry, while Pod and Service may still be there.
func expiredStatus(sandbox *agentsv1beta1.Sandbox, now time.Time) *agentsv1beta1.SandboxStatus {
	status := sandbox.Status.DeepCopy()
	meta.RemoveStatusCondition(&status.Conditions, agentsv1beta1.SandboxConditionPodScheduled)
	setCondition(status, sandbox.Generation, now, expiredCondition())
	return status
}

// expiredAndClearedStatus is the status once Pod and Service are deleted: of what was observed, only the conditions remain.
func expiredAndClearedStatus(sandbox *agentsv1beta1.Sandbox, now time.Time) *agentsv1beta1.SandboxStatus {
	return &agentsv1beta1.SandboxStatus{Conditions: expiredStatus(sandbox, now).Conditions}
}
