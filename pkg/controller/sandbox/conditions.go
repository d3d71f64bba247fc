// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/utils/ptr"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/failure"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/sandboxpod"
)

// outOfDateNote is appended to the message of the Ready condition while the Pod is not what the Sandbox asks for.
const outOfDateNote = "; the Pod was made from an earlier podTemplate"

// readyCondition says whether the Sandbox can be used, and if not, the first reason that applies: an error, suspension, the end
// of the Pod, or something that is not there yet.
func readyCondition(sandbox *agentsv1beta1.Sandbox, o *observation, finished *metav1.Condition) metav1.Condition {
	notReady := func(reason, message string) metav1.Condition {
		return metav1.Condition{Type: agentsv1beta1.SandboxConditionReady, Status: metav1.ConditionFalse, Reason: reason, Message: message}
	}
	switch {
	case errors.As(o.err, new(*multiplePodsError)):
		return notReady(agentsv1beta1.SandboxReasonMultiplePods, o.podErr.Error())
	case failure.Terminal(o.err):
		return notReady(agentsv1beta1.SandboxReasonInvalidConfiguration, o.err.Error())
	case o.err != nil:
		return notReady(agentsv1beta1.SandboxReasonReconcilerError, "Error seen: "+o.err.Error())
	case suspended(sandbox) && o.pod != nil:
		return notReady(agentsv1beta1.SandboxReasonSuspended, "Sandbox is suspending")
	case suspended(sandbox):
		return notReady(agentsv1beta1.SandboxReasonSuspended, "Sandbox is suspended")
	case finished != nil:
		return notReady(finished.Reason, finished.Message+podNote(sandbox, o.pod))
	}
	ready, message := dependenciesReady(sandbox, o)
	if pod := o.ownedPod(sandbox); pod != nil {
		message += podNote(sandbox, pod)
		if !ready {
			message = explain(message, messageForThisSpec(sandbox, agentsv1beta1.SandboxConditionReady), explainNotReady(pod))
		}
	}
	if !ready {
		return notReady(agentsv1beta1.SandboxReasonDependenciesNotReady, message)
	}
	return metav1.Condition{
		Type:    agentsv1beta1.SandboxConditionReady,
		Status:  metav1.ConditionTrue,
		Reason:  agentsv1beta1.SandboxReasonDependenciesReady,
		Message: message,
	}
}

// podNote says that the Pod is not made from the podTemplate that the Sandbox has now. One that is being deleted is about to be
// replaced by one that is.
func podNote(sandbox *agentsv1beta1.Sandbox, pod *corev1.Pod) string {
	if pod.DeletionTimestamp == nil && sandboxpod.OutOfDate(sandbox, pod) {
		return outOfDateNote
	}
	return ""
}

// messageForThisSpec returns the message of a condition, if the condition is about the spec that the Sandbox has now.
func messageForThisSpec(sandbox *agentsv1beta1.Sandbox, conditionType string) string {
	condition := meta.FindStatusCondition(sandbox.Status.Conditions, conditionType)
	if condition == nil || condition.ObservedGeneration != sandbox.Generation {
		return ""
	}
	return condition.Message
}

// dependenciesReady looks at the Pod and, if there has to be one, at the Service.
func dependenciesReady(sandbox *agentsv1beta1.Sandbox, o *observation) (bool, string) {
	ready, message := podReadiness(o.ownedPod(sandbox))
	switch {
	case o.service != nil:
		return ready, message + "; Service Exists"
	case ptr.Deref(sandbox.Spec.Service, false):
		return false, message + "; Service does not exist"
	default:
		return ready, message
	}
}

func podReadiness(pod *corev1.Pod) (bool, string) {
	switch {
	case pod == nil:
		return false, "Pod does not exist"
	case pod.Status.Phase != corev1.PodRunning:
		return false, "Pod exists with phase: " + string(pod.Status.Phase)
	case pod.DeletionTimestamp != nil || !podConditionTrue(pod, corev1.PodReady):
		return false, "Pod is Running but not Ready"
	case len(pod.Status.PodIPs) == 0:
		return false, "Pod is Ready but has no podIPs yet"
	default:
		return true, "Pod is Ready"
	}
}

// suspendedCondition says how far a suspension has come. It looks at the Pod only: a suspended Sandbox whose Service could not
// be repaired is suspended all the same.
func suspendedCondition(sandbox *agentsv1beta1.Sandbox, o *observation) metav1.Condition {
	condition := metav1.Condition{Type: agentsv1beta1.SandboxConditionSuspended, Status: metav1.ConditionFalse}
	switch {
	case !suspended(sandbox):
		condition.Reason, condition.Message = agentsv1beta1.SandboxReasonNotSuspended, "Sandbox is not suspended"
	case o.ownedPod(sandbox) != nil:
		condition.Reason, condition.Message = agentsv1beta1.SandboxReasonPodTerminating, "Pod is terminating. Sandbox is suspending"
	case o.pod != nil:
		condition.Reason, condition.Message = agentsv1beta1.SandboxReasonPodNotOwned, "Refused to delete pod because it is not owned by this sandbox"
	case o.podErr != nil:
		condition.Status = metav1.ConditionUnknown
		condition.Reason, condition.Message = agentsv1beta1.SandboxReasonPodStateUnknown, "Pod state is unknown. Sandbox suspension cannot be confirmed"
	default:
		condition.Status = metav1.ConditionTrue
		condition.Reason, condition.Message = agentsv1beta1.SandboxReasonPodTerminated, "Pod has been terminated. Sandbox is suspended"
	}
	return condition
}

// podScheduledCondition mirrors the condition of the Pod, so that whoever may read the Sandbox can see why it does not start
// without any right to read Pods. Nil if there is nothing to say.
func podScheduledCondition(pod *corev1.Pod, o *observation) *metav1.Condition {
	condition := &metav1.Condition{
		Type:   agentsv1beta1.SandboxConditionPodScheduled,
		Status: metav1.ConditionUnknown,
		Reason: agentsv1beta1.SandboxReasonPodSchedulingUnknown,
	}
	if pod == nil {
		if o.pod != nil || o.podErr == nil {
			return nil
		}
		condition.Message = "Pod state is unknown. Pod scheduling cannot be determined"
		return condition
	}
	scheduled := podCondition(pod, corev1.PodScheduled)
	if scheduled == nil {
		condition.Message = "Pod has not reported a PodScheduled condition yet"
		return condition
	}
	switch scheduled.Status {
	case corev1.ConditionTrue:
		condition.Status, condition.Reason = metav1.ConditionTrue, agentsv1beta1.SandboxReasonPodScheduled
	case corev1.ConditionFalse:
		condition.Status = metav1.ConditionFalse
	}
	if validReason(scheduled.Reason) {
		condition.Reason = scheduled.Reason
	}
	condition.Message = scheduled.Message
	return condition
}

// validReason says whether a condition of a Sandbox may have the reason. Those of a Pod are free text, and one that is not allowed here
// would make the API server refuse the whole status.
func validReason(reason string) bool {
	condition := metav1.Condition{
		Type: agentsv1beta1.SandboxConditionPodScheduled, Status: metav1.ConditionUnknown, Reason: reason, LastTransitionTime: metav1.Unix(0, 0),
	}
	return len(metav1validation.ValidateCondition(condition, nil)) == 0
}

// finishedCondition says that the Pod ended by itself. Nil if it did not. A Pod that is being deleted reaches a final phase too,
// on its way out; that counts only if it had finished before.
func finishedCondition(before *agentsv1beta1.SandboxStatus, pod *corev1.Pod) *metav1.Condition {
	if pod == nil {
		return nil
	}
	if pod.DeletionTimestamp != nil && !meta.IsStatusConditionTrue(before.Conditions, agentsv1beta1.SandboxConditionFinished) {
		return nil
	}
	condition := &metav1.Condition{Type: agentsv1beta1.SandboxConditionFinished, Status: metav1.ConditionTrue}
	switch pod.Status.Phase {
	case corev1.PodSucceeded:
		condition.Reason, condition.Message = agentsv1beta1.SandboxReasonPodSucceeded, "Pod completed successfully"
	case corev1.PodFailed:
		condition.Reason, condition.Message = agentsv1beta1.SandboxReasonPodFailed, explain("Pod failed", "", explainFailed(pod))
	default:
		return nil
	}
	return condition
}

func expiredCondition() metav1.Condition {
	return metav1.Condition{
		Type:    agentsv1beta1.SandboxConditionReady,
		Status:  metav1.ConditionFalse,
		Reason:  agentsv1beta1.SandboxReasonExpired,
		Message: "Sandbox has expired",
	}
}

func podCondition(pod *corev1.Pod, conditionType corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == conditionType {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

func podConditionTrue(pod *corev1.Pod, conditionType corev1.PodConditionType) bool {
	condition := podCondition(pod, conditionType)
	return condition != nil && condition.Status == corev1.ConditionTrue
}
