// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/informer"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/sandboxpod"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/controllertest"
)

const (
	testNamespace = controllertest.Namespace
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

// fixture is a Controller and the World around it.
type fixture struct {
	*Controller
	*controllertest.World[*fixture]
	clock *clocktesting.FakeClock
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
	f := &fixture{}
	f.World = controllertest.NewWorld(t, f)
	f.Kube = fake.NewClientset()
	f.KubeInformers, f.Informers = NewChildInformerFactory(f.Kube), informer.NewSandboxFactory(f.Server)
	controller, err := New(Config{
		KubeClient: f.Kube, SandboxClient: f.Server, ChildInformers: f.KubeInformers, SandboxInformers: f.Informers,
		Recorder: f.Recorder, ClusterDomain: "cluster.local", Clock: clock,
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Controller, f.Reconcile, f.Name = controller, controller.reconcile, testName
	f.Kube.PrependReactor("create", "pods", func(action ktesting.Action) (bool, runtime.Object, error) {
		pod := action.(ktesting.CreateAction).GetObject().(*corev1.Pod)
		pod.UID, pod.ResourceVersion, pod.Status.Phase = testPodUID, "60", corev1.PodPending
		return false, nil, nil
	})
	return f
}

// syncSandbox makes the cache catch up with the server.
func (f *fixture) syncSandbox() *agentsv1beta1.Sandbox {
	f.T.Helper()
	live := f.live()
	f.InCache(live)
	return live
}

func (f *fixture) live() *agentsv1beta1.Sandbox {
	f.T.Helper()
	return f.Live(&agentsv1beta1.Sandbox{}, testName).(*agentsv1beta1.Sandbox)
}

// wantCondition checks a condition of the Sandbox on the server, as "Status/Reason: message".
func (f *fixture) wantCondition(conditionType, want string) {
	f.T.Helper()
	if got := controllertest.DescribeCondition(f.live().Status.Conditions, conditionType); got != want {
		f.T.Errorf("condition %s is\n\t%s\nwant\n\t%s", conditionType, got, want)
	}
}
