// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/informer"
	sandboxfake "github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned/fake"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/sandboxpod"
)

const (
	testNamespace = "tenant"
	testName      = "s1"
	testUID       = types.UID("sandbox-uid")
	testPodUID    = types.UID("pod-uid")
)

func testTime() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// testSandbox returns a running Sandbox with one container, changed by the given functions.
func testSandbox(changes ...func(*agentsv1beta1.Sandbox)) *agentsv1beta1.Sandbox {
	sandbox := &agentsv1beta1.Sandbox{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: testNamespace, Name: testName, UID: testUID, Generation: 3, ResourceVersion: "100",
			CreationTimestamp: metav1.NewTime(testTime().Add(-2 * time.Second)),
		},
		Spec: agentsv1beta1.SandboxSpec{
			OperatingMode: agentsv1beta1.SandboxOperatingModeRunning,
			SandboxBlueprint: agentsv1beta1.SandboxBlueprint{
				PodTemplate: agentsv1beta1.PodTemplate{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example"}}}},
			},
		},
	}
	for _, change := range changes {
		change(sandbox)
	}
	return sandbox
}

func suspend(sandbox *agentsv1beta1.Sandbox) {
	sandbox.Spec.OperatingMode = agentsv1beta1.SandboxOperatingModeSuspended
}

func wantService(value bool) func(*agentsv1beta1.Sandbox) {
	return func(sandbox *agentsv1beta1.Sandbox) { sandbox.Spec.Service = &value }
}

func shutdownAt(at time.Time, policy agentsv1beta1.ShutdownPolicy) func(*agentsv1beta1.Sandbox) {
	return func(sandbox *agentsv1beta1.Sandbox) {
		t := metav1.NewTime(at)
		sandbox.Spec.ShutdownTime, sandbox.Spec.ShutdownPolicy = &t, &policy
	}
}

func withVolume(sandbox *agentsv1beta1.Sandbox) {
	sandbox.Spec.VolumeClaimTemplates = append(sandbox.Spec.VolumeClaimTemplates, agentsv1beta1.PersistentVolumeClaimTemplate{
		Metadata: agentsv1beta1.EmbeddedObjectMetadata{Name: "data"},
	})
}

func withStatus(conditions ...metav1.Condition) func(*agentsv1beta1.Sandbox) {
	return func(sandbox *agentsv1beta1.Sandbox) {
		for i := range conditions {
			conditions[i].LastTransitionTime = metav1.NewTime(testTime().Add(-time.Hour))
			conditions[i].ObservedGeneration = sandbox.Generation
		}
		sandbox.Status.Conditions = conditions
	}
}

// testPod returns the Pod that the controller would have made for the Sandbox, pending, changed by the given functions.
func testPod(sandbox *agentsv1beta1.Sandbox, changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := trimPod(sandboxpod.New(sandbox))
	pod.UID, pod.ResourceVersion = testPodUID, "61"
	pod.Status.Phase = corev1.PodPending
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func ready(pod *corev1.Pod) {
	pod.Spec.NodeName = "node-1"
	pod.Status = corev1.PodStatus{
		Phase:      corev1.PodRunning,
		PodIPs:     []corev1.PodIP{{IP: "10.0.0.7"}, {IP: "fd00::7"}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
}

func terminating(pod *corev1.Pod) {
	now := metav1.NewTime(testTime())
	pod.DeletionTimestamp = &now
	pod.Finalizers = []string{"example.com/hold"}
}

func phase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.Phase = phase }
}

func disown(pod *corev1.Pod)   { pod.OwnerReferences = nil }
func unlabel(pod *corev1.Pod)  { pod.Labels = nil }
func stranger(pod *corev1.Pod) { pod.OwnerReferences = []metav1.OwnerReference{strangerRef()} }

func strangerRef() metav1.OwnerReference {
	yes := true
	return metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "stranger-uid", Controller: &yes}
}

// fixture is a Controller between fake servers and caches that hold only what a test puts there: nothing flows from one to the
// other, so each test says how far the cache lags.
type fixture struct {
	*Controller
	t         testing.TB
	kube      *fake.Clientset
	sandboxes *sandboxfake.Clientset
	clock     *clocktesting.FakeClock
	events    chan string
}

// newFixture returns a fixture whose clock stands still.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	standing := clocktesting.NewFakeClock(testTime())
	f := newFixtureWithClock(t, standing)
	f.clock = standing
	return f
}

func newFixtureWithClock(t testing.TB, clock clock.WithTicker) *fixture {
	t.Helper()
	f := &fixture{t: t, kube: fake.NewClientset(), sandboxes: sandboxfake.NewSimpleClientset()}
	recorder := events.NewFakeRecorder(2 * burstSize)
	f.events = recorder.Events
	controller, err := New(Config{
		KubeClient: f.kube, SandboxClient: f.sandboxes,
		ChildInformers: NewChildInformerFactory(f.kube), SandboxInformers: informer.NewSandboxFactory(f.sandboxes),
		Recorder: recorder, ClusterDomain: "cluster.local", CreationLatency: NewCreationLatency(), Clock: clock,
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Controller = controller
	f.kube.PrependReactor("create", "pods", func(action ktesting.Action) (bool, runtime.Object, error) {
		pod := action.(ktesting.CreateAction).GetObject().(*corev1.Pod)
		pod.UID, pod.ResourceVersion, pod.Status.Phase = testPodUID, "60", corev1.PodPending
		return false, nil, nil
	})
	return f
}

// onServer puts objects where live reads and writes find them.
func (f *fixture) onServer(objects ...runtime.Object) *fixture {
	f.t.Helper()
	for _, object := range objects {
		var err error
		if sandbox, ok := object.(*agentsv1beta1.Sandbox); ok {
			// Add would guess the plural wrong.
			err = f.sandboxes.Tracker().Create(agentsv1beta1.SchemeGroupVersion.WithResource("sandboxes"), sandbox.DeepCopy(), sandbox.Namespace)
		} else {
			err = f.kube.Tracker().Add(object.DeepCopyObject())
		}
		if err != nil {
			f.t.Fatal(err)
		}
	}
	return f
}

// inCache puts objects where the informers keep them.
func (f *fixture) inCache(objects ...runtime.Object) *fixture {
	f.t.Helper()
	for _, object := range objects {
		if err := f.indexer(object).Update(object.DeepCopyObject()); err != nil {
			f.t.Fatal(err)
		}
	}
	return f
}

func (f *fixture) dropFromCache(object runtime.Object) {
	f.t.Helper()
	if err := f.indexer(object).Delete(object); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) indexer(object runtime.Object) cache.Indexer {
	core := f.config.ChildInformers.Core().V1()
	switch object.(type) {
	case *corev1.Pod:
		return core.Pods().Informer().GetIndexer()
	case *corev1.Service:
		return core.Services().Informer().GetIndexer()
	case *corev1.PersistentVolumeClaim:
		return core.PersistentVolumeClaims().Informer().GetIndexer()
	default:
		return f.config.SandboxInformers.Agents().V1beta1().Sandboxes().Informer().GetIndexer()
	}
}

// everywhere puts objects on the server and in the cache.
func (f *fixture) everywhere(objects ...runtime.Object) *fixture {
	f.t.Helper()
	return f.onServer(objects...).inCache(objects...)
}

// syncSandbox makes the cache catch up with the server.
func (f *fixture) syncSandbox() *agentsv1beta1.Sandbox {
	f.t.Helper()
	live := f.live()
	f.inCache(live)
	return live
}

func (f *fixture) live() *agentsv1beta1.Sandbox {
	f.t.Helper()
	object, err := f.sandboxes.Tracker().Get(agentsv1beta1.SchemeGroupVersion.WithResource("sandboxes"), testNamespace, testName)
	if err != nil {
		f.t.Fatal(err)
	}
	return object.(*agentsv1beta1.Sandbox)
}

func (f *fixture) pass() (time.Duration, error) {
	f.t.Helper()
	return f.reconcile(context.Background(), cache.NewObjectName(testNamespace, testName))
}

func (f *fixture) mustPass() time.Duration {
	f.t.Helper()
	after, err := f.pass()
	if err != nil {
		f.t.Fatalf("unexpected error: %v", err)
	}
	return after
}

// requests returns what was asked of the servers since the last call, as "verb resource[/subresource]".
func (f *fixture) requests() []string {
	var requests []string
	for _, action := range append(f.kube.Actions(), f.sandboxes.Actions()...) {
		request := action.GetVerb() + " " + action.GetResource().Resource
		if action.GetSubresource() != "" {
			request += "/" + action.GetSubresource()
		}
		requests = append(requests, request)
	}
	f.kube.ClearActions()
	f.sandboxes.ClearActions()
	return requests
}

func (f *fixture) wantRequests(want ...string) {
	f.t.Helper()
	if got := f.requests(); !slices.Equal(got, want) {
		f.t.Errorf("requests are\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// wantCondition checks a condition of the Sandbox on the server, as "Status/Reason: message".
func (f *fixture) wantCondition(conditionType, want string) {
	f.t.Helper()
	if got := describe(f.live().Status.Conditions, conditionType); got != want {
		f.t.Errorf("condition %s is\n\t%s\nwant\n\t%s", conditionType, got, want)
	}
}

func (f *fixture) wantEvents(want ...string) {
	f.t.Helper()
	var got []string
	for len(f.events) > 0 {
		got = append(got, <-f.events)
	}
	if !slices.Equal(got, want) {
		f.t.Errorf("events are\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

func (f *fixture) refuse(verb, resource string, err error) {
	react := func(ktesting.Action) (bool, runtime.Object, error) { return true, nil, err }
	if resource == "sandboxes" {
		f.sandboxes.PrependReactor(verb, resource, react)
	} else {
		f.kube.PrependReactor(verb, resource, react)
	}
}

func describe(conditions []metav1.Condition, conditionType string) string {
	condition := meta.FindStatusCondition(conditions, conditionType)
	if condition == nil {
		return "absent"
	}
	return string(condition.Status) + "/" + condition.Reason + ": " + condition.Message
}
