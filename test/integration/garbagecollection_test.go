// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

// child is an object that a Sandbox named box owns.
type child struct {
	kind, name string
	get        func(ctx context.Context, namespace, name string) (metav1.Object, error)
}

func children() []child {
	return []child{
		{"Pod", "box", func(ctx context.Context, namespace, name string) (metav1.Object, error) {
			return env.kube.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		}},
		{"Service", "box", func(ctx context.Context, namespace, name string) (metav1.Object, error) {
			return env.kube.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
		}},
		{"PersistentVolumeClaim", "data-box", func(ctx context.Context, namespace, name string) (metav1.Object, error) {
			return env.kube.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
		}},
	}
}

// neverWas is the name of an owner that does not exist.
const neverWas = "never-was"

// ownedByNobody returns the metadata of an object that the garbage collector deletes as soon as it has seen it.
func ownedByNobody(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{{
		APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "Sandbox", Name: neverWas, UID: "00000000-0000-0000-0000-000000000000",
	}}}
}

// awaitGarbageCollector waits until the garbage collector has seen the children that exist. It orphans what it has seen and no more,
// and it sees objects of one kind in the order in which they were made: once it has deleted a later one, it knows the earlier ones.
func awaitGarbageCollector(t *testing.T, namespace string) {
	t.Helper()
	const name = "seen"
	core := env.kube.CoreV1()
	template := framework.NewSandbox(name, framework.WithVolume(name)).Spec
	_, podErr := core.Pods(namespace).Create(t.Context(), &corev1.Pod{ObjectMeta: ownedByNobody(name), Spec: framework.PodSpec(framework.Image)}, metav1.CreateOptions{})
	_, serviceErr := core.Services(namespace).Create(t.Context(), &corev1.Service{
		ObjectMeta: ownedByNobody(name), Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone},
	}, metav1.CreateOptions{})
	_, claimErr := core.PersistentVolumeClaims(namespace).Create(t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: ownedByNobody(name), Spec: template.VolumeClaimTemplates[0].Spec,
	}, metav1.CreateOptions{})
	if err := errors.Join(podErr, serviceErr, claimErr); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, "Pod", core.Pods(namespace).Get, name)
	awaitGone(t, "Service", core.Services(namespace).Get, name)
	awaitGone(t, "PersistentVolumeClaim", core.PersistentVolumeClaims(namespace).Get, name)
}

func TestDeleteRemovesChildren(t *testing.T) {
	t.Parallel()
	for _, cascade := range []string{"background", "foreground"} {
		t.Run(cascade, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			createReady(t, namespace, framework.NewSandbox("box", framework.WithService, framework.WithVolume("data")))
			mustKubectl(t, namespace, "", "delete", "sandbox", "box", "--cascade="+cascade)
			if cascade == "foreground" {
				// kubectl waited for the Sandbox, and the Sandbox for its Pod.
				if _, err := env.kube.CoreV1().Pods(namespace).Get(t.Context(), "box", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
					t.Errorf("Pod after a foreground deletion: %v", err)
				}
			}
			for _, child := range children() {
				awaitGone(t, child.kind, func(ctx context.Context, name string, _ metav1.GetOptions) (metav1.Object, error) {
					return child.get(ctx, namespace, name)
				}, child.name)
			}
		})
	}
}

// liveChildren returns the children of the Sandbox by kind.
func liveChildren(t *testing.T, namespace string) map[string]metav1.Object {
	t.Helper()
	live := map[string]metav1.Object{}
	for _, child := range children() {
		object, err := child.get(t.Context(), namespace, child.name)
		if err != nil {
			t.Fatal(err)
		}
		live[child.kind] = object
	}
	return live
}

func TestDeleteOrphansChildren(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	createReady(t, namespace, framework.NewSandbox("box", framework.WithService, framework.WithVolume("data")))
	before := liveChildren(t, namespace)
	awaitGarbageCollector(t, namespace)
	mustKubectl(t, namespace, "", "delete", "sandbox", "box", "--cascade=orphan")
	for _, child := range children() {
		object, err := child.get(t.Context(), namespace, child.name)
		if err != nil {
			t.Errorf("%s was orphaned, but: %v", child.kind, err)
			continue
		}
		if object.GetUID() != before[child.kind].GetUID() || object.GetDeletionTimestamp() != nil || len(object.GetOwnerReferences()) != 0 {
			t.Errorf("%s was orphaned, but has UID %s (%s before), deletionTimestamp %v, owners %v", child.kind,
				object.GetUID(), before[child.kind].GetUID(), object.GetDeletionTimestamp(), object.GetOwnerReferences())
		}
	}
}

// TestNamespaceDeletion is not parallel, because it restarts the server while the namespace is being emptied.
func TestNamespaceDeletion(t *testing.T) {
	namespace := newNamespace(t)
	const count = 30
	for i := range count {
		create(t, namespace, framework.NewSandbox(fmt.Sprintf("box-%d", i), framework.WithService, framework.WithVolume("data")))
	}
	for i := range count {
		awaitCondition(t, namespace, fmt.Sprintf("box-%d", i), v1beta1.SandboxConditionReady)
	}
	if err := env.kube.CoreV1().Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	restart(t, sandboxAPIServer)
	awaitGone(t, "Namespace", env.kube.CoreV1().Namespaces().Get, namespace)
	list, err := sandboxes(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("after the namespace is gone: %v, %d sandboxes", err, len(list.Items))
	}
}

// restart kills a program and starts it again.
func restart(t *testing.T, program string) {
	t.Helper()
	if err := env.killProgram(t.Context(), program); err != nil {
		t.Fatal(err)
	}
	if err := env.startProgram(t.Context(), program); err != nil {
		t.Fatal(err)
	}
}

// TestOutageDeletesNothing proves that a Sandbox which cannot be looked up is not taken for one that is gone. To see that the
// garbage collector looks at all, the test gives it an object whose owner never was: it asks for that owner until it gets an answer.
func TestOutageDeletesNothing(t *testing.T) {
	namespace := newNamespace(t)
	createReady(t, namespace, framework.NewSandbox("box", framework.WithService, framework.WithVolume("data")))
	before := liveChildren(t, namespace)
	// Until the garbage collector knows the kind of the owner, it does not ask for it.
	awaitGarbageCollector(t, namespace)
	const orphan = "orphan"
	configMaps := env.kube.CoreV1().ConfigMaps(namespace)

	if err := env.killProgram(t.Context(), sandboxAPIServer); err != nil {
		t.Fatal(err)
	}
	started := false
	defer func() {
		if started {
			return
		}
		if err := env.startProgram(context.WithoutCancel(t.Context()), sandboxAPIServer); err != nil {
			t.Error(err)
		}
	}()
	if _, err := configMaps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: ownedByNobody(orphan)}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	const attempts = 3
	eventually(t, "the garbage collector looks for an owner during the outage", func(context.Context) error {
		codes, err := ownerLookups(namespace, neverWas)
		if err != nil {
			return err
		}
		if codes[503] < attempts {
			return fmt.Errorf("answers by code: %v", codes)
		}
		return nil
	})
	if _, err := configMaps.Get(t.Context(), orphan, metav1.GetOptions{}); err != nil {
		t.Errorf("the object of an owner that could not be looked up: %v", err)
	}

	// Until the server can answer it must say so, with 503, and not that something is not found or not allowed.
	stopLooking := make(chan struct{})
	looked := make(chan error, 1)
	go func() { looked <- lookUntil(t.Context(), namespace, "box", stopLooking) }()
	err := env.startProgram(t.Context(), sandboxAPIServer)
	started = err == nil
	close(stopLooking)
	if err := errors.Join(err, <-looked); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, "ConfigMap", configMaps.Get, orphan)
	codes, err := ownerLookups(namespace, "box")
	if err != nil || codes[404] != 0 {
		t.Errorf("the garbage collector was told that the Sandbox is not found: %v, answers by code %v", err, codes)
	}
	for _, child := range children() {
		object, err := child.get(t.Context(), namespace, child.name)
		if err != nil {
			t.Errorf("%s after the outage: %v", child.kind, err)
			continue
		}
		if object.GetUID() != before[child.kind].GetUID() || object.GetDeletionTimestamp() != nil {
			t.Errorf("%s was deleted in the outage", child.kind)
		}
	}
}

// lookUntil gets a Sandbox over and over, and returns an error if it is ever said that it does not exist or may not be read.
func lookUntil(ctx context.Context, namespace, name string, stop <-chan struct{}) error {
	for {
		select {
		case <-stop:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		default:
		}
		_, err := sandboxes(namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			return fmt.Errorf("a starting server answers: %w", err)
		}
	}
}

// ownerLookups counts the answers that the garbage collector got when it asked for a Sandbox, by HTTP code.
func ownerLookups(namespace, name string) (map[int32]int, error) {
	events, err := auditEvents(namespace)
	if err != nil {
		return nil, err
	}
	codes := map[int32]int{}
	for _, event := range events {
		if event.ObjectRef.Resource == "sandboxes" && event.ObjectRef.Name == name && strings.HasSuffix(event.User.Username, ":generic-garbage-collector") {
			codes[event.ResponseStatus.Code]++
		}
	}
	return codes, nil
}
