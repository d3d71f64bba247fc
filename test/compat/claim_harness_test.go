// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	extensionsclient "github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned/typed/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

func templates(namespace string) extensionsclient.SandboxTemplateInterface {
	return env.agents.ExtensionsV1beta1().SandboxTemplates(namespace)
}

func pools(namespace string) extensionsclient.SandboxWarmPoolInterface {
	return env.agents.ExtensionsV1beta1().SandboxWarmPools(namespace)
}

func claims(namespace string) extensionsclient.SandboxClaimInterface {
	return env.agents.ExtensionsV1beta1().SandboxClaims(namespace)
}

// ofTemplate returns an option of framework.NewTemplate that changes the spec.
func ofTemplate(change func(*extensionsv1beta1.SandboxTemplateSpec)) func(*extensionsv1beta1.SandboxTemplate) {
	return func(template *extensionsv1beta1.SandboxTemplate) { change(&template.Spec) }
}

// ofClaim returns an option of framework.NewClaim that changes the spec.
func ofClaim(change func(*extensionsv1beta1.SandboxClaimSpec)) func(*extensionsv1beta1.SandboxClaim) {
	return func(claim *extensionsv1beta1.SandboxClaim) { change(&claim.Spec) }
}

// withVariable returns an option of framework.NewClaim: a variable for a container, or for the first one if none is named.
func withVariable(name, value, container string) func(*extensionsv1beta1.SandboxClaim) {
	return ofClaim(func(spec *extensionsv1beta1.SandboxClaimSpec) {
		spec.Env = append(spec.Env, extensionsv1beta1.EnvVar{Name: name, Value: value, ContainerName: container})
	})
}

// withClaimVolume returns an option of framework.NewClaim: a volume of the given name and size.
func withClaimVolume(name, size string) func(*extensionsv1beta1.SandboxClaim) {
	return ofClaim(func(spec *extensionsv1beta1.SandboxClaimSpec) {
		spec.VolumeClaimTemplates = append(spec.VolumeClaimTemplates, v1beta1.PersistentVolumeClaimTemplate{
			Metadata: v1beta1.EmbeddedObjectMetadata{Name: name},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
			},
		})
	})
}

// withMetadata returns an option of framework.NewClaim: labels and annotations for the Pod.
func withMetadata(labels, annotations map[string]string) func(*extensionsv1beta1.SandboxClaim) {
	return ofClaim(func(spec *extensionsv1beta1.SandboxClaimSpec) {
		spec.AdditionalPodMetadata = v1beta1.PodMetadata{Labels: labels, Annotations: annotations}
	})
}

// withLifecycle returns an option of framework.NewClaim.
func withLifecycle(lifecycle extensionsv1beta1.Lifecycle) func(*extensionsv1beta1.SandboxClaim) {
	return ofClaim(func(spec *extensionsv1beta1.SandboxClaimSpec) { spec.Lifecycle = &lifecycle })
}

// createTemplate creates a template.
func createTemplate(t *tester, namespace, name string, options ...func(*extensionsv1beta1.SandboxTemplate)) *extensionsv1beta1.SandboxTemplate {
	t.Helper()
	created, err := templates(namespace).Create(t.Context(), framework.NewTemplate(name, options...), metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating SandboxTemplate %s/%s: %v", namespace, name, err)
	}
	return created
}

// createPool creates a pool of the template t1.
func createPool(t *tester, namespace, name string, replicas int32, options ...func(*extensionsv1beta1.SandboxWarmPool)) *extensionsv1beta1.SandboxWarmPool {
	t.Helper()
	created, err := pools(namespace).Create(t.Context(), framework.NewPool(name, "t1", replicas, options...), metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating SandboxWarmPool %s/%s: %v", namespace, name, err)
	}
	return created
}

// fillPool creates the template t1 and the pool p1, and returns when the pool is full and all members are ready.
func fillPool(t *tester, namespace string, replicas int32, options ...func(*extensionsv1beta1.SandboxTemplate)) *extensionsv1beta1.SandboxWarmPool {
	t.Helper()
	createTemplate(t, namespace, "t1", options...)
	createPool(t, namespace, "p1", replicas)
	return awaitPool(t, namespace, "p1", replicas, replicas)
}

// idlePool creates the template t1 and the pool p1 without anything in it, from which every claim is started cold.
func idlePool(t *tester, namespace string, options ...func(*extensionsv1beta1.SandboxTemplate)) {
	t.Helper()
	createTemplate(t, namespace, "t1", options...)
	createPool(t, namespace, "p1", 0)
}

// unfilledPool creates the template t1 and the pool p1, whose members are ready only when the row says so, and returns those.
func unfilledPool(t *tester, namespace string, replicas int32, options ...func(*extensionsv1beta1.SandboxWarmPool)) []v1beta1.Sandbox {
	t.Helper()
	createTemplate(t, namespace, "t1", framework.Blueprint(unscheduled))
	pool := createPool(t, namespace, "p1", replicas, options...)
	awaitPool(t, namespace, "p1", replicas, 0)
	members := membersOf(t, pool)
	for _, member := range members {
		awaitPod(t, namespace, member.Name)
	}
	return members
}

// awaitPool waits until a pool has so many members, and so many that are ready, and says so of its present spec. What it says alone
// may be of a moment ago.
func awaitPool(t *tester, namespace, name string, replicas, readyReplicas int32) *extensionsv1beta1.SandboxWarmPool {
	t.Helper()
	return awaitPoolIs(t, namespace, name, func(pool *extensionsv1beta1.SandboxWarmPool) error {
		members := membersOf(t, pool)
		readyMembers := slices.DeleteFunc(slices.Clone(members), func(s v1beta1.Sandbox) bool {
			return !meta.IsStatusConditionTrue(s.Status.Conditions, v1beta1.SandboxConditionReady)
		})
		if s := pool.Status; s.Replicas != replicas || s.ReadyReplicas != readyReplicas || s.ObservedGeneration != pool.Generation ||
			len(members) != int(replicas) || len(readyMembers) != int(readyReplicas) {
			return fmt.Errorf("want %d members and %d ready ones of generation %d, there are %d and %d, status is %+v",
				replicas, readyReplicas, pool.Generation, len(members), len(readyMembers), s)
		}
		return nil
	})
}

// awaitPoolIs waits until check returns nil for a pool, and returns it.
func awaitPoolIs(t *tester, namespace, name string, check func(*extensionsv1beta1.SandboxWarmPool) error) *extensionsv1beta1.SandboxWarmPool {
	t.Helper()
	var pool *extensionsv1beta1.SandboxWarmPool
	eventually(t, fmt.Sprintf("SandboxWarmPool %s/%s", namespace, name), func(ctx context.Context) (err error) {
		if pool, err = pools(namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		return check(pool)
	})
	return pool
}

// progressing returns a check of the condition of a pool.
func progressing(status metav1.ConditionStatus, reason, message string) func(*extensionsv1beta1.SandboxWarmPool) error {
	return func(pool *extensionsv1beta1.SandboxWarmPool) error {
		got := meta.FindStatusCondition(pool.Status.Conditions, extensionsv1beta1.WarmPoolConditionProgressing)
		if got == nil || got.Status != status || got.Reason != reason || !strings.Contains(got.Message, message) {
			return fmt.Errorf("Progressing is %+v, want %s, %s, %q", got, status, reason, message)
		}
		return nil
	}
}

// membersOf returns the Sandboxes that a pool controls and that are not being deleted.
func membersOf(t *tester, pool *extensionsv1beta1.SandboxWarmPool) []v1beta1.Sandbox {
	t.Helper()
	return ownedBy(t, pool.Namespace, pool.UID)
}

// ownedBy returns the Sandboxes that an object controls and that are not being deleted.
func ownedBy(t *tester, namespace string, owner types.UID) []v1beta1.Sandbox {
	t.Helper()
	list, err := sandboxes(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(s v1beta1.Sandbox) bool { return !controls(owner, &s) || s.DeletionTimestamp != nil })
}

// controls says whether an object of a UID is the controller of a Sandbox.
func controls(owner types.UID, sandbox *v1beta1.Sandbox) bool {
	controller := metav1.GetControllerOf(sandbox)
	return controller != nil && controller.UID == owner
}

// uids returns the UIDs of Sandboxes.
func uids(sandboxes []v1beta1.Sandbox) sets.Set[types.UID] {
	all := sets.New[types.UID]()
	for _, sandbox := range sandboxes {
		all.Insert(sandbox.UID)
	}
	return all
}

// patchPool, patchTemplate and patchClaim change an object by a JSON merge patch that must succeed.
func patchPool(t *tester, namespace, name, patch string) *extensionsv1beta1.SandboxWarmPool {
	t.Helper()
	patched, err := pools(namespace).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		t.Fatalf("patching SandboxWarmPool %s/%s with %s: %v", namespace, name, patch, err)
	}
	return patched
}

func patchTemplate(t *tester, namespace, name, patch string) *extensionsv1beta1.SandboxTemplate {
	t.Helper()
	patched, err := templates(namespace).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		t.Fatalf("patching SandboxTemplate %s/%s with %s: %v", namespace, name, patch, err)
	}
	return patched
}

func patchClaim(t *tester, namespace, name, patch string) *extensionsv1beta1.SandboxClaim {
	t.Helper()
	patched, err := claims(namespace).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		t.Fatalf("patching SandboxClaim %s/%s with %s: %v", namespace, name, patch, err)
	}
	return patched
}

// createClaim creates a claim on the pool p1.
func createClaim(t *tester, namespace, name string, options ...func(*extensionsv1beta1.SandboxClaim)) *extensionsv1beta1.SandboxClaim {
	t.Helper()
	created, err := claims(namespace).Create(t.Context(), framework.NewClaim(name, "p1", options...), metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating SandboxClaim %s/%s: %v", namespace, name, err)
	}
	return created
}

// claimError tries to create a claim on the pool p1, without trace, and returns the error.
func claimError(t *tester, namespace, name string, options ...func(*extensionsv1beta1.SandboxClaim)) error {
	t.Helper()
	_, err := claims(namespace).Create(t.Context(), framework.NewClaim(name, "p1", options...), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// awaitClaim waits until check returns nil for a claim, and returns it.
func awaitClaim(t *tester, namespace, name string, check func(*extensionsv1beta1.SandboxClaim) error) *extensionsv1beta1.SandboxClaim {
	t.Helper()
	var claim *extensionsv1beta1.SandboxClaim
	eventually(t, fmt.Sprintf("SandboxClaim %s/%s", namespace, name), func(ctx context.Context) (err error) {
		if claim, err = claims(namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		return check(claim)
	})
	return claim
}

// bind creates a claim on the pool p1, and returns it when it is ready.
func bind(t *tester, namespace, name string, options ...func(*extensionsv1beta1.SandboxClaim)) *extensionsv1beta1.SandboxClaim {
	t.Helper()
	createClaim(t, namespace, name, options...)
	return awaitClaim(t, namespace, name, claimReady)
}

// claimReady is the check that a claim has a Sandbox which can be reached.
func claimReady(claim *extensionsv1beta1.SandboxClaim) error {
	if err := claimCondition(extensionsv1beta1.ClaimConditionReady, metav1.ConditionTrue, v1beta1.SandboxReasonDependenciesReady, "")(claim); err != nil {
		return err
	}
	if claim.Status.Sandbox.Name == "" || len(claim.Status.Sandbox.PodIPs) == 0 {
		return fmt.Errorf("it is ready with %+v", claim.Status.Sandbox)
	}
	return nil
}

// claimNotReady returns the check that a claim says why it is not ready, of its present spec.
func claimNotReady(reason, message string) func(*extensionsv1beta1.SandboxClaim) error {
	return claimCondition(extensionsv1beta1.ClaimConditionReady, metav1.ConditionFalse, reason, message)
}

// claimCondition returns a check of a condition of a claim. The observed generation of Finished is that of the Sandbox.
func claimCondition(kind string, status metav1.ConditionStatus, reason, message string) func(*extensionsv1beta1.SandboxClaim) error {
	return func(claim *extensionsv1beta1.SandboxClaim) error {
		got := meta.FindStatusCondition(claim.Status.Conditions, kind)
		if got == nil || got.Status != status || got.Reason != reason || !strings.Contains(got.Message, message) {
			return fmt.Errorf("want %s to be %s, %s, %q, status is %+v", kind, status, reason, message, claim.Status)
		}
		if kind == extensionsv1beta1.ClaimConditionReady && got.ObservedGeneration != claim.Generation {
			return fmt.Errorf("generation %d has %+v", claim.Generation, *got)
		}
		return nil
	}
}

// sandboxOf returns the Sandbox of a claim, and fails the row unless the claim is its only owner.
func sandboxOf(t *tester, claim *extensionsv1beta1.SandboxClaim) *v1beta1.Sandbox {
	t.Helper()
	sandbox := get(t, claim.Namespace, claim.Status.Sandbox.Name)
	want := []metav1.OwnerReference{*metav1.NewControllerRef(claim, extensionsv1beta1.SchemeGroupVersion.WithKind("SandboxClaim"))}
	if diff := cmp.Diff(want, sandbox.OwnerReferences); diff != "" {
		t.Errorf("owners of Sandbox %s of claim %s (-want +got):\n%s", sandbox.Name, claim.Name, diff)
	}
	return sandbox
}

// launched fails the row unless the Sandbox of a claim says that it was started warm or cold.
func launched(t *tester, claim *extensionsv1beta1.SandboxClaim, want string) *v1beta1.Sandbox {
	t.Helper()
	sandbox := sandboxOf(t, claim)
	if got := sandbox.Labels[v1beta1.LaunchTypeLabel]; got != want || (want == v1beta1.LaunchTypeCold) != (sandbox.Name == claim.Name) {
		t.Errorf("claim %s has Sandbox %s, launched %q, want %s", claim.Name, sandbox.Name, got, want)
	}
	return sandbox
}

// rejected fails the row unless a claim that can never work is either refused or says so in its condition, and gets no Sandbox.
func rejected(t *tester, namespace, reason string, options ...func(*extensionsv1beta1.SandboxClaim)) {
	t.Helper()
	claim, err := claims(namespace).Create(t.Context(), framework.NewClaim("", "p1", append(options, func(c *extensionsv1beta1.SandboxClaim) {
		c.GenerateName = "rejected-"
	})...), metav1.CreateOptions{})
	if apierrors.IsInvalid(err) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	claim = awaitClaim(t, namespace, claim.Name, claimNotReady(reason, ""))
	if got := ownedBy(t, namespace, claim.UID); len(got) != 0 || claim.Status.Sandbox.Name != "" {
		t.Errorf("it has %d Sandboxes and status %+v", len(got), claim.Status)
	}
}

// history begins to record what becomes of the Sandboxes of a namespace, and returns what tells all events until its call.
func history(t *tester, namespace string) func() []watch.Event {
	t.Helper()
	watcher, err := sandboxes(namespace).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watcher.Stop)
	var mu sync.Mutex
	var events []watch.Event
	// A server gives up on who does not read what it sends.
	go func() {
		for event := range watcher.ResultChan() {
			mu.Lock()
			events = append(events, event)
			mu.Unlock()
		}
	}()
	return func() []watch.Event {
		t.Helper()
		// A Sandbox of the row's own, which nobody owns, marks the place in the stream.
		mark := create(t, namespace, fmt.Sprintf("mark-%d", time.Now().UnixNano()), framework.Suspended)
		var until []watch.Event
		eventually(t, "end of the history of "+namespace, func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			end := slices.IndexFunc(events, func(event watch.Event) bool {
				sandbox, ok := event.Object.(*v1beta1.Sandbox)
				return ok && sandbox.UID == mark.UID
			})
			if end < 0 {
				return fmt.Errorf("it is not among %d events", len(events))
			}
			until = slices.Clone(events[:end])
			return nil
		})
		return until
	}
}

// mostAtOnce returns how many Sandboxes an object controlled at most at any moment, those on their way out not counted.
func mostAtOnce(events []watch.Event, owner types.UID) int {
	live, most := sets.New[types.UID](), 0
	for _, event := range events {
		sandbox, ok := event.Object.(*v1beta1.Sandbox)
		if !ok {
			continue
		}
		if event.Type == watch.Deleted || sandbox.DeletionTimestamp != nil || !controls(owner, sandbox) {
			live.Delete(sandbox.UID)
			continue
		}
		most = max(most, live.Insert(sandbox.UID).Len())
	}
	return most
}

// everControlled returns how many Sandboxes an object ever controlled.
func everControlled(events []watch.Event, owner types.UID) int {
	all := sets.New[types.UID]()
	for _, event := range events {
		if sandbox, ok := event.Object.(*v1beta1.Sandbox); ok && controls(owner, sandbox) {
			all.Insert(sandbox.UID)
		}
	}
	return all.Len()
}

// stays fails the row as soon as a pool does not have exactly these members within a while.
func stays(t *tester, pool *extensionsv1beta1.SandboxWarmPool, want sets.Set[types.UID]) {
	t.Helper()
	consistently(t, "members of "+pool.Name, calm, func(context.Context) error {
		if got := uids(membersOf(t, pool)); !got.Equal(want) {
			return fmt.Errorf("they are %v, want %v", sets.List(got), sets.List(want))
		}
		return nil
	})
}

// awaitOthers waits until a pool is full and ready again, with no member that it had before.
func awaitOthers(t *tester, pool *extensionsv1beta1.SandboxWarmPool, before sets.Set[types.UID]) {
	t.Helper()
	eventually(t, "other members of "+pool.Name, func(context.Context) error {
		members := membersOf(t, pool)
		if len(members) != before.Len() || uids(members).HasAny(before.UnsortedList()...) {
			return fmt.Errorf("they are %v, before they were %v", sets.List(uids(members)), sets.List(before))
		}
		return errors.Join(slices.Collect(func(yield func(error) bool) {
			for _, member := range members {
				if !yield(ready()(&member)) {
					return
				}
			}
		})...)
	})
}

// awaitGarbageCollector waits until the garbage collector has seen whose the Sandboxes are that exist. It leaves behind what it has seen and
// no more, and it sees Sandboxes in the order in which they were written: once it has deleted a later one, whose owner never was, it
// knows the earlier ones.
func awaitGarbageCollector(t *tester, namespace string) {
	t.Helper()
	create(t, namespace, "seen", framework.Suspended, func(s *v1beta1.Sandbox) {
		s.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "Sandbox", Name: "never-was", UID: "00000000-0000-0000-0000-000000000000",
		}}
	})
	awaitGone(t, "Sandbox", sandboxes(namespace).Get, "seen")
}
