// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/message"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/controllertest"
)

func TestConditionsOfEachState(t *testing.T) {
	const (
		notSuspended = "False/NotSuspended: Sandbox is not suspended"
		unscheduled  = "Unknown/PodSchedulingUnknown: Pod has not reported a PodScheduled condition yet"
		undetermined = "Unknown/PodSchedulingUnknown: Pod state is unknown. Pod scheduling cannot be determined"
		scheduled    = "True/PodScheduled: "
		absent       = "absent"
	)
	failure := errors.New("no luck")
	multiple := &multiplePodsError{count: 2}
	running := testSandbox()
	served := testSandbox(wantService(true))
	asleep := testSandbox(suspend)
	service := desiredService(served)
	noIP := func(pod *corev1.Pod) { pod.Status.PodIPs = nil }
	unschedulable := func(pod *corev1.Pod) {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/1 nodes"}}
	}
	wasFinished := testSandbox(withStatus(metav1.Condition{Type: conditionFinished, Status: metav1.ConditionTrue, Reason: "PodSucceeded"}))

	for name, test := range map[string]struct {
		sandbox                               *agentsv1beta1.Sandbox
		observed                              observation
		suspended, finished, scheduled, ready string
	}{
		"create failed": {running, observation{podErr: failure, err: failure},
			notSuspended, absent, undetermined, "False/ReconcilerError: Error seen: no luck"},
		"two errors": {running, observation{podErr: failure, err: errors.Join(failure, errors.New("nor here"))},
			notSuspended, absent, undetermined, "False/ReconcilerError: Error seen: no luck\nnor here"},
		"child invalid": {running, observation{podErr: invalid("Pod"), err: errors.Join(invalid("Pod"))},
			notSuspended, absent, undetermined, "False/InvalidConfiguration: " + invalid("Pod").Error()},
		"two Pods": {running, observation{podErr: multiple, err: errors.Join(failure, multiple), serviceUnknown: true},
			notSuspended, absent, undetermined, "False/MultiplePods: multiple Pods (2) are controlled by this Sandbox; refusing to choose or create a Pod"},
		"nothing, namespace terminating": {running, observation{},
			notSuspended, absent, absent, "False/DependenciesNotReady: Pod does not exist"},
		"just created": {running, observation{pod: testPod(running)},
			notSuspended, absent, unscheduled, "False/DependenciesNotReady: Pod exists with phase: Pending"},
		"unschedulable": {running, observation{pod: testPod(running, unschedulable)},
			notSuspended, absent, "False/Unschedulable: 0/1 nodes", "False/DependenciesNotReady: Pod exists with phase: Pending"},
		"running, not ready": {running, observation{pod: testPod(running, phase(corev1.PodRunning))},
			notSuspended, absent, unscheduled, "False/DependenciesNotReady: Pod is Running but not Ready"},
		"ready without address": {running, observation{pod: testPod(running, ready, noIP)},
			notSuspended, absent, scheduled, "False/DependenciesNotReady: Pod is Ready but has no podIPs yet"},
		"ready": {running, observation{pod: testPod(running, ready)},
			notSuspended, absent, scheduled, "True/DependenciesReady: Pod is Ready"},
		"ready, service": {served, observation{pod: testPod(served, ready), service: service},
			notSuspended, absent, scheduled, "True/DependenciesReady: Pod is Ready; Service Exists"},
		"ready, service kept though not asked for": {running, observation{pod: testPod(running, ready), service: service},
			notSuspended, absent, scheduled, "True/DependenciesReady: Pod is Ready; Service Exists"},
		"ready, service missing": {served, observation{pod: testPod(served, ready)},
			notSuspended, absent, scheduled, "False/DependenciesNotReady: Pod is Ready; Service does not exist"},
		"ready, service failed": {served, observation{pod: testPod(served, ready), serviceUnknown: true, err: failure},
			notSuspended, absent, scheduled, "False/ReconcilerError: Error seen: no luck"},
		"pending, service": {served, observation{pod: testPod(served), service: service},
			notSuspended, absent, unscheduled, "False/DependenciesNotReady: Pod exists with phase: Pending; Service Exists"},
		"succeeded": {running, observation{pod: testPod(running, ready, phase(corev1.PodSucceeded))},
			notSuspended, "True/PodSucceeded: Pod completed successfully", scheduled, "False/PodSucceeded: Pod completed successfully"},
		"failed": {running, observation{pod: testPod(running, ready, phase(corev1.PodFailed))},
			notSuspended, "True/PodFailed: Pod failed", scheduled, "False/PodFailed: Pod failed"},
		"terminating": {running, observation{pod: testPod(running, ready, terminating)},
			notSuspended, absent, scheduled, "False/DependenciesNotReady: Pod is Running but not Ready; Pod is being deleted"},
		"ended by its deletion": {running, observation{pod: testPod(running, ready, terminating, phase(corev1.PodFailed))},
			notSuspended, absent, scheduled, "False/DependenciesNotReady: Pod exists with phase: Failed; Pod is being deleted"},
		"ended before its deletion": {wasFinished, observation{pod: testPod(running, terminating, phase(corev1.PodSucceeded))},
			notSuspended, "True/PodSucceeded: Pod completed successfully", unscheduled, "False/PodSucceeded: Pod completed successfully"},
		"finished Pod gone": {wasFinished, observation{pod: testPod(running)},
			notSuspended, absent, unscheduled, "False/DependenciesNotReady: Pod exists with phase: Pending"},
		"suspending": {asleep, observation{pod: testPod(asleep, ready, terminating)},
			"False/PodTerminating: Pod is terminating. Sandbox is suspending", absent, scheduled, "False/SandboxSuspended: Sandbox is suspending"},
		"suspending, service failed": {asleep, observation{pod: testPod(asleep, ready, terminating), serviceUnknown: true, err: failure},
			"False/PodTerminating: Pod is terminating. Sandbox is suspending", absent, scheduled, "False/ReconcilerError: Error seen: no luck"},
		"suspended": {asleep, observation{},
			"True/PodTerminated: Pod has been terminated. Sandbox is suspended", absent, absent, "False/SandboxSuspended: Sandbox is suspended"},
		"suspended, claims failed": {asleep, observation{err: failure},
			"True/PodTerminated: Pod has been terminated. Sandbox is suspended", absent, absent, "False/ReconcilerError: Error seen: no luck"},
		"suspended, lookup failed": {asleep, observation{podErr: failure, err: failure},
			"Unknown/PodStateUnknown: Pod state is unknown. Sandbox suspension cannot be confirmed", absent, undetermined, "False/ReconcilerError: Error seen: no luck"},
		"suspended, Pod of somebody else": {asleep, observation{pod: testPod(asleep, ready, stranger, phase(corev1.PodSucceeded))},
			"False/PodNotOwned: Refused to delete pod because it is not owned by this sandbox", absent, absent, "False/SandboxSuspended: Sandbox is suspending"},
	} {
		t.Run(name, func(t *testing.T) {
			status := observedStatus(test.sandbox, &test.observed, "cluster.local", testTime())
			got := map[string]string{}
			for _, conditionType := range []string{conditionSuspended, conditionFinished, conditionPodScheduled, conditionReady} {
				got[conditionType] = controllertest.DescribeCondition(status.Conditions, conditionType)
			}
			want := map[string]string{
				conditionSuspended: test.suspended, conditionFinished: test.finished, conditionPodScheduled: test.scheduled, conditionReady: test.ready,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("conditions differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFirstConditionsComeInTheDocumentedOrder(t *testing.T) {
	sandbox := testSandbox()
	status := observedStatus(sandbox, &observation{pod: testPod(sandbox, ready, phase(corev1.PodSucceeded))}, "cluster.local", testTime())
	var got []string
	for _, condition := range status.Conditions {
		got = append(got, condition.Type)
	}
	if diff := cmp.Diff([]string{conditionSuspended, conditionFinished, conditionPodScheduled, conditionReady}, got); diff != "" {
		t.Errorf("order differs (-want +got):\n%s", diff)
	}
}

func TestTransitionTimeMovesWithTheStatusOnly(t *testing.T) {
	sandbox := testSandbox()
	sandbox.Status = *observedStatus(sandbox, &observation{pod: testPod(sandbox)}, "cluster.local", testTime())
	later := testTime().Add(time.Minute)

	sandbox.Status = *observedStatus(sandbox, &observation{pod: testPod(sandbox, phase(corev1.PodRunning))}, "cluster.local", later)
	if got := meta.FindStatusCondition(sandbox.Status.Conditions, conditionReady).LastTransitionTime; !got.Time.Equal(testTime()) {
		t.Errorf("a new message moved the transition time to %v", got)
	}
	sandbox.Status = *observedStatus(sandbox, &observation{pod: testPod(sandbox, ready)}, "cluster.local", later)
	if got := meta.FindStatusCondition(sandbox.Status.Conditions, conditionReady).LastTransitionTime; !got.Time.Equal(later) {
		t.Errorf("a new status left the transition time at %v", got)
	}
}

func TestLongErrorsFitIntoAConditionMessage(t *testing.T) {
	err := errors.New(strings.Repeat("x", message.MaxCondition+1))
	status := observedStatus(testSandbox(), &observation{podErr: err, err: err}, "cluster.local", testTime())
	if got := len(meta.FindStatusCondition(status.Conditions, conditionReady).Message); got != message.MaxCondition {
		t.Errorf("the message has %d bytes", got)
	}
}
