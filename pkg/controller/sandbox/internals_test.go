// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
)

func TestControllerIndexIgnoresTheVersionButNotGroupAndKind(t *testing.T) {
	index := controllerIndexers()[controllerIndex]
	for apiVersion, want := range map[string][]string{
		"agents.x-k8s.io/v1beta1":            {"tenant/sandbox-uid"},
		"agents.x-k8s.io/v1alpha1":           {"tenant/sandbox-uid"},
		"extensions.agents.x-k8s.io/v1beta1": nil,
		"v1":                                 nil,
	} {
		pod := testPod(testSandbox(), func(p *corev1.Pod) { p.OwnerReferences[0].APIVersion = apiVersion })
		got, err := index(pod)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("keys with %s differ (-want +got):\n%s", apiVersion, diff)
		}
	}
	for name, change := range map[string]func(*corev1.Pod){
		"unowned": disown, "not the controller": func(p *corev1.Pod) { p.OwnerReferences[0].Controller = nil },
	} {
		if got, err := index(testPod(testSandbox(), change)); err != nil || got != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestEventsOfAChildReachItsSandbox(t *testing.T) {
	want := cache.NewObjectName(testNamespace, testName)
	for name, pod := range map[string]*corev1.Pod{
		"owned, any name":          testPod(testSandbox(), func(p *corev1.Pod) { p.Name = "legacy" }),
		"owned by an earlier one":  testPod(testSandbox(func(s *agentsv1beta1.Sandbox) { s.UID = "earlier" })),
		"unowned, in the way":      testPod(testSandbox(), disown),
		"a stranger's, in the way": testPod(testSandbox(), stranger),
	} {
		if got := sandboxOf(pod); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestOwnStatusWritesCauseNoPass(t *testing.T) {
	base := testSandbox()
	for name, test := range map[string]struct {
		change func(*agentsv1beta1.Sandbox)
		want   bool
	}{
		"status":      {func(s *agentsv1beta1.Sandbox) { s.Status.NodeName, s.ResourceVersion = "node-1", "101" }, false},
		"generation":  {func(s *agentsv1beta1.Sandbox) { s.Generation++ }, true},
		"labels":      {func(s *agentsv1beta1.Sandbox) { s.Labels = map[string]string{"a": "b"} }, true},
		"annotations": {func(s *agentsv1beta1.Sandbox) { s.Annotations = map[string]string{"a": "b"} }, true},
		"owner":       {func(s *agentsv1beta1.Sandbox) { s.OwnerReferences = []metav1.OwnerReference{strangerRef()} }, true},
		"recreated":   {func(s *agentsv1beta1.Sandbox) { s.UID = "later" }, true},
	} {
		if got := sandboxChanged(base, testSandbox(test.change)); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestProgressIsHeldOnceForTheDelay(t *testing.T) {
	p, now := newProgress(), testTime()
	if got := p.hold(testUID, now, statusDelay); got != statusDelay {
		t.Errorf("first: %v", got)
	}
	if got := p.hold(testUID, now.Add(statusDelay/4), statusDelay); got != statusDelay*3/4 {
		t.Errorf("during: %v", got)
	}
	if got := p.hold(testUID, now.Add(2*statusDelay), statusDelay); got != 0 {
		t.Errorf("after: %v", got)
	}
	p.written(testUID)
	if got := p.hold(testUID, now.Add(3*statusDelay), statusDelay); got != statusDelay {
		t.Errorf("anew: %v", got)
	}
	p.forget(testUID)
	if len(p.heldSince) != 0 {
		t.Error("a deleted Sandbox is remembered")
	}
}

func TestTrimKeepsWhatIsRead(t *testing.T) {
	pod := testPod(testSandbox(), ready, podReason("R", "m"), disrupted("D", "m"), container("broken", waitingFor("W", "m"), endedWith(1, "Error")))
	pod.Status.ContainerStatuses[0].LastTerminationState = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}}
	full := pod.DeepCopy()
	full.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
	full.Spec.Containers = []corev1.Container{{Name: "main"}}
	full.Status.Conditions = append(full.Status.Conditions, corev1.PodCondition{Type: corev1.ContainersReady})
	full.Status.ContainerStatuses = append(full.Status.ContainerStatuses, corev1.ContainerStatus{Name: "main", Ready: true, State: started()})
	broken := &full.Status.ContainerStatuses[0]
	broken.LastTerminationState, broken.Image, broken.RestartCount = endedWith(1, "Error"), "example", 7
	got, err := trim(full)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(pod, got); diff != "" {
		t.Errorf("Pod differs (-want +got):\n%s", diff)
	}
	tombstone := cache.DeletedFinalStateUnknown{Key: "k"}
	if got, err := trim(tombstone); err != nil || got != any(tombstone) {
		t.Errorf("tombstone: %v, %v", got, err)
	}
}
