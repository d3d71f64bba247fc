// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/message"
)

// maxDetail is the longest text, in bytes, that is taken over from a Pod into a condition of the Sandbox.
const maxDetail = 512

// Reasons of waiting containers, as kubelets report them.
const (
	waitingContainerCreating = "ContainerCreating"
	waitingPodInitializing   = "PodInitializing"
	waitingCrashLoopBackOff  = "CrashLoopBackOff"
	waitingRunContainerError = "RunContainerError"
	waitingImagePullBackOff  = "ImagePullBackOff"
	waitingErrImagePull      = "ErrImagePull"
	waitingRegistryAway      = "RegistryUnavailable"
	waitingBadSignature      = "SignatureValidationFailed"
)

// readinessGatesNotReady is the reason of a Pod's Ready condition when nothing but a readiness gate keeps it from being True.
const readinessGatesNotReady = "ReadinessGatesNotReady"

// explanation is what a Pod says about why it is not ready, or has failed. It is for those who may read the Sandbox and not the Pod.
type explanation struct {
	// subject is the part of the Pod that is at fault, with a colon and a space, or empty for the Pod itself.
	subject string
	// reason is the kind of fault. Empty: there was one, and at the moment the Pod does not say whether it is over.
	reason string
	// detail is the text that came with the reason. It may be another each time that the same fault is reported.
	detail string
}

// explain appends the first explanation to the message of a condition. A fault that is told of already is not told of again in other
// words: kubelets put counters, delays and varying errors into theirs, and every new message is a write. before is the message that
// the condition had, for the same spec.
func explain(message, before string, explanations []explanation) string {
	for _, e := range explanations {
		if e.continues(message, before) {
			return before
		}
	}
	for _, e := range explanations {
		if e.reason != "" {
			return message + e.String()
		}
	}
	return message
}

func (e explanation) String() string {
	text := "; " + e.subject + e.reason
	if e.detail != "" {
		text += ": " + e.detail
	}
	return text
}

// continues says whether before is the message with this explanation, but for the detail.
func (e explanation) continues(message, before string) bool {
	rest, ok := strings.CutPrefix(before, message+"; "+e.subject+e.reason)
	if e.reason == "" {
		return ok && e.subject != "" && rest != ""
	}
	return ok && (rest == "" || strings.HasPrefix(rest, ": "))
}

// explainNotReady returns what keeps the Pod from being ready, as far as it says so. The Pod as a whole comes before its containers,
// and these come in the order in which they start.
func explainNotReady(pod *corev1.Pod) []explanation {
	if whole := explainPod(pod); whole.reason != "" {
		return []explanation{whole}
	}
	if pod.DeletionTimestamp != nil {
		return []explanation{{reason: "Pod is being deleted"}}
	}
	var explanations []explanation
	for _, status := range containerStatuses(pod) {
		if e := explainContainer(&status); e != (explanation{}) {
			explanations = append(explanations, e)
		}
	}
	if ready := podCondition(pod, corev1.PodReady); ready != nil && ready.Reason == readinessGatesNotReady {
		explanations = append(explanations, explanation{reason: ready.Reason, detail: detail(ready.Message)})
	}
	return explanations
}

// explainFailed returns why the Pod failed: what ended it from outside, or else the container that ended badly.
func explainFailed(pod *corev1.Pod) []explanation {
	if whole := explainPod(pod); whole.reason != "" {
		return []explanation{whole}
	}
	for _, status := range containerStatuses(pod) {
		if end := status.State.Terminated; end != nil && end.ExitCode != 0 {
			return []explanation{{subject: containerSubject(&status), reason: exit(end)}}
		}
	}
	return nil
}

// explainPod returns what happened to the Pod as a whole: it was evicted, preempted, or its node was lost.
func explainPod(pod *corev1.Pod) explanation {
	if pod.Status.Reason != "" {
		return explanation{reason: pod.Status.Reason, detail: detail(pod.Status.Message)}
	}
	if disruption := podCondition(pod, corev1.DisruptionTarget); disruption != nil && disruption.Status == corev1.ConditionTrue {
		return explanation{reason: disruption.Reason, detail: detail(disruption.Message)}
	}
	return explanation{}
}

// explainContainer returns why a container that is not ready is not running, or nothing. One that was restarted crashes over and
// over or is on its way up; kubelets show three states in turn for that, and only CrashLoopBackOff tells which it is.
func explainContainer(status *corev1.ContainerStatus) explanation {
	e := explanation{subject: containerSubject(status)}
	waiting, ended, last := status.State.Waiting, status.State.Terminated, status.LastTerminationState.Terminated
	switch {
	case waiting != nil && last != nil && (waiting.Reason == waitingCrashLoopBackOff || waiting.Reason == waitingRunContainerError):
		e.reason, e.detail = waitingCrashLoopBackOff, exit(last)
	case waiting != nil:
		e.reason, e.detail = explainWaiting(waiting)
	case ended != nil && ended.ExitCode != 0 && last != nil:
		// The delay comes next. To wait for it would cost a Sandbox that is ready between crashes a write more for each.
		e.reason, e.detail = waitingCrashLoopBackOff, exit(ended)
	case ended != nil && ended.ExitCode != 0:
		e.reason = exit(ended)
	}
	if e.reason == "" && last == nil {
		return explanation{}
	}
	return e
}

// explainWaiting returns the reason and the detail of a waiting container. What every start goes through explains nothing. Between two
// attempts to get an image, the failure and the wait for the next attempt are the same fault.
func explainWaiting(waiting *corev1.ContainerStateWaiting) (string, string) {
	switch waiting.Reason {
	case waitingContainerCreating, waitingPodInitializing:
		return "", ""
	case waitingCrashLoopBackOff:
		// The message is about the delay until the next attempt, which grows.
		return waiting.Reason, ""
	case waitingErrImagePull, waitingRegistryAway, waitingBadSignature:
		return waitingImagePullBackOff, detail(waiting.Message)
	case waitingImagePullBackOff:
		if _, cause, ok := strings.Cut(waiting.Message, waitingErrImagePull+": "); ok {
			return waiting.Reason, detail(cause)
		}
	}
	return waiting.Reason, detail(waiting.Message)
}

func containerSubject(status *corev1.ContainerStatus) string {
	return fmt.Sprintf("container %q: ", status.Name)
}

// exit describes the end of a container by its exit code. The termination message is left out: it may be the end of a log.
func exit(end *corev1.ContainerStateTerminated) string {
	if end.Reason == "" {
		return fmt.Sprintf("exit code %d", end.ExitCode)
	}
	return fmt.Sprintf("exit code %d (%s)", end.ExitCode, end.Reason)
}

// containerStatuses returns the statuses of containers in the order in which they start.
func containerStatuses(pod *corev1.Pod) []corev1.ContainerStatus {
	statuses := make([]corev1.ContainerStatus, 0, len(pod.Status.InitContainerStatuses)+len(pod.Status.ContainerStatuses))
	return append(append(statuses, pod.Status.InitContainerStatuses...), pod.Status.ContainerStatuses...)
}

// detail makes one line of bounded length of a text.
func detail(text string) string {
	return message.Cut(strings.Join(strings.Fields(text), " "), maxDetail)
}

// trimContainerStatuses keeps, of the containers that are not ready, what explanations are made from.
func trimContainerStatuses(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	var kept []corev1.ContainerStatus
	for i := range statuses {
		if status := &statuses[i]; !status.Ready {
			kept = append(kept, corev1.ContainerStatus{
				Name:                 status.Name,
				State:                trimContainerState(&status.State),
				LastTerminationState: trimContainerState(&status.LastTerminationState),
			})
		}
	}
	return kept
}

func trimContainerState(state *corev1.ContainerState) corev1.ContainerState {
	trimmed := corev1.ContainerState{Waiting: state.Waiting}
	if end := state.Terminated; end != nil {
		trimmed.Terminated = &corev1.ContainerStateTerminated{ExitCode: end.ExitCode, Reason: end.Reason}
	}
	return trimmed
}
