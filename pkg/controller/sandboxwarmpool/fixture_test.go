// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxwarmpool

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ktesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/informer"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/controllertest"
)

const (
	testNamespace = controllertest.Namespace
	testName      = "p1"
	testUID       = types.UID("pool-uid")
	testTemplate  = "python"

	testGrace   = 5 * time.Minute
	testRecheck = time.Minute
)

func testTime() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

type (
	poolChange     = func(*extensionsv1beta1.SandboxWarmPool)
	templateChange = func(*extensionsv1beta1.SandboxTemplate)
	memberChange   = func(*agentsv1beta1.Sandbox)
)

// newPool returns a pool of so many replicas, changed by the given functions.
func newPool(replicas int32, changes ...poolChange) *extensionsv1beta1.SandboxWarmPool {
	pool := &extensionsv1beta1.SandboxWarmPool{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: testNamespace, Name: testName, UID: testUID, Generation: 2, ResourceVersion: "100",
			CreationTimestamp: metav1.NewTime(testTime().Add(-time.Hour)),
		},
		Spec: extensionsv1beta1.SandboxWarmPoolSpec{
			Replicas: ptr.To(replicas), SandboxTemplateRef: extensionsv1beta1.SandboxTemplateRef{Name: testTemplate},
		},
	}
	for _, change := range changes {
		change(pool)
	}
	return pool
}

func recreate(pool *extensionsv1beta1.SandboxWarmPool) {
	pool.Spec.UpdateStrategy = &extensionsv1beta1.SandboxWarmPoolUpdateStrategy{Type: extensionsv1beta1.RecreateSandboxWarmPoolUpdateStrategyType}
}

func newTemplate(changes ...templateChange) *extensionsv1beta1.SandboxTemplate {
	template := &extensionsv1beta1.SandboxTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: testTemplate, UID: "template-uid", Generation: 1, ResourceVersion: "90"},
	}
	template.Spec.PodTemplate.Spec = corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example"}}}
	for _, change := range changes {
		change(template)
	}
	return template
}

func image(name string) templateChange {
	return func(template *extensionsv1beta1.SandboxTemplate) {
		template.Spec.PodTemplate.Spec.Containers[0].Image = name
		template.Generation++
	}
}

// testMember returns a ready member that the pool has made an hour ago, changed by the given functions.
func testMember(name string, changes ...memberChange) *agentsv1beta1.Sandbox {
	member := newMember(newPool(1), newTemplate(), name, true)
	member.UID, member.ResourceVersion = types.UID(name+"-uid"), "50"
	age(time.Hour)(member)
	becameReady(time.Hour)(member)
	for _, change := range changes {
		change(member)
	}
	return member
}

func age(age time.Duration) memberChange {
	return func(member *agentsv1beta1.Sandbox) { member.CreationTimestamp = metav1.NewTime(testTime().Add(-age)) }
}

// says gives the member a condition since some time ago.
func says(conditionType string, status metav1.ConditionStatus, reason, message string, ago time.Duration) memberChange {
	return func(member *agentsv1beta1.Sandbox) {
		meta.RemoveStatusCondition(&member.Status.Conditions, conditionType)
		meta.SetStatusCondition(&member.Status.Conditions, metav1.Condition{
			Type: conditionType, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(testTime().Add(-ago)),
		})
	}
}

func becameReady(ago time.Duration) memberChange {
	return func(member *agentsv1beta1.Sandbox) {
		says(agentsv1beta1.SandboxConditionReady, metav1.ConditionTrue, agentsv1beta1.SandboxReasonDependenciesReady, "", ago)(member)
		member.Status.PodIPs = []string{"10.0.0.7"}
	}
}

func becameUnready(ago time.Duration) memberChange {
	return says(agentsv1beta1.SandboxConditionReady, metav1.ConditionFalse, agentsv1beta1.SandboxReasonDependenciesNotReady, "", ago)
}

func noPlace(reason string, ago time.Duration) memberChange {
	return func(member *agentsv1beta1.Sandbox) {
		becameUnready(ago)(member)
		says(agentsv1beta1.SandboxConditionPodScheduled, metav1.ConditionFalse, reason, "", ago)(member)
	}
}

func claimed(member *agentsv1beta1.Sandbox) {
	member.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "extensions.agents.x-k8s.io/v1beta1", Kind: "SandboxClaim", Name: "c1", UID: "claim-uid", Controller: ptr.To(true),
	}}
	delete(member.Labels, agentsv1beta1.WarmPoolSandboxLabel)
	setLabel(&member.Labels, agentsv1beta1.ClaimUIDLabel, "claim-uid")
}

func orphaned(member *agentsv1beta1.Sandbox) { member.OwnerReferences = nil }

func terminating(member *agentsv1beta1.Sandbox) {
	member.DeletionTimestamp, member.Finalizers = ptr.To(metav1.NewTime(testTime())), []string{"example.com/hold"}
}

func suspended(member *agentsv1beta1.Sandbox) {
	member.Spec.OperatingMode = agentsv1beta1.SandboxOperatingModeSuspended
	says(agentsv1beta1.SandboxConditionReady, metav1.ConditionFalse, agentsv1beta1.SandboxReasonSuspended, "", time.Hour)(member)
}

func reservedFor(uid string) memberChange {
	return func(member *agentsv1beta1.Sandbox) {
		setLabel(&member.Annotations, extensionsv1beta1.ReservedForClaimAnnotation, uid)
	}
}

// fixture is a Controller and the World around it.
type fixture struct {
	*Controller
	*controllertest.World[*fixture]
	clock *clocktesting.FakeClock
}

func newFixture(t testing.TB, changes ...func(*Config)) *fixture {
	t.Helper()
	f := &fixture{clock: clocktesting.NewFakeClock(testTime())}
	f.World = controllertest.NewWorld(t, f)
	config := Config{
		SandboxClient: f.Server, SandboxInformers: informer.NewFactory(f.Server), Recorder: f.Recorder, Clock: f.clock,
		Limits: Limits{MaxBatchSize: 300}, ReadinessGracePeriod: testGrace, UnschedulableRecheckInterval: testRecheck, Evictable: true,
	}
	for _, change := range changes {
		change(&config)
	}
	f.Informers = config.SandboxInformers
	controller, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	f.Controller, f.Reconcile, f.Name = controller, controller.reconcile, testName
	created := 0
	f.Server.PrependReactor("create", "sandboxes", func(action ktesting.Action) (bool, runtime.Object, error) {
		sandbox := action.(ktesting.CreateAction).GetObject().(*agentsv1beta1.Sandbox)
		created++
		sandbox.UID, sandbox.ResourceVersion = types.UID(fmt.Sprintf("created-%d", created)), "60"
		sandbox.CreationTimestamp = metav1.NewTime(config.Clock.Now())
		return false, nil, nil
	})
	return f
}

// sync makes the cache catch up with the server, and tells the controller's handlers of it.
func (f *fixture) sync() {
	f.T.Helper()
	f.InCache(f.pool())
	live := map[string]bool{}
	for _, sandbox := range f.Sandboxes() {
		live[sandbox.Name] = true
		f.InCache(sandbox)
		f.sandboxHandler().OnAdd(sandbox, false)
	}
	indexer := f.Cache(&agentsv1beta1.Sandbox{})
	for _, object := range indexer.List() {
		if sandbox := object.(*agentsv1beta1.Sandbox); !live[sandbox.Name] {
			if err := indexer.Delete(sandbox); err != nil {
				f.T.Fatal(err)
			}
			f.sandboxHandler().OnDelete(sandbox)
		}
	}
}

// change changes a Sandbox on the server, and returns it.
func (f *fixture) change(name string, change memberChange) *agentsv1beta1.Sandbox {
	f.T.Helper()
	sandbox := f.Live(&agentsv1beta1.Sandbox{}, name).(*agentsv1beta1.Sandbox)
	change(sandbox)
	f.Change(sandbox)
	return sandbox
}

func (f *fixture) pool() *extensionsv1beta1.SandboxWarmPool {
	f.T.Helper()
	return f.Live(&extensionsv1beta1.SandboxWarmPool{}, testName).(*extensionsv1beta1.SandboxWarmPool)
}

// requests returns what was asked of the server since the last call, repeated requests as "n x …".
func (f *fixture) requests() []string {
	var requests []string
	counts := map[string]int{}
	for _, request := range f.Requests() {
		if counts[request]++; counts[request] == 1 {
			requests = append(requests, request)
		}
	}
	for i, request := range requests {
		if counts[request] > 1 {
			requests[i] = fmt.Sprintf("%d x %s", counts[request], request)
		}
	}
	return requests
}

func (f *fixture) wantRequests(want ...string) {
	f.T.Helper()
	controllertest.WantLines(f.T, "requests", f.requests(), want)
}

// wantStatus checks the status on the server, as "ready/replicas Status/Reason: message".
func (f *fixture) wantStatus(want string) {
	f.T.Helper()
	status := f.pool().Status
	got := fmt.Sprintf("%d/%d", status.ReadyReplicas, status.Replicas)
	if condition := meta.FindStatusCondition(status.Conditions, extensionsv1beta1.WarmPoolConditionProgressing); condition != nil {
		got += fmt.Sprintf(" %s/%s: %s", condition.Status, condition.Reason, condition.Message)
	}
	if got != want {
		f.T.Errorf("status is\n\t%s\nwant\n\t%s", got, want)
	}
}
