// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/message"
)

// Reasons of events that are not the reason of a condition too.
const (
	eventReasonPodCreated      = "SandboxPodCreated"
	eventReasonPodCreateFailed = "SandboxPodCreateFailed"
	eventReasonReady           = "SandboxReady"
)

// Actions of events: what the controller was doing.
const (
	actionReconciling = "Reconciling"
	actionPodCreation = "PodCreation"
	actionExpiry      = "Expiry"
)

// event is what is to be recorded about a Sandbox.
type event struct {
	eventType, reason, action, note string
}

// transitionEvents returns the events for a change of status: one for each state that the Sandbox was not in before. An expiry
// that deletes the Sandbox is none, for there will be nothing to look at.
func transitionEvents(sandbox *agentsv1beta1.Sandbox, before, after *agentsv1beta1.SandboxStatus) []event {
	var events []event
	entered := func(conditionType string, status metav1.ConditionStatus, reason string) bool {
		return hasCondition(after, conditionType, status, reason) && !hasCondition(before, conditionType, status, reason)
	}
	note := func(conditionType string) string {
		return meta.FindStatusCondition(after.Conditions, conditionType).Message
	}
	const ready, finished, suspension = agentsv1beta1.SandboxConditionReady, agentsv1beta1.SandboxConditionFinished, agentsv1beta1.SandboxConditionSuspended

	if entered(ready, metav1.ConditionTrue, agentsv1beta1.SandboxReasonDependenciesReady) {
		events = append(events, event{corev1.EventTypeNormal, eventReasonReady, actionReconciling, "Sandbox is ready"})
	}
	if entered(ready, metav1.ConditionFalse, agentsv1beta1.SandboxReasonMultiplePods) {
		events = append(events, event{corev1.EventTypeWarning, agentsv1beta1.SandboxReasonMultiplePods, actionReconciling, note(ready)})
	}
	if entered(suspension, metav1.ConditionTrue, agentsv1beta1.SandboxReasonPodTerminated) {
		events = append(events, event{corev1.EventTypeNormal, agentsv1beta1.SandboxReasonSuspended, actionReconciling, "Sandbox is suspended"})
	}
	if entered(finished, metav1.ConditionTrue, agentsv1beta1.SandboxReasonPodSucceeded) {
		events = append(events, event{corev1.EventTypeNormal, agentsv1beta1.SandboxReasonPodSucceeded, actionReconciling, note(finished)})
	}
	if entered(finished, metav1.ConditionTrue, agentsv1beta1.SandboxReasonPodFailed) {
		events = append(events, event{corev1.EventTypeWarning, agentsv1beta1.SandboxReasonPodFailed, actionReconciling, note(finished)})
	}
	if !deletedOnExpiry(sandbox) && entered(ready, metav1.ConditionFalse, agentsv1beta1.SandboxReasonExpired) {
		events = append(events, event{corev1.EventTypeNormal, agentsv1beta1.SandboxReasonExpired, actionExpiry, note(ready)})
	}
	return events
}

// recordPodEvents records what the pass has done about the Pod.
func (c *Controller) recordPodEvents(sandbox *agentsv1beta1.Sandbox, o *observation) {
	var related runtime.Object
	if o.pod != nil {
		related = o.pod
	}
	c.record(sandbox, related, o.podEvents)
}

func (c *Controller) record(sandbox *agentsv1beta1.Sandbox, related runtime.Object, events []event) {
	for _, event := range events {
		if !c.config.DisableEvents || event.reason == agentsv1beta1.SandboxReasonMultiplePods {
			c.config.Recorder.Eventf(sandbox, related, event.eventType, event.reason, event.action, "%s", message.Cut(event.note, message.MaxEventNote))
		}
	}
}

func hasCondition(status *agentsv1beta1.SandboxStatus, conditionType string, conditionStatus metav1.ConditionStatus, reason string) bool {
	condition := meta.FindStatusCondition(status.Conditions, conditionType)
	return condition != nil && condition.Status == conditionStatus && condition.Reason == reason
}
