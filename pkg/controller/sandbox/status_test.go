// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
)

func TestStatusFieldsOfEachState(t *testing.T) {
	const selector = "agents.x-k8s.io/sandbox-name-hash=0851b8c9"
	before := agentsv1beta1.SandboxStatus{
		PodIPs: []string{"10.0.0.1"}, NodeName: "old", Selector: selector, Service: "s1", ServiceFQDN: "s1.tenant.svc.cluster.local",
	}
	running := testSandbox(func(s *agentsv1beta1.Sandbox) { s.Status = before })
	asleep := testSandbox(suspend, func(s *agentsv1beta1.Sandbox) { s.Status = before })
	fresh := testSandbox()

	for name, test := range map[string]struct {
		sandbox  *agentsv1beta1.Sandbox
		observed observation
		want     agentsv1beta1.SandboxStatus
	}{
		"fresh, nothing": {fresh, observation{}, agentsv1beta1.SandboxStatus{}},
		"fresh, Pod":     {fresh, observation{pod: testPod(fresh)}, agentsv1beta1.SandboxStatus{Selector: selector}},
		"addresses in the order of the Pod": {running, observation{pod: testPod(running, ready)},
			agentsv1beta1.SandboxStatus{Selector: selector, PodIPs: []string{"10.0.0.7", "fd00::7"}, NodeName: "node-1"}},
		"service": {fresh, observation{pod: testPod(fresh), service: desiredService(fresh)},
			agentsv1beta1.SandboxStatus{Selector: selector, Service: "s1", ServiceFQDN: "s1.tenant.svc.example.org"}},
		"Pod gone, service gone": {running, observation{}, agentsv1beta1.SandboxStatus{Selector: selector}},
		"service unknown": {running, observation{serviceUnknown: true},
			agentsv1beta1.SandboxStatus{Selector: selector, Service: "s1", ServiceFQDN: "s1.tenant.svc.cluster.local"}},
		"running, Pod terminating": {running, observation{pod: testPod(running, ready, terminating)}, agentsv1beta1.SandboxStatus{Selector: selector}},
		"suspended, Pod terminating": {asleep, observation{pod: testPod(asleep, ready, terminating)},
			agentsv1beta1.SandboxStatus{Selector: selector, PodIPs: []string{"10.0.0.7", "fd00::7"}, NodeName: "node-1"}},
		"suspended, Pod of somebody else": {asleep, observation{pod: testPod(asleep, ready, stranger)}, agentsv1beta1.SandboxStatus{Selector: selector}},
	} {
		t.Run(name, func(t *testing.T) {
			got := observedStatus(test.sandbox, &test.observed, "example.org", testTime())
			got.Conditions = nil
			if diff := cmp.Diff(&test.want, got); diff != "" {
				t.Errorf("status differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStatusIsWrittenAsSoonAsItMatters(t *testing.T) {
	sandbox, asleep := testSandbox(), testSandbox(suspend)
	status := func(sandbox *agentsv1beta1.Sandbox, changes ...func(*corev1.Pod)) *agentsv1beta1.SandboxStatus {
		return observedStatus(sandbox, &observation{pod: testPod(sandbox, changes...)}, "cluster.local", testTime())
	}
	scheduled := func(value corev1.ConditionStatus) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: value, Reason: "R"}}
		}
	}
	onNode := func(pod *corev1.Pod) { pod.Spec.NodeName = "node-1" }
	withIP := func(pod *corev1.Pod) { pod.Status.PodIPs = []corev1.PodIP{{IP: "10.0.0.8"}} }
	newGeneration := func() *agentsv1beta1.SandboxStatus {
		return status(testSandbox(func(s *agentsv1beta1.Sandbox) { s.Generation++ }))
	}

	for name, test := range map[string]struct {
		before, after *agentsv1beta1.SandboxStatus
		want          statusUrgency
	}{
		"same":                       {status(sandbox), status(sandbox), statusUnchanged},
		"first":                      {&agentsv1beta1.SandboxStatus{}, status(sandbox), statusDue},
		"node alone":                 {status(sandbox), status(sandbox, onNode), statusRidesAlong},
		"scheduled":                  {status(sandbox), status(sandbox, onNode, scheduled(corev1.ConditionTrue)), statusRoutine},
		"scheduled, with address":    {status(sandbox), status(sandbox, onNode, withIP, scheduled(corev1.ConditionTrue)), statusRoutine},
		"scheduled, in trouble":      {status(sandbox), status(sandbox, scheduled(corev1.ConditionTrue), container("main", waitingFor("ErrImagePull", ""), never())), statusMayWait},
		"scheduled and running":      {status(sandbox), status(sandbox, scheduled(corev1.ConditionTrue), phase(corev1.PodRunning)), statusMayWait},
		"started":                    {status(sandbox), status(sandbox, phase(corev1.PodRunning)), statusMayWait},
		"address":                    {status(sandbox), status(sandbox, withIP), statusMayWait},
		"unschedulable":              {status(sandbox), status(sandbox, scheduled(corev1.ConditionFalse)), statusMayWait},
		"schedulable again":          {status(sandbox, scheduled(corev1.ConditionFalse)), status(sandbox, scheduled(corev1.ConditionTrue)), statusMayWait},
		"new generation":             {status(sandbox), newGeneration(), statusDue},
		"ready":                      {status(sandbox), status(sandbox, ready), statusDue},
		"not ready any more":         {status(sandbox, ready), status(sandbox, ready, phase(corev1.PodPending)), statusDue},
		"new address of a ready Pod": {status(sandbox, ready), status(sandbox, ready, withIP), statusDue},
		"finished":                   {status(sandbox), status(sandbox, phase(corev1.PodFailed)), statusDue},
		"suspending":                 {status(sandbox), status(asleep), statusDue},
	} {
		t.Run(name, func(t *testing.T) {
			if got := urgency(test.before, test.after); got != test.want {
				t.Errorf("urgency is %d, want %d", got, test.want)
			}
		})
	}
}
