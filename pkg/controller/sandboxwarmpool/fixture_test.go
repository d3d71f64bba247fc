// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxwarmpool

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ktesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/informer"
	sandboxfake "github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned/fake"
)

const (
	testNamespace = "tenant"
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

// fixture is a Controller between a fake server and caches that hold only what a test puts there: nothing flows from one to the other, so
// each test says how far the cache lags.
type fixture struct {
	*Controller
	t      testing.TB
	server *sandboxfake.Clientset
	clock  *clocktesting.FakeClock
	events chan string
}

func newFixture(t testing.TB, changes ...func(*Config)) *fixture {
	t.Helper()
	f := &fixture{t: t, server: sandboxfake.NewSimpleClientset(), clock: clocktesting.NewFakeClock(testTime())}
	recorder := events.NewFakeRecorder(10)
	f.events = recorder.Events
	config := Config{
		SandboxClient: f.server, SandboxInformers: informer.NewFactory(f.server), Recorder: recorder, Clock: f.clock,
		Limits: Limits{MaxBatchSize: 300}, ReadinessGracePeriod: testGrace, UnschedulableRecheckInterval: testRecheck, Evictable: true,
	}
	for _, change := range changes {
		change(&config)
	}
	controller, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	f.Controller = controller
	created := 0
	f.server.PrependReactor("create", "sandboxes", func(action ktesting.Action) (bool, runtime.Object, error) {
		sandbox := action.(ktesting.CreateAction).GetObject().(*agentsv1beta1.Sandbox)
		created++
		sandbox.UID, sandbox.ResourceVersion = types.UID(fmt.Sprintf("created-%d", created)), "60"
		sandbox.CreationTimestamp = metav1.NewTime(config.Clock.Now())
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
			err = f.server.Tracker().Create(sandboxResource(), sandbox.DeepCopy(), sandbox.Namespace)
		} else {
			err = f.server.Tracker().Add(object.DeepCopyObject())
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

func (f *fixture) indexer(object runtime.Object) cache.Indexer {
	extensions := f.config.SandboxInformers.Extensions().V1beta1()
	switch object.(type) {
	case *extensionsv1beta1.SandboxWarmPool:
		return extensions.SandboxWarmPools().Informer().GetIndexer()
	case *extensionsv1beta1.SandboxTemplate:
		return extensions.SandboxTemplates().Informer().GetIndexer()
	case *extensionsv1beta1.SandboxClaim:
		return extensions.SandboxClaims().Informer().GetIndexer()
	default:
		return f.config.SandboxInformers.Agents().V1beta1().Sandboxes().Informer().GetIndexer()
	}
}

func (f *fixture) everywhere(objects ...runtime.Object) *fixture {
	f.t.Helper()
	return f.onServer(objects...).inCache(objects...)
}

// sync makes the cache catch up with the server, and tells the controller's handlers of it.
func (f *fixture) sync() {
	f.t.Helper()
	f.inCache(f.pool())
	live := map[string]bool{}
	for _, sandbox := range f.sandboxes() {
		live[sandbox.Name] = true
		f.inCache(sandbox)
		f.sandboxHandler().OnAdd(sandbox, false)
	}
	indexer := f.indexer(&agentsv1beta1.Sandbox{})
	for _, object := range indexer.List() {
		if sandbox := object.(*agentsv1beta1.Sandbox); !live[sandbox.Name] {
			if err := indexer.Delete(sandbox); err != nil {
				f.t.Fatal(err)
			}
			f.sandboxHandler().OnDelete(sandbox)
		}
	}
}

// change changes a Sandbox on the server, and returns it.
func (f *fixture) change(name string, change memberChange) *agentsv1beta1.Sandbox {
	f.t.Helper()
	object, err := f.server.Tracker().Get(sandboxResource(), testNamespace, name)
	if err != nil {
		f.t.Fatal(err)
	}
	sandbox := object.(*agentsv1beta1.Sandbox).DeepCopy()
	change(sandbox)
	if err := f.server.Tracker().Update(sandboxResource(), sandbox, testNamespace); err != nil {
		f.t.Fatal(err)
	}
	return sandbox
}

func (f *fixture) pool() *extensionsv1beta1.SandboxWarmPool {
	f.t.Helper()
	object, err := f.server.Tracker().Get(extensionsv1beta1.SchemeGroupVersion.WithResource("sandboxwarmpools"), testNamespace, testName)
	if err != nil {
		f.t.Fatal(err)
	}
	return object.(*extensionsv1beta1.SandboxWarmPool)
}

// sandboxes returns the Sandboxes on the server, by name.
func (f *fixture) sandboxes() []*agentsv1beta1.Sandbox {
	f.t.Helper()
	list, err := f.server.Tracker().List(sandboxResource(), agentsv1beta1.SchemeGroupVersion.WithKind("Sandbox"), testNamespace)
	if err != nil {
		f.t.Fatal(err)
	}
	var found []*agentsv1beta1.Sandbox
	for i := range list.(*agentsv1beta1.SandboxList).Items {
		found = append(found, &list.(*agentsv1beta1.SandboxList).Items[i])
	}
	return found
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

// requests returns what was asked of the server since the last call, as "verb resource[/subresource]", repeated requests as "n x …".
func (f *fixture) requests() []string {
	var requests []string
	counts := map[string]int{}
	for _, action := range f.server.Actions() {
		request := action.GetVerb() + " " + action.GetResource().Resource
		if action.GetSubresource() != "" {
			request += "/" + action.GetSubresource()
		}
		if counts[request]++; counts[request] == 1 {
			requests = append(requests, request)
		}
	}
	f.server.ClearActions()
	for i, request := range requests {
		if counts[request] > 1 {
			requests[i] = fmt.Sprintf("%d x %s", counts[request], request)
		}
	}
	return requests
}

func (f *fixture) wantRequests(want ...string) {
	f.t.Helper()
	if got := f.requests(); !slices.Equal(got, want) {
		f.t.Errorf("requests are\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// wantStatus checks the status on the server, as "ready/replicas Status/Reason: message".
func (f *fixture) wantStatus(want string) {
	f.t.Helper()
	status := f.pool().Status
	got := fmt.Sprintf("%d/%d", status.ReadyReplicas, status.Replicas)
	if condition := meta.FindStatusCondition(status.Conditions, extensionsv1beta1.WarmPoolConditionProgressing); condition != nil {
		got += fmt.Sprintf(" %s/%s: %s", condition.Status, condition.Reason, condition.Message)
	}
	if got != want {
		f.t.Errorf("status is\n\t%s\nwant\n\t%s", got, want)
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
	f.server.PrependReactor(verb, resource, func(ktesting.Action) (bool, runtime.Object, error) { return true, nil, err })
}

func sandboxResource() schema.GroupVersionResource {
	return agentsv1beta1.SchemeGroupVersion.WithResource("sandboxes")
}
