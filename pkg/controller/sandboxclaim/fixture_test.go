// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxclaim

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ktesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/claimedsandbox"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/informer"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/labeldomains"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/sandboxpod"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/controllertest"
)

const (
	testNamespace = controllertest.Namespace
	testName      = "c1"
	testUID       = types.UID("claim-uid")
	testPoolUID   = types.UID("pool-uid")
	testMemberUID = types.UID("member-uid")
	testGrace     = 2 * time.Second
)

type (
	claim    = extensionsv1beta1.SandboxClaim
	pool     = extensionsv1beta1.SandboxWarmPool
	template = extensionsv1beta1.SandboxTemplate
	sandbox  = agentsv1beta1.Sandbox
)

func testTime() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// testClaim returns a claim on pool p1 as somebody has just created it, changed by the given functions.
func testClaim(changes ...func(*claim)) *claim {
	c := &claim{ObjectMeta: metav1.ObjectMeta{
		Namespace: testNamespace, Name: testName, UID: testUID, Generation: 1, ResourceVersion: "100", CreationTimestamp: metav1.NewTime(testTime()),
	}}
	c.Spec.WarmPoolRef.Name = "p1"
	for _, change := range changes {
		change(c)
	}
	return c
}

func withVariable(c *claim) {
	c.Spec.Env = []extensionsv1beta1.EnvVar{{Name: "X", Value: "1"}}
}

func lifecycle(lifecycle extensionsv1beta1.Lifecycle) func(*claim) {
	return func(c *claim) { c.Spec.Lifecycle = &lifecycle }
}

func testPool(changes ...func(*pool)) *pool {
	p := &pool{ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: "p1", UID: testPoolUID, Generation: 1, ResourceVersion: "10"}}
	p.Spec.SandboxTemplateRef.Name = "t1"
	for _, change := range changes {
		change(p)
	}
	return p
}

func testTemplate(changes ...func(*template)) *template {
	t := &template{ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: "t1", UID: "template-uid", Generation: 1, ResourceVersion: "11"}}
	t.Spec.PodTemplate = agentsv1beta1.PodTemplate{
		Metadata: agentsv1beta1.PodMetadata{Labels: map[string]string{"app": "web"}},
		Spec:     corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example"}}},
	}
	for _, change := range changes {
		change(t)
	}
	return t
}

// testMember returns a ready member of the pool.
func testMember(changes ...func(*sandbox)) *sandbox {
	s := &sandbox{ObjectMeta: metav1.ObjectMeta{
		Namespace: testNamespace, Name: "p1-x", UID: testMemberUID, ResourceVersion: "50", CreationTimestamp: metav1.NewTime(testTime().Add(-time.Hour)),
		Labels: map[string]string{
			agentsv1beta1.WarmPoolSandboxLabel: naming.Hash("p1"), agentsv1beta1.SandboxTemplateRefHashLabel: naming.Hash("t1"),
			agentsv1beta1.LaunchTypeLabel: agentsv1beta1.LaunchTypeWarm,
		},
		Annotations: map[string]string{agentsv1beta1.SandboxTemplateRefAnnotation: "t1"},
		OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(testPool(), extensionsv1beta1.SchemeGroupVersion.WithKind(sandboxpod.WarmPoolKind)),
		},
	}}
	s.Spec.OperatingMode = agentsv1beta1.SandboxOperatingModeRunning
	readied(s)
	for _, change := range changes {
		change(s)
	}
	return s
}

func sandboxReady(status metav1.ConditionStatus, reason, message string) func(*sandbox) {
	return func(s *sandbox) {
		meta.SetStatusCondition(&s.Status.Conditions, metav1.Condition{
			Type: agentsv1beta1.SandboxConditionReady, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(testTime().Add(-time.Minute)),
		})
	}
}

func readied(s *sandbox) {
	s.Status.PodIPs = []string{"10.0.0.7"}
	sandboxReady(metav1.ConditionTrue, agentsv1beta1.SandboxReasonDependenciesReady, "Pod is Ready")(s)
}

func warming(s *sandbox) {
	s.Status = agentsv1beta1.SandboxStatus{}
	sandboxReady(metav1.ConditionFalse, agentsv1beta1.SandboxReasonDependenciesNotReady, "Pod exists with phase: Pending")(s)
}

func finished(at time.Time) func(*sandbox) {
	return func(s *sandbox) {
		sandboxReady(metav1.ConditionFalse, agentsv1beta1.SandboxReasonPodSucceeded, "Pod completed successfully")(s)
		meta.SetStatusCondition(&s.Status.Conditions, metav1.Condition{
			Type: agentsv1beta1.SandboxConditionFinished, Status: metav1.ConditionTrue, Reason: agentsv1beta1.SandboxReasonPodSucceeded,
			Message: "Pod completed successfully", LastTransitionTime: metav1.NewTime(at),
		})
	}
}

func deleting(s *sandbox) {
	now := metav1.NewTime(testTime())
	s.DeletionTimestamp, s.Finalizers = &now, []string{"example.com/hold"}
}

// bind returns the claim and the member as the API server leaves them when it binds them.
func bind(c *claim, member *sandbox) (*claim, *sandbox) {
	c, member = c.DeepCopy(), member.DeepCopy()
	if err := claimedsandbox.Adopt(member, c, testTemplate()); err != nil {
		panic(err)
	}
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, extensionsv1beta1.SandboxNameAnnotation, member.Name)
	c.Status = claimedsandbox.Status(c, member)
	return c, member
}

// boundPair returns a claim that was bound when it was created, and its Sandbox.
func boundPair(changes ...func(*claim)) (*claim, *sandbox) {
	return bind(testClaim(changes...), testMember())
}

// stamped marks a claim as having been seen ready.
func stamped(c *claim) {
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, extensionsv1beta1.ClaimFirstReadyAtAnnotation, "2026-01-02T03:04:05Z")
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, extensionsv1beta1.ControllerFirstObservedAtAnnotation, "2026-01-02T03:04:05Z")
}

// fixture is a Controller and the World around it.
type fixture struct {
	*Controller
	*controllertest.World[*fixture]
	clock *clocktesting.FakeClock
	// version is the last resource version that the server has given.
	version *int
}

// newFixture returns a fixture whose clock stands still, at the second at which the claim was created.
func newFixture(t testing.TB) *fixture {
	t.Helper()
	standing := clocktesting.NewFakeClock(testTime())
	f := newFixtureWithClock(t, standing)
	f.clock = standing
	return f
}

func newFixtureWithClock(t testing.TB, clock clock.WithTicker) *fixture {
	t.Helper()
	f := &fixture{version: ptr.To(1000)}
	f.World = controllertest.NewWorld(t, f)
	f.start(clock)
	f.Server.PrependReactor("patch", "*", f.patch)
	f.Server.PrependReactor("create", "sandboxes", func(action ktesting.Action) (bool, runtime.Object, error) {
		made := action.(ktesting.CreateAction).GetObject().(*sandbox)
		if controllertest.IsDryRun(action) && f.sandbox(made.Name) == nil {
			return true, made, nil
		}
		made.UID, made.ResourceVersion, made.CreationTimestamp = "made-uid", f.nextVersion(), metav1.NewTime(testTime())
		return false, nil, nil
	})
	f.bindReturns(func() (*claim, error) { return f.live(), nil })
	return f
}

// start starts a controller that knows nothing yet.
func (f *fixture) start(clock clock.WithTicker) {
	f.T.Helper()
	domains, err := labeldomains.NewFile("")
	if err != nil {
		f.T.Fatal(err)
	}
	f.Informers = informer.NewFactory(f.Server)
	f.Controller, err = New(Config{
		SandboxClient: f.Server, SandboxInformers: f.Informers, Recorder: f.Recorder,
		AllowedLabelDomains: domains, WarmCandidateGracePeriod: testGrace, Clock: clock,
	})
	if err != nil {
		f.T.Fatal(err)
	}
	f.Reconcile, f.Name = f.reconcile, testName
}

// killed returns what a successor of the controller finds: the same server, and nothing in the cache.
func (f *fixture) killed() *fixture {
	f.T.Helper()
	f.Server.ClearActions()
	successor := &fixture{clock: f.clock, version: f.version}
	successor.World = controllertest.NewWorld(f.T, successor)
	successor.Server = f.Server
	successor.start(f.clock)
	return successor
}

func (f *fixture) nextVersion() string {
	*f.version++
	return strconv.Itoa(*f.version)
}

// patch does what the fake server lacks: conflicts and new versions.
func (f *fixture) patch(action ktesting.Action) (bool, runtime.Object, error) {
	patch := action.(ktesting.PatchAction)
	var wanted struct {
		Metadata struct {
			UID             types.UID `json:"uid"`
			ResourceVersion string    `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(patch.GetPatch(), &wanted); err != nil {
		return true, nil, err
	}
	before, err := f.Server.Tracker().Get(action.GetResource(), action.GetNamespace(), patch.GetName())
	if err != nil {
		return true, nil, err
	}
	object, err := meta.Accessor(before)
	if err != nil {
		return true, nil, err
	}
	if wanted.Metadata.UID != object.GetUID() || wanted.Metadata.ResourceVersion != "" && wanted.Metadata.ResourceVersion != object.GetResourceVersion() {
		return true, nil, apierrors.NewConflict(action.GetResource().GroupResource(), patch.GetName(), nil)
	}
	_, after, err := ktesting.ObjectReaction(f.Server.Tracker())(action)
	if err != nil {
		return true, nil, err
	}
	if object, err = meta.Accessor(after); err != nil {
		return true, nil, err
	}
	object.SetResourceVersion(f.nextVersion())
	return true, after, f.Server.Tracker().Update(action.GetResource(), after, action.GetNamespace())
}

// bindReturns says how the server answers the request to bind the claim.
func (f *fixture) bindReturns(answer func() (*claim, error)) {
	f.Server.PrependReactor("create", "sandboxclaims/bind", func(ktesting.Action) (bool, runtime.Object, error) {
		bound, err := answer()
		return true, bound, err
	})
}

// bindGives lets the server give the member to the claim.
func (f *fixture) bindGives(member *sandbox) {
	f.bindReturns(func() (*claim, error) {
		bound, adopted := bind(f.live(), member)
		bound.ResourceVersion = f.nextVersion()
		adopted.ResourceVersion = bound.ResourceVersion
		f.Change(bound, adopted)
		return bound, nil
	})
}

// created tells the controller that the claim was created, and puts it everywhere.
func (f *fixture) created(c *claim) *fixture {
	f.T.Helper()
	f.Everywhere(c)
	f.claimHandler().OnAdd(c, false)
	return f
}

// sync makes the cache of claims and Sandboxes catch up with the server.
func (f *fixture) sync() {
	f.T.Helper()
	f.InCache(f.live())
	for _, sandbox := range f.Sandboxes() {
		f.InCache(sandbox)
	}
}

func (f *fixture) live() *claim {
	f.T.Helper()
	return f.Live(&claim{}, testName).(*claim)
}

// sandbox returns a Sandbox on the server, or nil.
func (f *fixture) sandbox(name string) *sandbox {
	f.T.Helper()
	for _, sandbox := range f.Sandboxes() {
		if sandbox.Name == name {
			return sandbox
		}
	}
	return nil
}

// writes returns what was asked of the server since the last call but to read, as "verb resource[/subresource]", and whether for good.
func (f *fixture) writes() []string {
	var writes []string
	for _, request := range f.Requests() {
		if !strings.HasPrefix(request, "get ") {
			writes = append(writes, request)
		}
	}
	return writes
}

func (f *fixture) wantWrites(want ...string) {
	f.T.Helper()
	controllertest.WantLines(f.T, "writes", f.writes(), want)
}

// wantReady checks the Ready condition of the claim on the server, as "Status/Reason: message".
func (f *fixture) wantReady(want string) {
	f.T.Helper()
	got := controllertest.DescribeCondition(f.live().Status.Conditions, extensionsv1beta1.ClaimConditionReady)
	if got != want {
		f.T.Errorf("Ready is\n\t%s\nwant\n\t%s", got, want)
	}
}

func (f *fixture) wantSandboxName(want string) {
	f.T.Helper()
	if got := f.live().Status.Sandbox.Name; got != want {
		f.T.Errorf("status.sandbox.name is %q, want %q", got, want)
	}
}

// heal undoes what was last done to the server's answers.
func (f *fixture) heal() { f.Server.ReactionChain = f.Server.ReactionChain[1:] }

// queued returns the names of what is due for a pass, in order, and empties the queue.
func (f *fixture) queued() []string {
	var names []string
	for f.loop.Queue.Len() > 0 {
		name, _ := f.loop.Queue.Get()
		names = append(names, name.Name)
		f.loop.Queue.Done(name)
	}
	slices.Sort(names)
	return names
}

func (f *fixture) wantQueued(want ...string) {
	f.T.Helper()
	if got := f.queued(); !slices.Equal(got, want) {
		f.T.Errorf("queued are %q, want %q", got, want)
	}
}

func unavailable() error { return apierrors.NewServiceUnavailable("no endpoints") }
