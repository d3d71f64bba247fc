// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxwarmpool

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/message"
)

// Reasons of events that are not the reason of the condition too.
const (
	eventReasonNotProgressing = "WarmPoolNotProgressing"
	eventReasonProgressing    = "WarmPoolProgressing"

	actionReconciling = "Reconciling"
)

// progressingMessage is that of the condition while nothing is wrong.
const progressingMessage = "Members that are missing are being made"

// outcome is what a pass has found and done.
type outcome struct {
	// members and ready are how many there are after the pass.
	members, ready int
	replicas       int
	// templateMissing says that there is no template of the name that the pool says.
	templateMissing bool
	// refusal is why a member could not be made, or not be given its Pod. Empty if nothing was refused.
	refusal string
	// unschedulable is how many members are kept though they found no place in the cluster within grace.
	unschedulable int
	grace         time.Duration
}

// observedStatus returns the status of a pool after a pass.
func observedStatus(pool *extensionsv1beta1.SandboxWarmPool, o *outcome, now time.Time) *extensionsv1beta1.SandboxWarmPoolStatus {
	status := pool.Status.DeepCopy()
	status.Replicas, status.ReadyReplicas = int32(o.members), int32(o.ready) //nolint:gosec // there are not that many
	status.Selector = selector(pool)
	status.ObservedGeneration = pool.Generation
	condition := progressingCondition(pool, o)
	condition.ObservedGeneration = pool.Generation
	condition.LastTransitionTime = metav1.NewTime(now).Rfc3339Copy()
	condition.Message = message.Cut(condition.Message, message.MaxCondition)
	meta.SetStatusCondition(&status.Conditions, condition)
	return status
}

// progressingCondition says what keeps the pool from having the members it should have, the cause before its consequences.
func progressingCondition(pool *extensionsv1beta1.SandboxWarmPool, o *outcome) metav1.Condition {
	condition := metav1.Condition{Type: extensionsv1beta1.WarmPoolConditionProgressing, Status: metav1.ConditionFalse}
	switch {
	case o.templateMissing:
		condition.Reason = extensionsv1beta1.WarmPoolReasonTemplateNotFound
		condition.Message = fmt.Sprintf("SandboxTemplate %q not found", pool.Spec.SandboxTemplateRef.Name)
	case o.refusal != "":
		condition.Reason, condition.Message = extensionsv1beta1.WarmPoolReasonFailedCreate, o.refusal
	case o.unschedulable > 0:
		condition.Reason = extensionsv1beta1.WarmPoolReasonUnschedulable
		condition.Message = fmt.Sprintf("%d/%d sandboxes are unschedulable past the %s readiness grace period; "+
			"holding them instead of replacing (replacements would be equally unschedulable)", o.unschedulable, o.replicas, o.grace)
	default:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, extensionsv1beta1.WarmPoolReasonProgressing, progressingMessage
	}
	return condition
}

// event is what is to be recorded about a pool.
type event struct {
	eventType, reason, note string
}

// transitionEvent returns the event for a change of status: what has begun to stand in the way of the pool, or that it no longer does.
func transitionEvent(before, after *extensionsv1beta1.SandboxWarmPoolStatus) (event, bool) {
	condition := meta.FindStatusCondition(after.Conditions, extensionsv1beta1.WarmPoolConditionProgressing)
	previous := meta.FindStatusCondition(before.Conditions, extensionsv1beta1.WarmPoolConditionProgressing)
	switch {
	case previous != nil && previous.Reason == condition.Reason:
		return event{}, false
	case condition.Reason == extensionsv1beta1.WarmPoolReasonUnschedulable:
		return event{corev1.EventTypeWarning, eventReasonNotProgressing, condition.Message}, true
	case condition.Status == metav1.ConditionFalse:
		return event{corev1.EventTypeWarning, condition.Reason, condition.Message}, true
	case previous != nil:
		return event{corev1.EventTypeNormal, eventReasonProgressing, "Warm pool is progressing again"}, true
	default:
		return event{}, false
	}
}
