// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned/typed/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

const (
	patience = framework.Patience
	// calm is how long is watched that nothing happens. What a controller does, it does within milliseconds.
	calm = 2 * time.Second
)

// eventually waits until check returns nil, and fails the row with its last error if it never does.
func eventually(t *tester, what string, check func(ctx context.Context) error) {
	t.Helper()
	framework.Eventually(t, patience, what, check)
}

// consistently fails the row as soon as check returns an error within a while.
func consistently(t *tester, what string, while time.Duration, check func(ctx context.Context) error) {
	t.Helper()
	framework.Consistently(t, while, what, check)
}

// newNamespace makes a namespace in which Pods can be created, and deletes it at the end of the row.
func newNamespace(t *tester) string {
	t.Helper()
	return framework.NewNamespace(t, env.kube, "compat-", func(ctx context.Context, namespace string) { env.kubectl.Describe(ctx, t, namespace) })
}

func sandboxes(namespace string) agentsv1beta1.SandboxInterface {
	return env.agents.AgentsV1beta1().Sandboxes(namespace)
}

// unscheduled is an option of framework.NewSandbox: nobody schedules the Pod, so its status is what the row writes, and it is gone
// as soon as it is deleted unless the row holds it.
func unscheduled(sandbox *v1beta1.Sandbox) {
	sandbox.Spec.PodTemplate.Spec.SchedulerName = "nobody"
}

// with returns an option of framework.NewSandbox that changes the spec.
func with(change func(*v1beta1.SandboxSpec)) func(*v1beta1.Sandbox) {
	return func(sandbox *v1beta1.Sandbox) { change(&sandbox.Spec) }
}

// expiring returns an option of framework.NewSandbox: the Sandbox expires after the given time, with the given policy.
func expiring(after time.Duration, policy v1beta1.ShutdownPolicy) func(*v1beta1.Sandbox) {
	return with(func(spec *v1beta1.SandboxSpec) {
		spec.ShutdownTime = new(metav1.NewTime(time.Now().Add(after)))
		spec.ShutdownPolicy = &policy
	})
}

// create creates a Sandbox.
func create(t *tester, namespace, name string, options ...func(*v1beta1.Sandbox)) *v1beta1.Sandbox {
	t.Helper()
	created, err := sandboxes(namespace).Create(t.Context(), framework.NewSandbox(name, options...), metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating Sandbox %s/%s: %v", namespace, name, err)
	}
	return created
}

// createError tries to create a Sandbox, without trace, and returns the error.
func createError(t *tester, namespace, name string, options ...func(*v1beta1.Sandbox)) error {
	t.Helper()
	_, err := sandboxes(namespace).Create(t.Context(), framework.NewSandbox(name, options...), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// post sends a Sandbox in JSON, as somebody does who has no library. Query parameters come in pairs.
func post(t *tester, namespace, body string, query ...string) rest.Result {
	t.Helper()
	request := env.agents.AgentsV1beta1().RESTClient().Post().Namespace(namespace).Resource("sandboxes").
		SetHeader("Content-Type", "application/json").Body([]byte(body))
	for i := 0; i < len(query); i += 2 {
		request.Param(query[i], query[i+1])
	}
	return request.Do(t.Context())
}

// get returns a Sandbox.
func get(t *tester, namespace, name string) *v1beta1.Sandbox {
	t.Helper()
	sandbox, err := sandboxes(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("getting Sandbox %s/%s: %v", namespace, name, err)
	}
	return sandbox
}

// tryPatch patches a Sandbox with a JSON merge patch.
func tryPatch(t *tester, namespace, name, patch string, subresources ...string) (*v1beta1.Sandbox, error) {
	t.Helper()
	return sandboxes(namespace).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
}

// patch is tryPatch that must succeed.
func patch(t *tester, namespace, name, patch string, subresources ...string) *v1beta1.Sandbox {
	t.Helper()
	patched, err := tryPatch(t, namespace, name, patch, subresources...)
	if err != nil {
		t.Fatalf("patching Sandbox %s/%s with %s: %v", namespace, name, patch, err)
	}
	return patched
}

// suspend and resume set the mode as every client of the contract can.
func suspend(t *tester, namespace, name string) *v1beta1.Sandbox {
	t.Helper()
	return patch(t, namespace, name, `{"spec":{"operatingMode":"Suspended"}}`)
}

func resume(t *tester, namespace, name string) *v1beta1.Sandbox {
	t.Helper()
	return patch(t, namespace, name, `{"spec":{"operatingMode":"Running"}}`)
}

// await waits until check returns nil for a Sandbox, and returns it.
func await(t *tester, namespace, name string, check func(*v1beta1.Sandbox) error) *v1beta1.Sandbox {
	t.Helper()
	var sandbox *v1beta1.Sandbox
	eventually(t, fmt.Sprintf("Sandbox %s/%s", namespace, name), func(ctx context.Context) (err error) {
		if sandbox, err = sandboxes(namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		return check(sandbox)
	})
	return sandbox
}

// settle waits until nobody has written a Sandbox for a while.
func settle(t *tester, namespace, name string) *v1beta1.Sandbox {
	t.Helper()
	var last *v1beta1.Sandbox
	var since time.Time
	return await(t, namespace, name, func(sandbox *v1beta1.Sandbox) error {
		if last == nil || last.ResourceVersion != sandbox.ResourceVersion {
			last, since = sandbox, time.Now()
		}
		if time.Since(since) < calm {
			return errors.New("it was written a moment ago")
		}
		return nil
	})
}

// condition is what is expected of one. Empty fields are not looked at; a status of absent means that there is none.
type condition struct {
	kind    string
	status  metav1.ConditionStatus
	reason  string
	message string // is contained in the message
}

const absent metav1.ConditionStatus = "absent"

// conditions returns a check of conditions, each of which must have been observed of the present spec.
func conditions(want ...condition) func(*v1beta1.Sandbox) error {
	return func(sandbox *v1beta1.Sandbox) error {
		for _, w := range want {
			got := meta.FindStatusCondition(sandbox.Status.Conditions, w.kind)
			switch {
			case got == nil && w.status == absent:
			case got == nil:
				return fmt.Errorf("no condition %s, but %+v", w.kind, sandbox.Status.Conditions)
			case got.Status != w.status, w.reason != "" && got.Reason != w.reason, !strings.Contains(got.Message, w.message),
				got.ObservedGeneration != sandbox.Generation:
				return fmt.Errorf("generation %d has %+v, want %+v", sandbox.Generation, *got, w)
			}
		}
		return nil
	}
}

// ready, notReady and suspended are checks of one condition.
func ready() func(*v1beta1.Sandbox) error {
	return conditions(condition{v1beta1.SandboxConditionReady, metav1.ConditionTrue, v1beta1.SandboxReasonDependenciesReady, ""})
}

func notReady(reason, message string) func(*v1beta1.Sandbox) error {
	return conditions(condition{v1beta1.SandboxConditionReady, metav1.ConditionFalse, reason, message})
}

func suspended() func(*v1beta1.Sandbox) error {
	return conditions(condition{v1beta1.SandboxConditionSuspended, metav1.ConditionTrue, v1beta1.SandboxReasonPodTerminated, ""})
}

// all joins checks.
func all(checks ...func(*v1beta1.Sandbox) error) func(*v1beta1.Sandbox) error {
	return func(sandbox *v1beta1.Sandbox) error {
		for _, check := range checks {
			if err := check(sandbox); err != nil {
				return err
			}
		}
		return nil
	}
}

// awaitPod waits until a Pod is there.
func awaitPod(t *tester, namespace, name string) *corev1.Pod {
	t.Helper()
	return awaitPodIs(t, namespace, name, func(*corev1.Pod) error { return nil })
}

// awaitPodIs waits until check returns nil for a Pod, and returns it.
func awaitPodIs(t *tester, namespace, name string, check func(*corev1.Pod) error) *corev1.Pod {
	t.Helper()
	var pod *corev1.Pod
	eventually(t, fmt.Sprintf("Pod %s/%s", namespace, name), func(ctx context.Context) (err error) {
		if pod, err = env.kube.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		return check(pod)
	})
	return pod
}

// patchPod changes a Pod by a JSON merge patch.
func patchPod(t *tester, namespace, name, patch string, subresources ...string) {
	t.Helper()
	_, err := env.kube.CoreV1().Pods(namespace).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
	if err != nil {
		t.Fatalf("patching Pod %s/%s: %v", namespace, name, err)
	}
}

// States of Pods, as a kubelet would write them.
const (
	podReady = `{"status":{"phase":"Running","podIP":"192.0.2.7","podIPs":[{"ip":"192.0.2.7"},{"ip":"2001:db8::7"}],
		"conditions":[{"type":"PodScheduled","status":"True"},{"type":"Ready","status":"True"}]}}`
	podReadyWithoutIP = `{"status":{"phase":"Running","conditions":[{"type":"PodScheduled","status":"True"},{"type":"Ready","status":"True"}]}}`
	podNotReady       = `{"status":{"phase":"Running","podIP":"192.0.2.7","podIPs":[{"ip":"192.0.2.7"}],
		"conditions":[{"type":"PodScheduled","status":"True"},{"type":"Ready","status":"False"}]}}`
	podSucceeded     = `{"status":{"phase":"Succeeded","conditions":[{"type":"PodScheduled","status":"True"}]}}`
	podFailed        = `{"status":{"phase":"Failed","conditions":[{"type":"PodScheduled","status":"True"}]}}`
	podUnschedulable = `{"status":{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/1 nodes are available"}]}}`
)

// createWithPod creates a Sandbox whose Pod is in a state of the row's choice, and returns the Pod.
func createWithPod(t *tester, namespace, name, state string, options ...func(*v1beta1.Sandbox)) *corev1.Pod {
	t.Helper()
	create(t, namespace, name, append(options, unscheduled)...)
	pod := awaitPod(t, namespace, name)
	patchPod(t, namespace, name, state, "status")
	return pod
}

// holdPod keeps a Pod from going away when it is deleted, until the row ends or calls the returned function.
func holdPod(t *tester, namespace, name string) (release func()) {
	t.Helper()
	patchPod(t, namespace, name, `{"metadata":{"finalizers":["example.com/hold"]}}`)
	release = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		_, err := env.kube.CoreV1().Pods(namespace).Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("releasing Pod %s: %v", name, err)
		}
	}
	t.Cleanup(release)
	return release
}

// pods returns the Pods of a namespace.
func pods(t *tester, namespace string) []corev1.Pod {
	t.Helper()
	list, err := env.kube.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// service returns a Service, or nil if there is none.
func service(t *tester, namespace, name string) *corev1.Service {
	t.Helper()
	service, err := env.kube.CoreV1().Services(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatalf("getting Service %s/%s: %v", namespace, name, err)
	}
	return service
}

// claim returns a PersistentVolumeClaim, or nil if there is none.
func claim(t *tester, namespace, name string) *corev1.PersistentVolumeClaim {
	t.Helper()
	claim, err := env.kube.CoreV1().PersistentVolumeClaims(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatalf("getting PersistentVolumeClaim %s/%s: %v", namespace, name, err)
	}
	return claim
}

// awaitGone waits until an object is not found.
func awaitGone[O any](t *tester, what string, get func(ctx context.Context, name string, options metav1.GetOptions) (O, error), name string) {
	t.Helper()
	framework.AwaitGone(t, what, get, name)
}

// controlled is the check that an object is owned by a Sandbox as the contract wants it.
func controlled(t *tester, object metav1.Object, sandbox *v1beta1.Sandbox) {
	t.Helper()
	refs := object.GetOwnerReferences()
	if len(refs) != 1 {
		t.Errorf("%s has owner references %+v, want one", object.GetName(), refs)
		return
	}
	ref := refs[0]
	if ref.APIVersion != v1beta1.SchemeGroupVersion.String() || ref.Kind != "Sandbox" || ref.Name != sandbox.Name || ref.UID != sandbox.UID ||
		ref.Controller == nil || !*ref.Controller || ref.BlockOwnerDeletion == nil || !*ref.BlockOwnerDeletion {
		t.Errorf("%s has owner reference %+v, want the Sandbox as controller that blocks its own deletion", object.GetName(), ref)
	}
}

// controllerOf returns the owner references of an object that a Sandbox controls.
func controllerOf(sandbox *v1beta1.Sandbox) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(sandbox, v1beta1.SchemeGroupVersion.WithKind("Sandbox"))}
}

// stranger returns the owner references of an object that something else controls, which exists.
func stranger(t *tester, namespace string) []metav1.OwnerReference {
	t.Helper()
	owner, err := env.kube.CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "stranger-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return []metav1.OwnerReference{*metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
}

// refused fails the row unless err is an API error of one of the given codes, with a message that contains all the given parts.
func refused(t *tester, what string, err error, codes []int32, parts ...string) {
	t.Helper()
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		t.Errorf("%s: got error %v, want an API error of code %v", what, err, codes)
		return
	}
	if got := status.Status(); !slices.Contains(codes, got.Code) {
		t.Errorf("%s: got code %d (%s), want %v", what, got.Code, got.Message, codes)
	}
	for _, part := range parts {
		if message := status.Status().Message; !strings.Contains(message, part) {
			t.Errorf("%s: message %q does not contain %q", what, message, part)
		}
	}
}

// Codes of refusals. Which of the two says that a value has the wrong form depends on where it is decoded.
var (
	invalid   = []int32{422}
	malformed = []int32{400, 422}
	conflict  = []int32{409}
)

// recorded returns the events about an object that have a reason.
func recorded(t *tester, namespace, kind, name, reason string) []eventsv1.Event {
	t.Helper()
	return slices.DeleteFunc(eventsAbout(t, namespace, kind, name), func(e eventsv1.Event) bool { return e.Reason != reason })
}

// eventsAbout returns the events about an object.
func eventsAbout(t *tester, namespace, kind, name string) []eventsv1.Event {
	t.Helper()
	list, err := env.kube.EventsV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(e eventsv1.Event) bool { return e.Regarding.Kind != kind || e.Regarding.Name != name })
}

// next returns the next event of a watch.
func next(t *tester, watcher watch.Interface) watch.Event {
	t.Helper()
	return framework.NextEvent(t, watcher)
}

// kubectl runs kubectl in a namespace, with standard input.
func kubectl(t *tester, namespace, stdin string, args ...string) framework.KubectlResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return env.kubectl.Run(ctx, t, namespace, stdin, args...)
}

// mustKubectl runs kubectl and returns its standard output. It fails the row if kubectl does.
func mustKubectl(t *tester, namespace, stdin string, args ...string) string {
	t.Helper()
	return kubectl(t, namespace, stdin, args...).Output(t)
}

// manifest returns a Sandbox as users write it, followed by more lines of its spec.
func manifest(name string, specLines ...string) string { return framework.Manifest(name, specLines...) }

// body returns a Sandbox in JSON, with more members of its spec.
func body(name string, members ...string) string {
	return fmt.Sprintf(`{"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox","metadata":{"name":%q},"spec":{%s}}`, name, strings.Join(members, ","))
}

// podTemplate is the member podTemplate of a spec, whose Pod has more members.
func podTemplate(members ...string) string {
	return `"podTemplate":{"spec":{` + strings.Join(append(members, `"containers":[{"name":"main","image":"example.com/main"}]`), ",") + `}}`
}

// container is the member podTemplate of a spec, whose one container has more members.
func container(members ...string) string {
	return `"podTemplate":{"spec":{"containers":[{` + strings.Join(append(members, `"name":"main","image":"example.com/main"`), ",") + `}]}}`
}

func parseQuantity(t *tester, s string) resource.Quantity {
	t.Helper()
	quantity, err := resource.ParseQuantity(s)
	if err != nil {
		t.Fatal(err)
	}
	return quantity
}
