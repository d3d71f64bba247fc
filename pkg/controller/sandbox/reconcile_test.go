// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ktesting "k8s.io/client-go/testing"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/failure"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/namespace"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/recent"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/controllertest"
)

const (
	conditionReady        = agentsv1beta1.SandboxConditionReady
	conditionSuspended    = agentsv1beta1.SandboxConditionSuspended
	conditionPodScheduled = agentsv1beta1.SandboxConditionPodScheduled
	conditionFinished     = agentsv1beta1.SandboxConditionFinished
)

func invalid(resource string) error {
	return apierrors.NewInvalid(schema.GroupKind{Kind: resource}, testName, field.ErrorList{field.Required(field.NewPath("spec"), "")})
}

func unavailable() error { return apierrors.NewServiceUnavailable("no endpoints") }

func TestColdCreateCostsOnePodAndTwoStatusWrites(t *testing.T) {
	f := newFixture(t).Everywhere(testSandbox())

	f.MustPass()
	f.WantRequests("create pods", "patch sandboxes/status")
	sandbox := f.syncSandbox()
	var order []string
	for _, condition := range sandbox.Status.Conditions {
		order = append(order, condition.Type)
		if condition.ObservedGeneration != sandbox.Generation {
			t.Errorf("%s has observedGeneration %d", condition.Type, condition.ObservedGeneration)
		}
	}
	if diff := cmp.Diff([]string{conditionSuspended, conditionPodScheduled, conditionReady}, order); diff != "" {
		t.Errorf("conditions are out of order (-want +got):\n%s", diff)
	}
	f.wantCondition(conditionReady, "False/DependenciesNotReady: Pod exists with phase: Pending")
	f.WantEvents("Normal SandboxPodCreated Created Pod s1")

	// Scheduled, then running: too little to write home about, and soon followed by more.
	pod := testPod(sandbox, ready, phase(corev1.PodPending))
	f.InCache(pod)
	if after := f.MustPass(); after != routineDelay {
		t.Errorf("progress is held back for %v", after)
	}
	f.WantRequests()

	f.InCache(testPod(sandbox, ready))
	f.MustPass()
	f.WantRequests("patch sandboxes/status")
	f.wantCondition(conditionReady, "True/DependenciesReady: Pod is Ready")
	f.WantEvents("Normal SandboxReady Sandbox is ready")
	want := agentsv1beta1.SandboxStatus{
		Selector: "agents.x-k8s.io/sandbox-name-hash=" + serviceSelector(sandbox)[agentsv1beta1.SandboxNameHashLabel],
		PodIPs:   []string{"10.0.0.7", "fd00::7"}, NodeName: "node-1", Conditions: f.live().Status.Conditions,
	}
	if diff := cmp.Diff(want, f.live().Status); diff != "" {
		t.Errorf("status differs (-want +got):\n%s", diff)
	}

	f.syncSandbox()
	f.MustPass()
	f.WantRequests()
}

func TestProgressIsWrittenAfterTheDelayIfNothingFollows(t *testing.T) {
	f := newFixture(t).Everywhere(testSandbox())
	f.MustPass()
	f.InCache(testPod(f.syncSandbox(), ready, phase(corev1.PodPending)))
	f.MustPass()
	f.Requests()

	f.clock.SetTime(testTime().Add(routineDelay))
	f.MustPass()
	f.WantRequests("patch sandboxes/status")
	f.wantCondition(conditionPodScheduled, "True/PodScheduled: ")
}

func TestPodTheCacheDoesNotShowYetIsNotCreatedAgain(t *testing.T) {
	f := newFixture(t).Everywhere(testSandbox())
	f.MustPass()
	f.syncSandbox()
	f.Requests()

	f.MustPass()
	f.WantRequests()

	f.clock.SetTime(testTime().Add(recent.CreationTimeout))
	f.MustPass()
	f.WantRequests("create pods", "get pods")
}

func TestPodOfAnEarlierProcessIsFoundByNameAndUID(t *testing.T) {
	f := newFixture(t).Everywhere(testSandbox()).OnServer(testPod(testSandbox(), ready))
	f.MustPass()
	f.WantRequests("create pods", "get pods", "patch sandboxes/status")
	f.wantCondition(conditionReady, "True/DependenciesReady: Pod is Ready")
}

func TestQuotaRefusalDoesNotHideAPodThatExists(t *testing.T) {
	f := newFixture(t).Everywhere(testSandbox()).OnServer(testPod(testSandbox(), ready))
	f.Refuse("create", "pods", apierrors.NewForbidden(corev1.Resource("pods"), testName, nil))
	f.MustPass()
	f.wantCondition(conditionReady, "True/DependenciesReady: Pod is Ready")
}

func TestRefusedPodIsReportedAndRetried(t *testing.T) {
	f := newFixture(t).Everywhere(testSandbox())
	f.Refuse("create", "pods", apierrors.NewForbidden(corev1.Resource("pods"), testName, nil))
	if _, err := f.Pass(); err == nil || failure.Outdated(err) {
		t.Errorf("error is %v", err)
	}
	const message = `pods "s1" is forbidden: <nil>`
	f.wantCondition(conditionReady, `False/ReconcilerError: Error seen: creating pod "s1": `+message)
	f.wantCondition(conditionSuspended, "False/NotSuspended: Sandbox is not suspended")
	f.wantCondition(conditionPodScheduled, "Unknown/PodSchedulingUnknown: Pod state is unknown. Pod scheduling cannot be determined")
	f.WantEvents("Warning SandboxPodCreateFailed Creating Pod s1 failed: " + message)
}

func TestPodOfAStrangerIsLeftAlone(t *testing.T) {
	for name, foreign := range map[string]*corev1.Pod{
		"owned by a ReplicaSet":             testPod(testSandbox(), stranger),
		"owned by an earlier Sandbox":       testPod(testSandbox(func(s *agentsv1beta1.Sandbox) { s.UID = "earlier" })),
		"unowned, without the label":        testPod(testSandbox(), disown, unlabel),
		"unowned, adoptable but not true":   testPod(testSandbox(), disown, unlabel, func(p *corev1.Pod) { p.Labels = map[string]string{agentsv1beta1.AdoptableLabel: "yes"} }),
		"unowned, adoptable but going":      testPod(testSandbox(), disown, terminating),
		"owned, UID right but another kind": testPod(testSandbox(), func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "SandboxClaim" }),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t).Everywhere(testSandbox()).OnServer(foreign)
			if _, err := f.Pass(); err == nil || failure.Outdated(err) {
				t.Errorf("error is %v", err)
			}
			f.WantRequests("create pods", "get pods", "patch sandboxes/status")
			if got := controllertest.DescribeCondition(f.live().Status.Conditions, conditionReady); !strings.HasPrefix(got, "False/ReconcilerError: Error seen: ") {
				t.Errorf("Ready is %s", got)
			}
			if status := f.live().Status; status.Selector != "" || status.PodIPs != nil || status.NodeName != "" {
				t.Errorf("the stranger shows in status: %+v", status)
			}
		})
	}
}

func TestAdoptablePodIsAdoptedUnderLock(t *testing.T) {
	pod := testPod(testSandbox(), disown, ready, func(p *corev1.Pod) {
		p.Labels = map[string]string{agentsv1beta1.AdoptableLabel: "true", "app": "mine"}
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "c", UID: "c"}}
	})
	f := newFixture(t).Everywhere(testSandbox()).OnServer(pod)
	f.MustPass()
	patch := f.patchOf("pods")
	for _, want := range []string{`"resourceVersion":"61"`, `"uid":"pod-uid"`, `"name":"c"`, `"uid":"sandbox-uid"`} {
		if !strings.Contains(patch, want) {
			t.Errorf("patch lacks %s: %s", want, patch)
		}
	}
	f.wantCondition(conditionReady, "True/DependenciesReady: Pod is Ready")
}

// patchOf returns the last patch of a resource.
func (f *fixture) patchOf(resource string) string {
	var patch string
	for _, action := range append(f.Kube.Actions(), f.Server.Actions()...) {
		if p, ok := action.(ktesting.PatchAction); ok && p.GetResource().Resource == resource {
			patch = string(p.GetPatch())
		}
	}
	return patch
}

func TestInvalidChildIsTerminal(t *testing.T) {
	for resource, sandbox := range map[string]*agentsv1beta1.Sandbox{
		"pods":                   testSandbox(),
		"services":               testSandbox(wantService(true)),
		"persistentvolumeclaims": testSandbox(withVolume),
	} {
		t.Run(resource, func(t *testing.T) {
			f := newFixture(t).Everywhere(sandbox)
			f.Refuse("create", resource, invalid(resource))
			if after := f.MustPass(); after != 0 {
				t.Errorf("comes back after %v", after)
			}
			if got := controllertest.DescribeCondition(f.live().Status.Conditions, conditionReady); !strings.HasPrefix(got, "False/InvalidConfiguration: creating ") {
				t.Errorf("Ready is %s", got)
			}
			if before, after := sandbox, f.live(); sandboxChanged(before, after) {
				t.Error("the status write would cause another pass")
			}
		})
	}
}

func TestInvalidChildDoesNotHideARetriableError(t *testing.T) {
	f := newFixture(t).Everywhere(testSandbox(wantService(true)))
	f.Refuse("create", "services", invalid("services"))
	f.Refuse("create", "pods", unavailable())
	if _, err := f.Pass(); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("error is %v", err)
	}
	if got := controllertest.DescribeCondition(f.live().Status.Conditions, conditionReady); !strings.HasPrefix(got, "False/ReconcilerError: ") {
		t.Errorf("Ready is %s", got)
	}
}

func TestTerminatingNamespaceIsQuiet(t *testing.T) {
	f := newFixture(t).Everywhere(testSandbox(withVolume, wantService(true)))
	refusal := apierrors.NewForbidden(corev1.Resource("pods"), testName, nil)
	refusal.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	f.Refuse("create", "*", refusal)
	if after := f.MustPass(); after != namespace.TerminatingDelay {
		t.Errorf("comes back after %v", after)
	}
	f.WantRequests("create persistentvolumeclaims", "patch sandboxes/status")
	f.wantCondition(conditionReady, "False/DependenciesNotReady: Pod does not exist; Service does not exist")
	f.WantEvents()

	f.syncSandbox()
	f.MustPass()
	f.WantRequests()
	f.clock.SetTime(testTime().Add(namespace.TerminatingDelay))
	f.MustPass()
	f.WantRequests("create persistentvolumeclaims")

	// A Sandbox that is younger than the refusal is in a new namespace.
	younger := f.live().DeepCopy()
	f.clock.SetTime(f.clock.Now().Add(time.Second))
	younger.CreationTimestamp = metav1.NewTime(f.clock.Now())
	f.InCache(younger)
	f.MustPass()
	f.WantRequests("create persistentvolumeclaims")
}

func TestSuspendDeletesThePodByUIDAndConfirmsThatItIsGone(t *testing.T) {
	sandbox := testSandbox(suspend)
	f := newFixture(t).Everywhere(sandbox, testPod(sandbox, ready))
	f.MustPass()
	for _, action := range f.Kube.Actions() {
		if del, ok := action.(ktesting.DeleteActionImpl); ok {
			if pre := del.DeleteOptions.Preconditions; pre == nil || pre.UID == nil || *pre.UID != testPodUID {
				t.Errorf("preconditions are %v", pre)
			}
		}
	}
	f.WantRequests("delete pods", "get sandboxes", "patch sandboxes/status")
	f.wantCondition(conditionSuspended, "False/PodTerminating: Pod is terminating. Sandbox is suspending")
	f.wantCondition(conditionReady, "False/SandboxSuspended: Sandbox is suspending")
	if got := f.live().Status.PodIPs; len(got) != 2 {
		t.Errorf("podIPs are %v while the Pod terminates", got)
	}
	f.WantEvents()

	f.syncSandbox()
	f.DropFromCache(testPod(sandbox))
	f.MustPass()
	f.WantRequests("get pods", "patch sandboxes/status")
	f.wantCondition(conditionSuspended, "True/PodTerminated: Pod has been terminated. Sandbox is suspended")
	f.wantCondition(conditionReady, "False/SandboxSuspended: Sandbox is suspended")
	f.wantCondition(conditionPodScheduled, "absent")
	if status := f.live().Status; status.PodIPs != nil || status.NodeName != "" || status.Selector == "" {
		t.Errorf("status is %+v", status)
	}
	f.WantEvents("Normal SandboxSuspended Sandbox is suspended")

	f.syncSandbox()
	f.MustPass()
	f.WantRequests()
}

func TestSuspendWaitsForATerminatingPodWithoutRequests(t *testing.T) {
	sandbox := testSandbox(suspend)
	f := newFixture(t).Everywhere(sandbox, testPod(sandbox, ready, terminating))
	f.MustPass()
	f.WantRequests("patch sandboxes/status")
	f.syncSandbox()
	f.MustPass()
	f.WantRequests()
}

func TestNothingIsDeletedUnlessALiveReadConfirmsIt(t *testing.T) {
	past := shutdownAt(testTime().Add(-time.Hour), agentsv1beta1.ShutdownPolicyDelete)
	pastRetain := shutdownAt(testTime().Add(-time.Hour), agentsv1beta1.ShutdownPolicyRetain)
	deleting := func(sandbox *agentsv1beta1.Sandbox) {
		now := metav1.NewTime(testTime())
		sandbox.DeletionTimestamp, sandbox.Finalizers = &now, []string{"example.com/hold"}
	}
	for name, test := range map[string]struct {
		cached, live *agentsv1beta1.Sandbox
		err          error
	}{
		"resumed since":                      {cached: testSandbox(suspend), live: testSandbox()},
		"suspended, but another Sandbox":     {cached: testSandbox(suspend), live: testSandbox(suspend, func(s *agentsv1beta1.Sandbox) { s.UID = "later" })},
		"suspended, but being deleted":       {cached: testSandbox(suspend), live: testSandbox(suspend, deleting)},
		"suspended, not found":               {cached: testSandbox(suspend)},
		"suspended, API unavailable":         {cached: testSandbox(suspend), live: testSandbox(suspend), err: unavailable()},
		"expired, but extended since":        {cached: testSandbox(past), live: testSandbox(shutdownAt(testTime().Add(time.Hour), agentsv1beta1.ShutdownPolicyDelete))},
		"expired, but without end since":     {cached: testSandbox(pastRetain), live: testSandbox()},
		"expired, but another Sandbox":       {cached: testSandbox(past), live: testSandbox(past, func(s *agentsv1beta1.Sandbox) { s.UID = "later" })},
		"expired, not found":                 {cached: testSandbox(pastRetain)},
		"expired, API unavailable":           {cached: testSandbox(past), live: testSandbox(past), err: unavailable()},
		"expired, and the API is not served": {cached: testSandbox(past), live: testSandbox(past), err: apiNotServed()},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t).InCache(test.cached).Everywhere(testPod(test.cached, ready))
			if test.live != nil {
				f.OnServer(test.live)
			}
			if test.err != nil {
				f.Refuse("get", "sandboxes", test.err)
			}
			if _, err := f.Pass(); err == nil {
				t.Error("the pass is not repeated")
			}
			for _, request := range f.Requests() {
				if strings.HasPrefix(request, "delete") {
					t.Errorf("deleted on the word of a stale cache: %s", request)
				}
			}
		})
	}
}

// TestOrphanedChildIsNotTakenBack covers deletion with the propagation policy Orphan: the garbage collector removes the owner references
// while the cache still shows the Sandbox as it was. A child that is adopted again then is deleted with the Sandbox.
func TestOrphanedChildIsNotTakenBack(t *testing.T) {
	deleting := func(sandbox *agentsv1beta1.Sandbox) {
		now := metav1.NewTime(testTime())
		sandbox.DeletionTimestamp, sandbox.Finalizers = &now, []string{metav1.FinalizerOrphanDependents}
	}
	cached := testSandbox(withVolume, wantService(true))
	claim := desiredPersistentVolumeClaim(cached, &cached.Spec.VolumeClaimTemplates[0])
	service := desiredService(cached)
	for name, orphaned := range map[string]metav1.Object{"Pod": testPod(cached, ready), "PersistentVolumeClaim": claim, "Service": service} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t).InCache(cached).OnServer(testSandbox(withVolume, wantService(true), deleting))
			for _, child := range []metav1.Object{testPod(cached, ready), claim.DeepCopy(), service.DeepCopy()} {
				if reflect.TypeOf(child) == reflect.TypeOf(orphaned) {
					child.SetOwnerReferences(nil)
				}
				f.Everywhere(child.(runtime.Object))
			}
			if _, err := f.Pass(); err == nil {
				t.Error("the pass is not repeated")
			}
			for _, request := range f.Requests() {
				if strings.HasPrefix(request, "patch") {
					t.Errorf("took the orphan back: %s", request)
				}
			}
		})
	}
}

// apiNotServed is what kube-apiserver answers for a group that it does not know (yet, or any more).
func apiNotServed() error {
	return apierrors.NewGenericServerResponse(http.StatusNotFound, "get", agentsv1beta1.Resource("sandboxes"), testName, "404 page not found", 0, true)
}

func TestConflictingDeleteIsRepeatedWithoutAStatusWrite(t *testing.T) {
	sandbox := testSandbox(suspend)
	f := newFixture(t).Everywhere(sandbox, testPod(sandbox, ready))
	f.Refuse("delete", "pods", apierrors.NewConflict(corev1.Resource("pods"), testName, nil))
	if _, err := f.Pass(); !failure.Outdated(err) {
		t.Errorf("error is %v", err)
	}
	f.WantRequests("delete pods", "get sandboxes")
}

func TestSuspendRefusesToDeleteAPodOfSomebodyElse(t *testing.T) {
	sandbox := testSandbox(suspend)
	for name, pod := range map[string]*corev1.Pod{
		"labelled": testPod(sandbox, stranger), "seen by a live read only": testPod(sandbox, stranger, unlabel),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t).Everywhere(sandbox).OnServer(pod)
			if pod.Labels != nil {
				f.InCache(pod)
			}
			if after := f.MustPass(); after != foreignPodDelay {
				t.Errorf("comes back after %v", after)
			}
			f.wantCondition(conditionSuspended, "False/PodNotOwned: Refused to delete pod because it is not owned by this sandbox")
			f.wantCondition(conditionReady, "False/SandboxSuspended: Sandbox is suspending")
			f.wantCondition(conditionPodScheduled, "absent")
			for _, request := range f.Requests() {
				if strings.HasPrefix(request, "delete") {
					t.Errorf("unexpected %s", request)
				}
			}
		})
	}
}

func TestPodNameAnnotationCannotPointAtAVictim(t *testing.T) {
	annotate := func(sandbox *agentsv1beta1.Sandbox) {
		sandbox.Annotations = map[string]string{agentsv1beta1.SandboxPodNameAnnotation: "victim"}
	}
	victim := testPod(testSandbox(), stranger, func(p *corev1.Pod) { p.Name = "victim" })
	for name, sandbox := range map[string]*agentsv1beta1.Sandbox{
		"suspended": testSandbox(annotate, suspend),
		"expired":   testSandbox(annotate, shutdownAt(testTime(), agentsv1beta1.ShutdownPolicyRetain)),
		"running":   testSandbox(annotate),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t).Everywhere(sandbox, victim)
			f.MustPass()
			for _, action := range f.Kube.Actions() {
				if named, ok := action.(interface{ GetName() string }); ok && named.GetName() == "victim" {
					t.Errorf("touched the victim: %s", action.GetVerb())
				}
			}
		})
	}
}

func TestPodNameAnnotationFindsAnAdoptablePodThatNoInformerShows(t *testing.T) {
	sandbox := testSandbox(func(s *agentsv1beta1.Sandbox) {
		s.Annotations = map[string]string{agentsv1beta1.SandboxPodNameAnnotation: "legacy"}
	})
	legacy := testPod(sandbox, disown, func(p *corev1.Pod) {
		p.Name, p.Labels = "legacy", map[string]string{agentsv1beta1.AdoptableLabel: "true"}
	})
	f := newFixture(t).Everywhere(sandbox).OnServer(legacy)
	f.MustPass()
	if patch := f.patchOf("pods"); !strings.Contains(patch, `"uid":"sandbox-uid"`) || !strings.Contains(patch, agentsv1beta1.SandboxNameHashLabel) {
		t.Errorf("the Pod was not adopted: %s", patch)
	}
	for _, request := range f.Requests() {
		if strings.HasPrefix(request, "create pods") {
			t.Error("another Pod was made")
		}
	}
}

func TestOwnedPodOfAnotherNameIsUsed(t *testing.T) {
	pod := testPod(testSandbox(), ready, func(p *corev1.Pod) { p.Name = "legacy" })
	f := newFixture(t).Everywhere(testSandbox(), pod)
	f.MustPass()
	f.WantRequests("patch sandboxes/status")
	f.wantCondition(conditionReady, "True/DependenciesReady: Pod is Ready")
}

func TestUIDInAnotherNamespaceGivesNoPod(t *testing.T) {
	elsewhere := testPod(testSandbox(), ready, func(p *corev1.Pod) { p.Namespace = "elsewhere" })
	f := newFixture(t).Everywhere(testSandbox(), elsewhere)
	f.MustPass()
	f.WantRequests("create pods", "patch sandboxes/status")
}

func TestMultiplePodsFailClosed(t *testing.T) {
	sandbox := testSandbox(wantService(true))
	clone := testPod(sandbox, ready, func(p *corev1.Pod) { p.Name, p.UID = "clone", "clone-uid" })
	f := newFixture(t).Everywhere(sandbox, testPod(sandbox, ready), clone)
	const message = "multiple Pods (2) are controlled by this Sandbox; refusing to choose or create a Pod"
	if after := f.MustPass(); after != 0 {
		t.Errorf("comes back after %v", after)
	}
	f.WantRequests("patch sandboxes/status")
	f.wantCondition(conditionReady, "False/MultiplePods: "+message)
	f.wantCondition(conditionPodScheduled, "Unknown/PodSchedulingUnknown: Pod state is unknown. Pod scheduling cannot be determined")
	if got := f.live().Status.PodIPs; got != nil {
		t.Errorf("podIPs are %v", got)
	}
	f.WantEvents("Warning MultiplePods " + message)

	f.syncSandbox()
	f.MustPass()
	f.WantRequests()
	f.WantEvents()
}

func TestFinishedPodIsNotReplacedUntilItIsDeleted(t *testing.T) {
	sandbox := testSandbox()
	pod := testPod(sandbox, phase(corev1.PodFailed))
	f := newFixture(t).Everywhere(sandbox, pod)
	f.MustPass()
	f.WantRequests("patch sandboxes/status")
	f.wantCondition(conditionFinished, "True/PodFailed: Pod failed")
	f.wantCondition(conditionReady, "False/PodFailed: Pod failed")
	f.WantEvents("Warning PodFailed Pod failed")

	f.syncSandbox()
	f.DropFromCache(pod)
	f.Remove(pod)
	f.MustPass()
	f.WantRequests("create pods", "patch sandboxes/status")
	f.wantCondition(conditionFinished, "absent")
}

func TestResumeWaitsForTheTerminatingPod(t *testing.T) {
	sandbox := testSandbox()
	f := newFixture(t).Everywhere(sandbox, testPod(sandbox, ready, terminating))
	f.MustPass()
	f.WantRequests("patch sandboxes/status")
	f.wantCondition(conditionReady, "False/DependenciesNotReady: Pod is Running but not Ready; Pod is being deleted")
	f.wantCondition(conditionSuspended, "False/NotSuspended: Sandbox is not suspended")
	if status := f.live().Status; status.PodIPs != nil || status.NodeName != "" {
		t.Errorf("the dying Pod's address shows: %+v", status)
	}
}

func TestSandboxBeingDeletedIsLeftToTheGarbageCollector(t *testing.T) {
	sandbox := testSandbox(func(s *agentsv1beta1.Sandbox) {
		now := metav1.NewTime(testTime())
		s.DeletionTimestamp, s.Finalizers = &now, []string{"foregroundDeletion"}
	}, shutdownAt(testTime(), agentsv1beta1.ShutdownPolicyDelete))
	f := newFixture(t).Everywhere(sandbox, testPod(sandbox))
	f.MustPass()
	f.WantRequests()
}

func TestUnavailableSandboxAPIIsRetried(t *testing.T) {
	for name, refusal := range map[string]error{"503": unavailable(), "not served": apiNotServed()} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t).Everywhere(testSandbox())
			f.Refuse("patch", "sandboxes", refusal)
			if _, err := f.Pass(); err == nil {
				t.Error("the status write is given up")
			}
		})
	}
}

func TestStatusOfAVanishedSandboxIsDropped(t *testing.T) {
	f := newFixture(t).InCache(testSandbox())
	f.MustPass()
	f.WantRequests("create pods", "patch sandboxes/status")
}

func TestMetadataFollowsTheTemplateInOnePatch(t *testing.T) {
	sandbox := testSandbox()
	pod := testPod(sandbox, ready)
	sandbox.Spec.PodTemplate.Metadata.Labels = map[string]string{"app": "web"}
	f := newFixture(t).Everywhere(sandbox, pod)
	f.MustPass()
	const want = `{"metadata":{"annotations":{"agents.x-k8s.io/propagated-labels":"app"},"labels":{"app":"web"},"uid":"pod-uid"}}`
	if got := f.patchOf("pods"); got != want {
		t.Errorf("patch is\n%s\nwant\n%s", got, want)
	}
}

func TestPatchThatMeetsAnotherPodIsNotInvalidConfiguration(t *testing.T) {
	sandbox := testSandbox()
	pod := testPod(sandbox, ready)
	sandbox.Spec.PodTemplate.Metadata.Labels = map[string]string{"app": "web"}
	f := newFixture(t).Everywhere(sandbox, pod)
	f.Refuse("patch", "pods", apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, testName,
		field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), "pod-uid", "field is immutable")}))
	if _, err := f.Pass(); !failure.Outdated(err) {
		t.Errorf("error is %v", err)
	}
	f.WantRequests("patch pods")
}

func TestExpiryWithRetainMarksThenCleansThenRests(t *testing.T) {
	sandbox := testSandbox(wantService(true), withVolume, shutdownAt(testTime(), agentsv1beta1.ShutdownPolicyRetain), withStatus(
		metav1.Condition{Type: conditionSuspended, Status: metav1.ConditionFalse, Reason: "NotSuspended"},
		metav1.Condition{Type: conditionFinished, Status: metav1.ConditionTrue, Reason: "PodSucceeded"},
		metav1.Condition{Type: conditionPodScheduled, Status: metav1.ConditionTrue, Reason: "PodScheduled"},
		metav1.Condition{Type: conditionReady, Status: metav1.ConditionFalse, Reason: "PodSucceeded"},
	))
	sandbox.Status.PodIPs, sandbox.Status.NodeName, sandbox.Status.Selector = []string{"10.0.0.7"}, "node-1", "x=y"
	sandbox.Status.Service, sandbox.Status.ServiceFQDN = testName, "s1.tenant.svc.cluster.local"
	service := desiredService(sandbox)
	service.UID = "service-uid"
	f := newFixture(t).Everywhere(sandbox, testPod(sandbox, phase(corev1.PodSucceeded)), service)

	f.MustPass()
	var marked string
	for _, action := range f.Server.Actions() {
		if patch, ok := action.(ktesting.PatchAction); ok && marked == "" {
			marked = string(patch.GetPatch())
		}
	}
	if !strings.Contains(marked, `"resourceVersion":"100"`) || !strings.Contains(marked, "SandboxExpired") {
		t.Errorf("the announcement is not tied to the version that expired: %s", marked)
	}
	f.WantRequests("delete pods", "delete services", "get sandboxes", "patch sandboxes/status", "patch sandboxes/status")
	f.wantCondition(conditionReady, "False/SandboxExpired: Sandbox has expired")
	f.wantCondition(conditionFinished, "True/PodSucceeded: ")
	f.wantCondition(conditionSuspended, "False/NotSuspended: ")
	f.wantCondition(conditionPodScheduled, "absent")
	want := agentsv1beta1.SandboxStatus{Conditions: f.live().Status.Conditions}
	if diff := cmp.Diff(want, f.live().Status); diff != "" {
		t.Errorf("live fields remain (-want +got):\n%s", diff)
	}
	f.WantEvents("Normal SandboxExpired Sandbox has expired")

	f.syncSandbox()
	f.DropFromCache(testPod(sandbox))
	f.DropFromCache(service)
	f.MustPass()
	f.WantRequests()
}

func TestExpiredBeforeTheFirstPassNeverHasAPod(t *testing.T) {
	f := newFixture(t).Everywhere(testSandbox(withVolume, shutdownAt(testTime().Add(-time.Hour), agentsv1beta1.ShutdownPolicyRetain)))
	f.MustPass()
	f.WantRequests("get pods", "get sandboxes", "patch sandboxes/status")
	f.wantCondition(conditionReady, "False/SandboxExpired: Sandbox has expired")
}

func TestExpiryWithDeleteDeletesTheVersionItAnnounced(t *testing.T) {
	sandbox := testSandbox(shutdownAt(testTime(), agentsv1beta1.ShutdownPolicyDelete))
	f := newFixture(t).Everywhere(sandbox, testPod(sandbox))
	f.Server.PrependReactor("patch", "sandboxes", func(ktesting.Action) (bool, runtime.Object, error) {
		announced := sandbox.DeepCopy()
		announced.ResourceVersion = "101"
		announced.Status = *expiredStatus(sandbox, testTime())
		return true, announced, nil
	})
	f.MustPass()
	var got *metav1.Preconditions
	for _, action := range f.Server.Actions() {
		if del, ok := action.(ktesting.DeleteActionImpl); ok {
			got = del.DeleteOptions.Preconditions
		}
	}
	uid, version := testUID, "101"
	if diff := cmp.Diff(&metav1.Preconditions{UID: &uid, ResourceVersion: &version}, got); diff != "" {
		t.Errorf("preconditions differ (-want +got):\n%s", diff)
	}
	f.WantRequests("get sandboxes", "patch sandboxes/status", "delete sandboxes")
	f.WantEvents()
}

func TestExtensionThatComesFirstStopsTheExpiry(t *testing.T) {
	sandbox := testSandbox(shutdownAt(testTime(), agentsv1beta1.ShutdownPolicyDelete))
	for verb, requests := range map[string][]string{
		"patch":  {"get sandboxes", "patch sandboxes/status"},
		"delete": {"get sandboxes", "patch sandboxes/status", "delete sandboxes"},
	} {
		t.Run("before the "+verb, func(t *testing.T) {
			f := newFixture(t).Everywhere(sandbox, testPod(sandbox))
			f.Refuse(verb, "sandboxes", apierrors.NewConflict(agentsv1beta1.Resource("sandboxes"), testName, nil))
			if _, err := f.Pass(); !failure.Outdated(err) {
				t.Errorf("error is %v", err)
			}
			f.WantRequests(requests...)
		})
	}
}

func TestExpiryIsDueToTheMoment(t *testing.T) {
	sandbox := testSandbox(shutdownAt(testTime().Add(90*time.Second), agentsv1beta1.ShutdownPolicyRetain))
	f := newFixture(t).Everywhere(sandbox)
	if after := f.MustPass(); after != 90*time.Second {
		t.Errorf("comes back after %v", after)
	}
}

func TestVolumeClaimsAreCreatedOnceAndNeverTouchedAgain(t *testing.T) {
	f := newFixture(t).Everywhere(testSandbox(withVolume))
	f.MustPass()
	f.WantRequests("create persistentvolumeclaims", "create pods", "patch sandboxes/status")
	f.syncSandbox()
	f.MustPass()
	f.WantRequests()
}

func TestVolumeClaimIsAdoptedWithItsLabel(t *testing.T) {
	sandbox := testSandbox(withVolume)
	claim := desiredPersistentVolumeClaim(sandbox, &sandbox.Spec.VolumeClaimTemplates[0])
	claim.OwnerReferences, claim.Labels, claim.UID, claim.ResourceVersion = nil, map[string]string{agentsv1beta1.AdoptableLabel: "true"}, "claim-uid", "70"
	f := newFixture(t).Everywhere(sandbox, testPod(sandbox)).OnServer(claim)
	f.MustPass()
	patch := f.patchOf("persistentvolumeclaims")
	for _, want := range []string{agentsv1beta1.SandboxNameHashLabel, `"resourceVersion":"70"`, `"uid":"sandbox-uid"`} {
		if !strings.Contains(patch, want) {
			t.Errorf("patch lacks %s: %s", want, patch)
		}
	}
}

func TestForeignVolumeClaimStopsTheOnesAfterIt(t *testing.T) {
	sandbox := testSandbox(withVolume, func(s *agentsv1beta1.Sandbox) {
		s.Spec.VolumeClaimTemplates = append(s.Spec.VolumeClaimTemplates, agentsv1beta1.PersistentVolumeClaimTemplate{Metadata: agentsv1beta1.EmbeddedObjectMetadata{Name: "more"}})
	})
	claim := desiredPersistentVolumeClaim(sandbox, &sandbox.Spec.VolumeClaimTemplates[0])
	claim.OwnerReferences = []metav1.OwnerReference{strangerRef()}
	f := newFixture(t).Everywhere(sandbox, testPod(sandbox), claim)
	if _, err := f.Pass(); err == nil {
		t.Error("no error")
	}
	f.WantRequests("patch sandboxes/status")
	f.wantCondition(conditionReady, `False/ReconcilerError: Error seen: PVC "data-s1" is owned by ReplicaSet/web (UID: stranger-uid), not by sandbox "s1"`)
}

func TestServiceFollowsTheSpec(t *testing.T) {
	sandbox := testSandbox(wantService(true))
	f := newFixture(t).Everywhere(sandbox, testPod(sandbox, ready))
	f.MustPass()
	f.WantRequests("create services", "patch sandboxes/status")
	f.wantCondition(conditionReady, "True/DependenciesReady: Pod is Ready; Service Exists")
	if got := f.live().Status; got.Service != "s1" || got.ServiceFQDN != "s1.tenant.svc.cluster.local" {
		t.Errorf("status names %q and %q", got.Service, got.ServiceFQDN)
	}
	sandbox = f.syncSandbox().DeepCopy()
	f.MustPass()
	f.WantRequests()

	// Unset: what is there stays, and is looked for if the cache does not show it.
	sandbox.Spec.Service = nil
	f.InCache(sandbox)
	f.clock.SetTime(testTime().Add(recent.CreationTimeout))
	f.MustPass()
	f.WantRequests("get services")

	wantService(false)(sandbox)
	f.InCache(sandbox)
	f.MustPass()
	f.WantRequests("get services", "delete services", "patch sandboxes/status")
	f.wantCondition(conditionReady, "True/DependenciesReady: Pod is Ready")
	if got := f.live().Status; got.Service != "" || got.ServiceFQDN != "" {
		t.Errorf("status still names %q and %q", got.Service, got.ServiceFQDN)
	}
}

func TestOwnStatusWriteIsSeenBeforeTheCacheHasIt(t *testing.T) {
	f := newFixture(t).Everywhere(testSandbox())
	f.Server.PrependReactor("patch", "sandboxes", func(action ktesting.Action) (bool, runtime.Object, error) {
		written := testSandbox()
		written.ResourceVersion = "101"
		o := &observation{pod: testPod(written)}
		written.Status = *observedStatus(written, o, "cluster.local", testTime())
		return true, written, nil
	})
	f.MustPass()
	f.Requests()
	f.clock.SetTime(testTime().Add(time.Minute))
	f.InCache(testPod(testSandbox()))
	f.MustPass()
	f.WantRequests()
}

func TestDisabledEventsLeaveTheFaults(t *testing.T) {
	sandbox := testSandbox()
	f := newFixture(t).Everywhere(sandbox)
	f.config.DisableEvents = true
	f.MustPass()
	f.syncSandbox()
	f.InCache(testPod(sandbox, ready))
	f.MustPass()
	f.WantEvents()
	f.syncSandbox()
	f.InCache(testPod(sandbox, func(p *corev1.Pod) { p.Name, p.UID = "clone", types.UID("clone-uid") }))
	f.MustPass()
	f.WantEvents("Warning MultiplePods multiple Pods (2) are controlled by this Sandbox; refusing to choose or create a Pod")
}
