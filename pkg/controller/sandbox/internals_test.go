// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

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

func TestRecentWritesBridgeTheLagOfTheCache(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(testTime())
	version := func(v string) *corev1.Pod {
		return testPod(testSandbox(), func(p *corev1.Pod) { p.ResourceVersion = v })
	}
	name := cache.MetaObjectToName(version("1"))
	for title, test := range map[string]struct {
		write func(*recentWrites[*corev1.Pod])
		// cached is the version in the cache, empty if there is none.
		cached, want string
	}{
		"no write":                             {func(*recentWrites[*corev1.Pod]) {}, "5", "5"},
		"cache behind an update":               {func(w *recentWrites[*corev1.Pod]) { w.updated(version("10")) }, "9", "10"},
		"cache caught up":                      {func(w *recentWrites[*corev1.Pod]) { w.updated(version("10")) }, "10", "10"},
		"cache ahead":                          {func(w *recentWrites[*corev1.Pod]) { w.updated(version("10")) }, "11", "11"},
		"created, not in the cache":            {func(w *recentWrites[*corev1.Pod]) { w.created(version("10")) }, "", "10"},
		"updated, no longer in the cache":      {func(w *recentWrites[*corev1.Pod]) { w.updated(version("10")) }, "", ""},
		"created, delivered and deleted again": {func(w *recentWrites[*corev1.Pod]) { w.created(version("10")); w.delivered(version("12")) }, "", ""},
		"created, then seen to be deleted":     {func(w *recentWrites[*corev1.Pod]) { w.created(version("10")); w.deleted(version("11")) }, "", ""},
		"created, an older version delivered":  {func(w *recentWrites[*corev1.Pod]) { w.created(version("10")); w.delivered(version("9")) }, "", "10"},
		"created, an earlier Pod deleted": {func(w *recentWrites[*corev1.Pod]) {
			w.created(version("10"))
			w.deleted(testPod(testSandbox(), func(p *corev1.Pod) { p.UID = "earlier" }))
		}, "", "10"},
		"created long ago": {func(w *recentWrites[*corev1.Pod]) {
			w.created(version("10"))
			clock.SetTime(testTime().Add(creationTimeout))
		}, "", ""},
		"versions that cannot be compared": {func(w *recentWrites[*corev1.Pod]) { w.updated(version("x")) }, "5", "5"},
	} {
		t.Run(title, func(t *testing.T) {
			clock.SetTime(testTime())
			writes := newRecentWrites[*corev1.Pod](clock)
			test.write(writes)
			var cached *corev1.Pod
			if test.cached != "" {
				cached = version(test.cached)
			}
			got, found := writes.latest(name, cached, cached != nil)
			if found != (test.want != "") || found && got.ResourceVersion != test.want {
				t.Errorf("found %v, %v", found, got)
			}
		})
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

func TestFirstReadinessComesOnce(t *testing.T) {
	p := newProgress()
	if p.firstReady(testUID) {
		t.Error("a Sandbox from before the start of the process is taken for new")
	}
	p.started(testUID)
	if !p.firstReady(testUID) || p.firstReady(testUID) {
		t.Error("not exactly once")
	}
}

func TestErrorClasses(t *testing.T) {
	wrapped := func(err error) error { return fmt.Errorf("creating: %w", err) }
	for name, test := range map[string]struct {
		err                error
		terminal, outdated bool
	}{
		"invalid":              {wrapped(invalid("Pod")), true, false},
		"all invalid":          {errors.Join(invalid("Pod"), wrapped(invalid("Service"))), true, false},
		"invalid and other":    {errors.Join(invalid("Pod"), unavailable()), false, false},
		"unavailable":          {wrapped(unavailable()), false, false},
		"conflict":             {wrapped(apierrors.NewConflict(corev1.Resource("pods"), testName, nil)), false, true},
		"exists, then did not": {wrapped(apierrors.NewAlreadyExists(corev1.Resource("pods"), testName)), false, true},
		"stale":                {wrapped(errStale), false, true},
		"nil":                  {nil, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := terminal(test.err); got != test.terminal {
				t.Errorf("terminal is %v", got)
			}
			if got := outdated(test.err); got != test.outdated {
				t.Errorf("outdated is %v", got)
			}
		})
	}
}

func TestMissingAPIIsNotAMissingObject(t *testing.T) {
	if objectNotFound(apiNotServed()) {
		t.Error("404 for the API counts as 404 for the object")
	}
	if !objectNotFound(fmt.Errorf("getting: %w", apierrors.NewNotFound(agentsv1beta1.Resource("sandboxes"), testName))) {
		t.Error("404 for the object does not count")
	}
}

func TestMergePatchIsBoundToTheObject(t *testing.T) {
	before := testPod(testSandbox())
	after := before.DeepCopy()
	after.Labels = map[string]string{"a": "b"}
	for lock, want := range map[patchLock]string{
		anyVersion:  `{"metadata":{"labels":{"a":"b","agents.x-k8s.io/sandbox-name-hash":null},"uid":"pod-uid"}}`,
		sameVersion: `{"metadata":{"labels":{"a":"b","agents.x-k8s.io/sandbox-name-hash":null},"resourceVersion":"61","uid":"pod-uid"}}`,
	} {
		got, err := mergePatch(before, after, lock)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("patch differs (-want +got):\n%s", diff)
		}
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

func TestSoonest(t *testing.T) {
	if got := soonest(0, 3*time.Second, 0, time.Second); got != time.Second {
		t.Errorf("soonest is %v", got)
	}
	if got := soonest(0, 0); got != 0 {
		t.Errorf("soonest of nothing is %v", got)
	}
}
