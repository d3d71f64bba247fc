// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/message"
)

// observation is what one pass found, after it did what it could.
type observation struct {
	// pod is the Pod of the Sandbox, or, in a suspended Sandbox, the Pod of somebody else that has its name. Nil if there is none
	// or if podErr kept it from being found.
	pod *corev1.Pod
	// podErr is why there is no Pod, or why the Pod is not as it should be.
	podErr error

	// podEvents are to be recorded about what was done for the Pod.
	podEvents []event

	// service is the Service of the Sandbox. Nil if there is none.
	service *corev1.Service
	// serviceUnknown says that the Service was not looked at, or not with success.
	serviceUnknown bool

	// err joins all errors of the pass, podErr included, that a reader of the Sandbox should know of.
	err error
}

// ownedPod returns the Pod if the Sandbox controls it.
func (o *observation) ownedPod(sandbox *agentsv1beta1.Sandbox) *corev1.Pod {
	if o.pod == nil || relationTo(sandbox, o.pod) != owned {
		return nil
	}
	return o.pod
}

// observedStatus returns the status of a Sandbox that has not expired. Conditions keep the place they have; those that are new
// are appended as Suspended, Finished, PodScheduled, Ready.
func observedStatus(sandbox *agentsv1beta1.Sandbox, o *observation, clusterDomain string, now time.Time) *agentsv1beta1.SandboxStatus {
	status := sandbox.Status.DeepCopy()
	pod := o.ownedPod(sandbox)

	if o.pod != nil {
		status.Selector = labels.Set(serviceSelector(sandbox)).String()
	}
	status.PodIPs, status.NodeName = nil, ""
	// A Pod that terminates while the Sandbox runs is about to be replaced: its address is not one to connect to.
	if pod != nil && (suspended(sandbox) || pod.DeletionTimestamp == nil) {
		status.NodeName = pod.Spec.NodeName
		for _, ip := range pod.Status.PodIPs {
			status.PodIPs = append(status.PodIPs, ip.IP)
		}
	}
	if !o.serviceUnknown {
		status.Service, status.ServiceFQDN = "", ""
		if o.service != nil {
			status.Service, status.ServiceFQDN = o.service.Name, serviceFQDN(o.service, clusterDomain)
		}
	}

	finished := finishedCondition(&sandbox.Status, pod)
	setCondition(status, sandbox.Generation, now, suspendedCondition(sandbox, o))
	setOrRemoveCondition(status, sandbox.Generation, now, agentsv1beta1.SandboxConditionFinished, finished)
	setOrRemoveCondition(status, sandbox.Generation, now, agentsv1beta1.SandboxConditionPodScheduled, podScheduledCondition(pod, o))
	setCondition(status, sandbox.Generation, now, readyCondition(sandbox, o, finished))
	return status
}

func suspended(sandbox *agentsv1beta1.Sandbox) bool {
	return sandbox.Spec.OperatingMode == agentsv1beta1.SandboxOperatingModeSuspended
}

// isReady says whether the status says that the Sandbox is ready.
func isReady(status *agentsv1beta1.SandboxStatus) bool {
	return meta.IsStatusConditionTrue(status.Conditions, agentsv1beta1.SandboxConditionReady)
}

// statusUrgency says how soon a changed status has to be written.
type statusUrgency int

const (
	// statusUnchanged: there is nothing to write.
	statusUnchanged statusUrgency = iota
	// statusRidesAlong: not worth a write of its own, however long it takes for another one to come.
	statusRidesAlong
	// statusRoutine: the Pod was scheduled, which the next state implies.
	statusRoutine
	// statusMayWait: progress of a Pod that is not ready yet, likely to be followed at once by more.
	statusMayWait
	// statusDue: write now.
	statusDue
)

// urgency compares two statuses. Between the creation of a Pod and its readiness a kubelet and a scheduler report several small
// steps within a second; a write for each would double the load of a cold start for nobody's benefit.
func urgency(before, after *agentsv1beta1.SandboxStatus) statusUrgency {
	if equality.Semantic.DeepEqual(before, after) {
		return statusUnchanged
	}
	if isReady(before) || isReady(after) {
		return statusDue
	}
	before, after = before.DeepCopy(), after.DeepCopy()
	before.NodeName = after.NodeName
	if equality.Semantic.DeepEqual(before, after) {
		return statusRidesAlong
	}
	if scheduledAsExpected(before, after) {
		return statusRoutine
	}
	for _, status := range []*agentsv1beta1.SandboxStatus{before, after} {
		dropProgress(status)
	}
	if equality.Semantic.DeepEqual(before, after) {
		return statusMayWait
	}
	return statusDue
}

// scheduledAsExpected says whether nothing but that has changed: the Pod has a node, and perhaps addresses, and neither of the
// statuses tells of anything that keeps it from becoming ready.
func scheduledAsExpected(before, after *agentsv1beta1.SandboxStatus) bool {
	const scheduled = agentsv1beta1.SandboxConditionPodScheduled
	if meta.IsStatusConditionFalse(before.Conditions, scheduled) || !meta.IsStatusConditionTrue(after.Conditions, scheduled) {
		return false
	}
	before, after = before.DeepCopy(), after.DeepCopy()
	for _, status := range []*agentsv1beta1.SandboxStatus{before, after} {
		status.PodIPs = nil
		meta.RemoveStatusCondition(&status.Conditions, scheduled)
	}
	return equality.Semantic.DeepEqual(before, after)
}

// dropProgress removes from the status what a Pod on its way to readiness changes. Its scheduling is part of that, failures
// included: a Pod with a new volume is unschedulable for a moment every time. One that lasts is still told of after the delay.
func dropProgress(status *agentsv1beta1.SandboxStatus) {
	status.PodIPs = nil
	meta.RemoveStatusCondition(&status.Conditions, agentsv1beta1.SandboxConditionPodScheduled)
	if ready := meta.FindStatusCondition(status.Conditions, agentsv1beta1.SandboxConditionReady); ready != nil {
		ready.Message = ""
	}
}

func setCondition(status *agentsv1beta1.SandboxStatus, generation int64, now time.Time, condition metav1.Condition) {
	condition.ObservedGeneration = generation
	condition.LastTransitionTime = metav1.NewTime(now).Rfc3339Copy()
	condition.Message = message.Cut(condition.Message, message.MaxCondition)
	meta.SetStatusCondition(&status.Conditions, condition)
}

func setOrRemoveCondition(status *agentsv1beta1.SandboxStatus, generation int64, now time.Time, conditionType string, condition *metav1.Condition) {
	if condition == nil {
		meta.RemoveStatusCondition(&status.Conditions, conditionType)
		return
	}
	setCondition(status, generation, now, *condition)
}
