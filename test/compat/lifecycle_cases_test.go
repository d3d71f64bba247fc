// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

// podUIDs begins to record the UIDs of all Pods that come to be in a namespace, and returns what tells them. They are those of the
// Pods that were made before the call.
func podUIDs(t *tester, namespace string) func() sets.Set[types.UID] {
	t.Helper()
	watcher, err := env.kube.CoreV1().Pods(namespace).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watcher.Stop)
	seen := sets.New[types.UID]()
	return func() sets.Set[types.UID] {
		t.Helper()
		// A Pod of the row's own marks the place in the stream.
		mark := existing(t, namespace, fmt.Sprintf("mark-%d", time.Now().UnixNano()), nil, nil)
		for {
			event := next(t, watcher)
			pod, ok := event.Object.(*corev1.Pod)
			if !ok {
				t.Fatalf("got %s %+v", event.Type, event.Object)
			}
			if pod.UID == mark.UID {
				return seen
			}
			seen.Insert(pod.UID)
		}
	}
}

// TestL1SuspendDuringCreation: a Sandbox that is suspended right after it was created has had at most one Pod.
func TestL1SuspendDuringCreation(t *testing.T) {
	runRows(t, row{id: "at-once", rule: "suspended, with no Pod, and not more than one ever", run: func(t *tester) {
		namespace := newNamespace(t)
		seen := podUIDs(t, namespace)
		create(t, namespace, "s1")
		suspend(t, namespace, "s1")
		await(t, namespace, "s1", all(suspended(), notReady(v1beta1.SandboxReasonSuspended, "")))
		if got := seen(); len(got) > 1 {
			t.Errorf("there were %d Pods", len(got))
		}
		awaitGone(t, "Pod", env.kube.CoreV1().Pods(namespace).Get, "s1")
	}})
}

// TestL2VolumesSurviveThreeRounds: each round has another Pod on the same claim.
func TestL2VolumesSurviveThreeRounds(t *testing.T) {
	runRows(t, row{id: "same-claim", rule: "after each suspension and resumption the claim is the same object and the Pod is another", run: func(t *tester) {
		namespace := newNamespace(t)
		create(t, namespace, "s1", framework.WithVolume("data"))
		await(t, namespace, "s1", ready())
		before, seen := claim(t, namespace, "data-s1"), sets.New(awaitPod(t, namespace, "s1").UID)
		for range 3 {
			suspend(t, namespace, "s1")
			await(t, namespace, "s1", suspended())
			resume(t, namespace, "s1")
			await(t, namespace, "s1", ready())
			pod := awaitPod(t, namespace, "s1")
			if seen.Has(pod.UID) || pod.Spec.Volumes[0].PersistentVolumeClaim == nil || pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName != "data-s1" {
				t.Errorf("Pod %s has volumes %+v; those before were %v", pod.UID, pod.Spec.Volumes, seen)
			}
			seen.Insert(pod.UID)
		}
		if after := claim(t, namespace, "data-s1"); after == nil || after.UID != before.UID {
			t.Errorf("before %+v, after %+v", before, after)
		}
	}})
}

// TestL3ResumeWhileThePodTerminates: readiness waits for the new Pod.
func TestL3ResumeWhileThePodTerminates(t *testing.T) {
	runRows(t,
		row{id: "waits", rule: "a new Pod is made when the old one is gone, and Suspended is False/NotSuspended meanwhile", run: func(t *tester) {
			namespace := newNamespace(t)
			old := createWithPod(t, namespace, "s1", podReady)
			release := holdPod(t, namespace, "s1")
			suspend(t, namespace, "s1")
			await(t, namespace, "s1", notReady(v1beta1.SandboxReasonSuspended, "Sandbox is suspending"))
			resume(t, namespace, "s1")
			await(t, namespace, "s1", conditions(notSuspended))
			release()
			awaitPodIs(t, namespace, "s1", func(pod *corev1.Pod) error {
				if pod.UID == old.UID {
					return errors.New("it is the old Pod")
				}
				return nil
			})
			patchPod(t, namespace, "s1", podReady, "status")
			await(t, namespace, "s1", all(ready(), conditions(notSuspended)))
		}},
		row{id: "not-ready-meanwhile", rule: "meanwhile the Sandbox is not ready and has no addresses", beyond: "a Pod on its way out is no place to connect to", run: func(t *tester) {
			namespace := newNamespace(t)
			createWithPod(t, namespace, "s1", podReady)
			holdPod(t, namespace, "s1")
			suspend(t, namespace, "s1")
			await(t, namespace, "s1", notReady(v1beta1.SandboxReasonSuspended, "Sandbox is suspending"))
			resumed := resume(t, namespace, "s1")
			await(t, namespace, "s1", func(s *v1beta1.Sandbox) error { return observed(s, resumed.Generation) })
			if sandbox := get(t, namespace, "s1"); errors.Join(notReady("", "")(sandbox), addresses()(sandbox)) != nil {
				t.Errorf("status is %+v", sandbox.Status)
			}
		}},
	)
}

// observed returns an error until the Ready condition is about a generation.
func observed(sandbox *v1beta1.Sandbox, generation int64) error {
	if condition := meta.FindStatusCondition(sandbox.Status.Conditions, v1beta1.SandboxConditionReady); condition == nil || condition.ObservedGeneration != generation {
		return fmt.Errorf("Ready is %+v, want one of generation %d", condition, generation)
	}
	return nil
}

// TestL4SuspendTwice: the second time changes nothing.
func TestL4SuspendTwice(t *testing.T) {
	const ours = "there are no subresources for it"
	act := func(t *tester, namespace, name string, body *v1beta1.SandboxSuspend) (*v1beta1.Sandbox, error) {
		t.Helper()
		return sandboxes(namespace).Suspend(t.Context(), name, body, metav1.CreateOptions{})
	}
	runRows(t,
		row{id: "patch", rule: "a patch to the mode it is in writes nothing", run: func(t *tester) {
			namespace := newNamespace(t)
			create(t, namespace, "s1", framework.Suspended)
			await(t, namespace, "s1", suspended())
			before := settle(t, namespace, "s1")
			if after := suspend(t, namespace, "s1"); after.ResourceVersion != before.ResourceVersion {
				t.Errorf("it was written (-before +after):\n%s", cmp.Diff(before, after))
			}
		}},
		row{id: "subresource", rule: "so does the suspend subresource, which answers success", beyond: ours, run: func(t *tester) {
			namespace := newNamespace(t)
			create(t, namespace, "s1")
			for range 2 {
				if got, err := act(t, namespace, "s1", &v1beta1.SandboxSuspend{}); err != nil || got.Spec.OperatingMode != v1beta1.SandboxOperatingModeSuspended || got.Generation != 2 {
					t.Fatalf("%v, got %+v", err, got)
				}
			}
		}},
		row{id: "refused", rule: "what is not there is NotFound, what is being deleted or another is a Conflict", beyond: ours, run: func(t *tester) {
			namespace := newNamespace(t)
			_, err := act(t, namespace, "s1", &v1beta1.SandboxSuspend{})
			refused(t, "missing", err, []int32{404})
			create(t, namespace, "s1", func(s *v1beta1.Sandbox) { s.Finalizers = []string{"example.com/hold"} })
			_, err = act(t, namespace, "s1", &v1beta1.SandboxSuspend{Preconditions: &v1beta1.Preconditions{UID: new(types.UID("other"))}})
			refused(t, "another", err, conflict)
			if err := sandboxes(namespace).Delete(t.Context(), "s1", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			_, err = act(t, namespace, "s1", &v1beta1.SandboxSuspend{})
			refused(t, "being deleted", err, conflict)
			patch(t, namespace, "s1", `{"metadata":{"finalizers":null}}`)
		}},
	)
}

// TestL5SuspendAndResumeAtOnce: whatever the order, in the end mode, conditions and Pods agree.
func TestL5SuspendAndResumeAtOnce(t *testing.T) {
	runRows(t, row{id: "fifty", rule: "after fifty callers the Sandbox is what it is meant to be", run: func(t *tester) {
		namespace := newNamespace(t)
		create(t, namespace, "s1")
		await(t, namespace, "s1", ready())
		var calls sync.WaitGroup
		for i := range 50 {
			mode := [...]v1beta1.SandboxOperatingMode{v1beta1.SandboxOperatingModeSuspended, v1beta1.SandboxOperatingModeRunning}[i%2]
			calls.Go(func() {
				// A conflict is an answer too: it was not accepted.
				if _, err := tryPatch(t, namespace, "s1", fmt.Sprintf(`{"spec":{"operatingMode":%q}}`, mode)); err != nil && !apierrors.IsConflict(err) {
					t.Errorf("%s: %v", mode, err)
				}
			})
		}
		calls.Wait()
		want, left := all(ready(), conditions(notSuspended)), 1
		if get(t, namespace, "s1").Spec.OperatingMode == v1beta1.SandboxOperatingModeSuspended {
			want, left = all(suspended(), notReady(v1beta1.SandboxReasonSuspended, "")), 0
		}
		await(t, namespace, "s1", want)
		if got := len(pods(t, namespace)); got != left {
			t.Errorf("there are %d Pods, want %d", got, left)
		}
	}})
}

// TestL6DeleteWhileSuspended: deletion wakes nothing, and takes the claim and the Service along.
func TestL6DeleteWhileSuspended(t *testing.T) {
	runRows(t, row{id: "no-pod", rule: "no Pod is made, and nothing is left", run: func(t *tester) {
		namespace := newNamespace(t)
		create(t, namespace, "s1", framework.Suspended, framework.WithVolume("data"), framework.WithService)
		await(t, namespace, "s1", suspended())
		seen := podUIDs(t, namespace)
		if err := sandboxes(namespace).Delete(t.Context(), "s1", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		awaitGone(t, "PersistentVolumeClaim", env.kube.CoreV1().PersistentVolumeClaims(namespace).Get, "data-s1")
		awaitGone(t, "Service", env.kube.CoreV1().Services(namespace).Get, "s1")
		if got := seen(); len(got) != 0 {
			t.Errorf("there were %d Pods", len(got))
		}
	}})
}

// TestL7ExpiryToTheMoment: not before the time, and not minutes after.
func TestL7ExpiryToTheMoment(t *testing.T) {
	runRows(t, row{id: "just-ahead", rule: "a Sandbox expires at its time: not before, and within seconds", run: func(t *tester) {
		namespace := newNamespace(t)
		watcher, err := sandboxes(namespace).Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer watcher.Stop()
		due := create(t, namespace, "s1", unscheduled, expiring(3*time.Second, v1beta1.ShutdownPolicyDelete)).Spec.ShutdownTime.Time
		for next(t, watcher).Type != watch.Deleted {
		}
		if late := time.Since(due); late < 0 || late > 5*time.Second {
			t.Errorf("it was deleted %v after its time", late)
		}
	}})
}

// TestL8AfterExpiryWithRetain: resuming does not bring it back, moving the time does.
func TestL8AfterExpiryWithRetain(t *testing.T) {
	runRows(t, row{id: "stays", rule: "it stays expired, without writes, until its time is moved", run: func(t *tester) {
		namespace := newNamespace(t)
		createWithPod(t, namespace, "s1", podReady, framework.WithVolume("data"))
		before := claim(t, namespace, "data-s1")
		patch(t, namespace, "s1", `{"spec":{"shutdownTime":"2020-01-01T00:00:00Z","operatingMode":"Suspended"}}`)
		await(t, namespace, "s1", all(notReady(v1beta1.SandboxReasonExpired, ""), addresses()))
		resume(t, namespace, "s1")
		await(t, namespace, "s1", notReady(v1beta1.SandboxReasonExpired, ""))
		if settle(t, namespace, "s1"); len(pods(t, namespace)) != 0 {
			t.Errorf("resume brought it back: %+v", pods(t, namespace))
		}
		patch(t, namespace, "s1", fmt.Sprintf(`{"spec":{"shutdownTime":%q}}`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339)))
		awaitPod(t, namespace, "s1")
		patchPod(t, namespace, "s1", podReady, "status")
		await(t, namespace, "s1", ready())
		if after := claim(t, namespace, "data-s1"); after == nil || after.UID != before.UID {
			t.Errorf("before %+v, after %+v", before, after)
		}
	}})
}

// TestL9ExtensionRacesTheReaper: who was told that the time is moved keeps his Sandbox.
func TestL9ExtensionRacesTheReaper(t *testing.T) {
	race := func(t *tester, policy v1beta1.ShutdownPolicy) {
		t.Helper()
		const racers = 50
		namespace := newNamespace(t)
		// each does something for all of them at the same time.
		each := func(do func(i int, name string)) {
			var calls sync.WaitGroup
			for i := range racers {
				calls.Go(func() { do(i, fmt.Sprintf("s%d", i)) })
			}
			calls.Wait()
		}
		each(func(_ int, name string) {
			if _, err := sandboxes(namespace).Create(t.Context(), framework.NewSandbox(name, unscheduled), metav1.CreateOptions{}); err != nil {
				t.Error(err)
			}
		})
		for i := range racers {
			await(t, namespace, fmt.Sprintf("s%d", i), conditions(whileStarting("Pending")))
		}
		due := time.Now().Add(5 * time.Second).Truncate(time.Second)
		expiry := fmt.Sprintf(`{"spec":{"shutdownTime":%q,"shutdownPolicy":%q}}`, due.UTC().Format(time.RFC3339), policy)
		each(func(_ int, name string) {
			if _, err := tryPatch(t, namespace, name, expiry); err != nil {
				t.Error(err)
			}
		})
		later := fmt.Sprintf(`{"spec":{"shutdownTime":%q}}`, due.Add(time.Hour).UTC().Format(time.RFC3339))
		accepted := make([]bool, racers)
		each(func(i int, name string) {
			// From a fifth of a second before the time to four fifths after it.
			<-time.After(time.Until(due.Add(time.Duration(i-racers/5) * time.Second / racers)))
			_, err := tryPatch(t, namespace, name, later)
			accepted[i] = err == nil
		})
		won := 0
		for i := range racers {
			name := fmt.Sprintf("s%d", i)
			if !accepted[i] {
				if policy == v1beta1.ShutdownPolicyDelete {
					awaitGone(t, "Sandbox", sandboxes(namespace).Get, name)
				}
				continue
			}
			won++
			// Its Pod is there, or there again.
			await(t, namespace, name, all(conditions(whileStarting("Pending")), func(s *v1beta1.Sandbox) error {
				if s.DeletionTimestamp != nil {
					return errors.New("it is being deleted")
				}
				return nil
			}))
		}
		t.Logf("%d of %d were extended in time", won, racers)
		eventually(t, "Pods of those that live on, and no others", func(context.Context) error {
			if got := len(pods(t, namespace)); got != won {
				return fmt.Errorf("there are %d, of %d Sandboxes", got, won)
			}
			return nil
		})
	}
	runRows(t,
		row{id: "delete", rule: "an extension that was accepted keeps the Sandbox; none is both accepted and deleted", beyond: "there the deletion looks at neither the UID nor the version",
			run: func(t *tester) { race(t, v1beta1.ShutdownPolicyDelete) }},
		row{id: "retain", rule: "an extension that was accepted brings the Pod back", run: func(t *tester) { race(t, v1beta1.ShutdownPolicyRetain) }},
	)
}

// TestL10JobFinishes: success and failure can be told apart, and a stranger's Pod is neither.
func TestL10JobFinishes(t *testing.T) {
	var rows []row
	for state, reason := range map[string]string{podSucceeded: v1beta1.SandboxReasonPodSucceeded, podFailed: v1beta1.SandboxReasonPodFailed} {
		rows = append(rows, row{id: reason, rule: "Finished is True and Ready False, for the same reason; it is not run again", run: func(t *tester) {
			namespace := newNamespace(t)
			pod := createWithPod(t, namespace, "s1", state, with(func(s *v1beta1.SandboxSpec) { s.PodTemplate.Spec.RestartPolicy = corev1.RestartPolicyNever }))
			await(t, namespace, "s1", all(notReady(reason, ""), conditions(condition{v1beta1.SandboxConditionFinished, metav1.ConditionTrue, reason, ""})))
			settle(t, namespace, "s1")
			if now := awaitPod(t, namespace, "s1"); now.UID != pod.UID {
				t.Error("it was run again")
			}
		}})
	}
	rows = append(rows, row{id: "strangers", rule: "the end of a stranger's Pod says nothing", run: func(t *tester) {
		namespace := newNamespace(t)
		existing(t, namespace, "s1", nil, stranger(t, namespace))
		patchPod(t, namespace, "s1", podFailed, "status")
		create(t, namespace, "s1")
		await(t, namespace, "s1", all(notReady(v1beta1.SandboxReasonReconcilerError, ""), conditions(notFinished)))
	}})
	runRows(t, rows...)
}

// TestL11PodLost: a Pod that is gone is made again; one that was evicted says so, and suspension with resumption makes another.
func TestL11PodLost(t *testing.T) {
	const evicted = `{"status":{"phase":"Failed","reason":"Evicted","message":"The node was low on resource: memory."}}`
	runRows(t,
		row{id: "gone", rule: "a Pod that is gone is made again, on the same claim", run: func(t *tester) {
			namespace := newNamespace(t)
			old := createWithPod(t, namespace, "s1", podReady, framework.WithVolume("data"))
			before := claim(t, namespace, "data-s1")
			if err := env.kube.CoreV1().Pods(namespace).Delete(t.Context(), "s1", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			awaitPodIs(t, namespace, "s1", func(pod *corev1.Pod) error {
				if pod.UID == old.UID {
					return errors.New("it is the old Pod")
				}
				return nil
			})
			if after := claim(t, namespace, "data-s1"); after == nil || after.UID != before.UID {
				t.Errorf("before %+v, after %+v", before, after)
			}
		}},
		row{id: "evicted", rule: "an evicted Pod is PodFailed, and suspension with resumption makes another", run: func(t *tester) {
			namespace := newNamespace(t)
			old := createWithPod(t, namespace, "s1", evicted)
			await(t, namespace, "s1", notReady(v1beta1.SandboxReasonPodFailed, ""))
			suspend(t, namespace, "s1")
			await(t, namespace, "s1", suspended())
			resume(t, namespace, "s1")
			if pod := awaitPod(t, namespace, "s1"); pod.UID == old.UID {
				t.Error("it is the old Pod")
			}
			await(t, namespace, "s1", conditions(whileStarting("Pending"), notFinished))
		}},
		row{id: "evicted-and-told", rule: "the condition says that it was evicted", beyond: "who may not read Pods could not know why", run: func(t *tester) {
			namespace := newNamespace(t)
			createWithPod(t, namespace, "s1", evicted)
			await(t, namespace, "s1", notReady(v1beta1.SandboxReasonPodFailed, "Evicted"))
		}},
	)
}

// TestL12TemplateOfARunningSandbox: an edit waits for the next Pod.
func TestL12TemplateOfARunningSandbox(t *testing.T) {
	runRows(t, row{id: "next-pod", rule: "the Pod stays as it is; the one after suspension has the new image", run: func(t *tester) {
		namespace := newNamespace(t)
		old := createWithPod(t, namespace, "s1", podReady)
		patched := patch(t, namespace, "s1", `{"spec":{"podTemplate":{"spec":{"containers":[{"name":"main","image":"example.com/next"}]}}}}`)
		await(t, namespace, "s1", func(s *v1beta1.Sandbox) error { return observed(s, patched.Generation) })
		if now := awaitPod(t, namespace, "s1"); now.UID != old.UID || now.Spec.Containers[0].Image == "example.com/next" {
			t.Errorf("the Pod was changed or replaced: %+v", now.Spec.Containers)
		}
		suspend(t, namespace, "s1")
		await(t, namespace, "s1", suspended())
		resume(t, namespace, "s1")
		if image := awaitPod(t, namespace, "s1").Spec.Containers[0].Image; image != "example.com/next" {
			t.Errorf("after resumption the image is %s", image)
		}
	}})
}

// TestL13DeleteAlwaysWorks: whatever state a Sandbox is in, it can be deleted.
func TestL13DeleteAlwaysWorks(t *testing.T) {
	var rows []row
	for id, test := range map[string]struct {
		prepare func(t *tester, namespace string)
		check   func(*v1beta1.Sandbox) error
	}{
		"pending":   {func(t *tester, namespace string) { createWithPod(t, namespace, "s1", podUnschedulable) }, conditions(whileStarting("Pending"))},
		"suspended": {func(t *tester, namespace string) { create(t, namespace, "s1", framework.Suspended) }, suspended()},
		"suspending": {func(t *tester, namespace string) {
			createWithPod(t, namespace, "s1", podReady)
			holdPod(t, namespace, "s1")
			suspend(t, namespace, "s1")
		}, notReady(v1beta1.SandboxReasonSuspended, "Sandbox is suspending")},
		"finished": {func(t *tester, namespace string) { createWithPod(t, namespace, "s1", podFailed) }, notReady(v1beta1.SandboxReasonPodFailed, "")},
		"expired": {func(t *tester, namespace string) {
			create(t, namespace, "s1", expiring(-time.Hour, v1beta1.ShutdownPolicyRetain))
		}, notReady(v1beta1.SandboxReasonExpired, "")},
		"in-error": {func(t *tester, namespace string) {
			existing(t, namespace, "s1", nil, stranger(t, namespace))
			create(t, namespace, "s1")
		}, notReady(v1beta1.SandboxReasonReconcilerError, "")},
	} {
		rows = append(rows, row{id: id, rule: "deleted within seconds", run: func(t *tester) {
			namespace := newNamespace(t)
			test.prepare(t, namespace)
			await(t, namespace, "s1", test.check)
			mustKubectl(t, namespace, "", "delete", "sandbox", "s1", "--timeout=30s")
			if _, err := sandboxes(namespace).Get(t.Context(), "s1", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("after kubectl delete: %v", err)
			}
		}})
	}
	runRows(t, rows...)
}

// TestL14NothingIsWrittenAfterSettling: twenty sandboxes of all kinds, and two minutes in which a watch sees nothing.
func TestL14NothingIsWrittenAfterSettling(t *testing.T) {
	const silence = 2 * time.Minute
	runRows(t, row{id: "silence", rule: "no resourceVersion changes, and a watch sees nothing", run: func(t *tester) {
		namespace := newNamespace(t)
		for name, check := range mixedSandboxes(t, namespace) {
			await(t, namespace, name, check)
		}
		versions := func() (string, map[string]string) {
			t.Helper()
			list, err := sandboxes(namespace).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			versions := map[string]string{}
			for i := range list.Items {
				versions[list.Items[i].Name] = list.Items[i].ResourceVersion
			}
			return list.ResourceVersion, versions
		}
		var from string
		var before map[string]string
		eventually(t, "settling", func(context.Context) error {
			var now map[string]string
			if from, now = versions(); cmp.Equal(before, now) {
				return nil
			}
			before = now
			<-time.After(calm)
			return errors.New("something was written")
		})
		if len(before) != 20 {
			t.Fatalf("there are %d sandboxes", len(before))
		}
		watcher, err := sandboxes(namespace).Watch(t.Context(), metav1.ListOptions{ResourceVersion: from})
		if err != nil {
			t.Fatal(err)
		}
		defer watcher.Stop()
		end := time.After(silence)
		for done := false; !done; {
			select {
			case <-end:
				done = true
			case event, open := <-watcher.ResultChan():
				if !open {
					t.Log("the watch ended early")
					<-end
					done = true
				} else if sandbox, ok := event.Object.(*v1beta1.Sandbox); ok {
					t.Errorf("%s %s: %+v", event.Type, sandbox.Name, sandbox.Status)
				}
			}
		}
		if _, after := versions(); !cmp.Equal(before, after) {
			t.Errorf("resourceVersions (-before +after):\n%s", cmp.Diff(before, after))
		}
	}})
}

// mixedSandboxes creates twenty Sandboxes of all kinds, and returns what each is when it has come to rest.
func mixedSandboxes(t *tester, namespace string) map[string]func(*v1beta1.Sandbox) error {
	t.Helper()
	rest := map[string]func(*v1beta1.Sandbox) error{}
	for i := range 8 {
		name := fmt.Sprintf("running-%d", i)
		create(t, namespace, name)
		rest[name] = ready()
	}
	for i := range 3 {
		name := fmt.Sprintf("suspended-%d", i)
		create(t, namespace, name, framework.Suspended, framework.WithVolume("data"))
		rest[name] = suspended()
	}
	for state, name := range map[string]string{podSucceeded: "succeeded", podFailed: "failed", podUnschedulable: "unschedulable"} {
		createWithPod(t, namespace, name, state)
		rest[name] = notReady("", "")
	}
	create(t, namespace, "full", framework.WithService, framework.WithVolume("data"), ports(corev1.ContainerPort{ContainerPort: 80}), podMetadata(map[string]string{"a": "b"}, map[string]string{"c": "d"}))
	rest["full"] = ready()
	create(t, namespace, "expired", expiring(-time.Hour, v1beta1.ShutdownPolicyRetain))
	rest["expired"] = notReady(v1beta1.SandboxReasonExpired, "")
	create(t, namespace, "expires", expiring(time.Hour, v1beta1.ShutdownPolicyDelete))
	rest["expires"] = ready()
	existing(t, namespace, "taken", nil, stranger(t, namespace))
	create(t, namespace, "taken")
	rest["taken"] = notReady(v1beta1.SandboxReasonReconcilerError, "")
	existing(t, namespace, "beside", nil, stranger(t, namespace))
	create(t, namespace, "beside", framework.Suspended)
	rest["beside"] = notReady(v1beta1.SandboxReasonSuspended, "")
	twins := create(t, namespace, "twins", unscheduled)
	existing(t, namespace, "twin", awaitPod(t, namespace, "twins").Labels, controllerOf(twins))
	rest["twins"] = notReady(v1beta1.SandboxReasonMultiplePods, "")
	return rest
}

// TestL15ObservedGeneration: a condition of a generation is not there before the generation has had its effect.
func TestL15ObservedGeneration(t *testing.T) {
	runRows(t, row{id: "effect-first", rule: "Ready is True for the new generation when the Pod has what is new in it", run: func(t *tester) {
		namespace := newNamespace(t)
		createWithPod(t, namespace, "s1", podReady)
		settled := await(t, namespace, "s1", ready())
		watcher, err := sandboxes(namespace).Watch(t.Context(), metav1.ListOptions{ResourceVersion: settled.ResourceVersion})
		if err != nil {
			t.Fatal(err)
		}
		defer watcher.Stop()
		patched := patch(t, namespace, "s1", `{"spec":{"podTemplate":{"metadata":{"labels":{"new":"yes"}}}}}`)
		for {
			event := next(t, watcher)
			sandbox, ok := event.Object.(*v1beta1.Sandbox)
			if !ok {
				t.Fatalf("got %s %+v", event.Type, event.Object)
			}
			if observed(sandbox, patched.Generation) != nil {
				continue
			}
			if pod := awaitPod(t, namespace, "s1"); pod.Labels["new"] != "yes" {
				t.Errorf("Ready is of generation %d, and the labels of the Pod are %v", patched.Generation, pod.Labels)
			}
			return
		}
	}})
}

// TestL16TwoPods: it fails closed, and heals when one goes.
func TestL16TwoPods(t *testing.T) {
	runRows(t, row{id: "fails-closed", rule: "MultiplePods and no address while there are two, whichever goes the other is used", run: func(t *tester) {
		namespace := newNamespace(t)
		for _, goes := range []string{"s1", "twin"} {
			sandbox := create(t, namespace, "s1", unscheduled)
			first := awaitPod(t, namespace, "s1")
			patchPod(t, namespace, "s1", podReady, "status")
			await(t, namespace, "s1", ready())
			existing(t, namespace, "twin", first.Labels, controllerOf(sandbox))
			patchPod(t, namespace, "twin", podReady, "status")
			await(t, namespace, "s1", all(notReady(v1beta1.SandboxReasonMultiplePods, ""), addresses()))
			if err := env.kube.CoreV1().Pods(namespace).Delete(t.Context(), goes, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			await(t, namespace, "s1", ready())
			if got := pods(t, namespace); len(got) != 1 {
				t.Errorf("without %s there are %d Pods", goes, len(got))
			}
			mustKubectl(t, namespace, "", "delete", "sandbox", "s1", "--timeout=30s")
			for _, name := range []string{"s1", "twin"} {
				awaitGone(t, "Pod", env.kube.CoreV1().Pods(namespace).Get, name)
			}
		}
	}})
}

// TestL17UnschedulableWithoutRightsOnPods: who may read Sandboxes, and nothing else, learns why his does not start.
func TestL17UnschedulableWithoutRightsOnPods(t *testing.T) {
	runRows(t, row{id: "mirrored", rule: "PodScheduled has the scheduler's words, for as long as there is the Pod", run: func(t *tester) {
		namespace := newNamespace(t)
		tenant := tenantOf(t, namespace)
		create(t, namespace, "s1", with(func(s *v1beta1.SandboxSpec) { s.PodTemplate.Spec.NodeSelector = map[string]string{"no": "such"} }))
		eventually(t, "PodScheduled", func(ctx context.Context) error {
			sandbox, err := tenant.AgentsV1beta1().Sandboxes(namespace).Get(ctx, "s1", metav1.GetOptions{})
			if err != nil {
				return err
			}
			return conditions(condition{v1beta1.SandboxConditionPodScheduled, metav1.ConditionFalse, corev1.PodReasonUnschedulable, "didn't match"})(sandbox)
		})
		suspend(t, namespace, "s1")
		await(t, namespace, "s1", all(suspended(), conditions(notMirrored)))
	}})
}

// tenantOf returns a client that may read Sandboxes in a namespace and nothing else.
func tenantOf(t *tester, namespace string) versioned.Interface {
	t.Helper()
	name := metav1.ObjectMeta{Name: "tenant-of-" + namespace}
	rules := []rbacv1.PolicyRule{{Verbs: []string{"get", "list"}, APIGroups: []string{v1beta1.GroupName}, Resources: []string{"sandboxes"}}}
	if _, err := env.kube.RbacV1().Roles(namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: name, Rules: rules}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := env.kube.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name.Name}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(env.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: name.Name}
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestL18NamesOfClaims: the scheme of the names is part of the contract, for a claim under another name is an empty disk.
func TestL18NamesOfClaims(t *testing.T) {
	runRows(t, row{id: "scheme", rule: "<template>-<sandbox>, dots and all, and what is there under that name is used", run: func(t *tester) {
		namespace := newNamespace(t)
		for name, want := range map[string]string{"s1": "data-s1", "a.b": "data-a.b", strings.Repeat("a", 100): "data-" + strings.Repeat("a", 100)} {
			create(t, namespace, name, framework.Suspended, framework.WithVolume("data"))
			await(t, namespace, name, suspended())
			before := claim(t, namespace, want)
			if before == nil {
				t.Errorf("there is no claim %s", want)
				continue
			}
			resume(t, namespace, name)
			await(t, namespace, name, ready())
			if after := claim(t, namespace, want); after == nil || after.UID != before.UID {
				t.Errorf("%s: before %+v, after %+v", want, before, after)
			}
		}
	}})
}
