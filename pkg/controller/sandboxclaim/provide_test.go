// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxclaim

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/cache"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/claimedsandbox"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/failure"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/namespace"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/sandboxtemplate"
)

// beingMade is what a claim says whose Sandbox has not said anything yet.
const beingMade = `False/SandboxCreatePending: Sandbox "c1" is being created`

// TestColdClaimCostsOneCreateThreeStatusWritesAndOnePatch counts what a claim without a member to have costs until it is ready.
func TestColdClaimCostsOneCreateThreeStatusWritesAndOnePatch(t *testing.T) {
	f := newFixture(t).Everywhere(testPool(), testTemplate()).created(testClaim())

	f.MustPass()
	f.WantRequests("patch sandboxclaims/status", "create sandboxes")
	f.wantReady(beingMade)
	f.wantSandboxName("")
	f.WantEvents(`Normal SandboxProvisioned Created Sandbox "c1"`)
	want, err := claimedsandbox.New(testClaim(), testTemplate())
	if err != nil {
		t.Fatal(err)
	}
	made := f.sandbox("c1")
	want.UID, want.ResourceVersion, want.CreationTimestamp = made.UID, made.ResourceVersion, made.CreationTimestamp
	if diff := cmp.Diff(want, made); diff != "" {
		t.Errorf("Sandbox differs (-want +got):\n%s", diff)
	}

	// Before the caches show any of it, nothing is done twice.
	f.MustPass()
	f.WantRequests()

	f.sync()
	f.MustPass()
	f.WantRequests()
	warming(made)
	f.InCache(made)
	f.MustPass()
	f.WantRequests("patch sandboxclaims/status")
	f.wantReady("False/DependenciesNotReady: Pod exists with phase: Pending")
	f.wantSandboxName("c1")

	f.clock.Step(1500 * time.Millisecond)
	f.InCache(f.live())
	readied(made)
	f.InCache(made)
	f.MustPass()
	f.WantRequests("patch sandboxclaims/status", "patch sandboxclaims")
	f.wantReady("True/DependenciesReady: Pod is Ready")
	if got := f.live().Annotations; got[extensionsv1beta1.ControllerFirstObservedAtAnnotation] != "2026-01-02T03:04:05Z" ||
		got[extensionsv1beta1.ClaimFirstReadyAtAnnotation] != "2026-01-02T03:04:06.5Z" {
		t.Errorf("annotations are %v", got)
	}
	f.WantEvents()

	f.InCache(f.live())
	f.MustPass()
	f.WantRequests()
}

// TestC1PoolAndTemplateComeLater: each of them is said to be missing, and is looked for when it comes.
func TestC1PoolAndTemplateComeLater(t *testing.T) {
	f := newFixture(t).created(testClaim())
	f.MustPass()
	f.WantRequests("get sandboxwarmpools", "patch sandboxclaims/status")
	f.wantReady(`False/WarmPoolNotFound: SandboxWarmPool "p1" not found`)
	f.sync()
	f.queued()

	f.Everywhere(testPool())
	f.poolHandler().OnAdd(testPool(), false)
	f.wantQueued(testName)
	f.MustPass()
	f.wantReady(`False/TemplateNotFound: SandboxTemplate "t1" not found`)
	f.sync()

	f.Everywhere(testTemplate())
	f.templateHandler().OnAdd(testTemplate(), false)
	f.wantQueued(testName)
	f.MustPass()
	f.wantReady(beingMade)
}

func TestPoolThatTheCacheDoesNotShowYetIsNotMissing(t *testing.T) {
	f := newFixture(t).OnServer(testPool(), testTemplate()).created(testClaim())
	f.MustPass()
	f.wantReady(beingMade)
}

func TestServerThatDoesNotAnswerMissesNothing(t *testing.T) {
	f := newFixture(t).created(testClaim())
	f.Refuse("get", "sandboxwarmpools", unavailable())
	if _, err := f.Pass(); err == nil {
		t.Error("no error")
	}
	f.wantReady("absent")
}

// TestC2ClaimThatCanNeverWork: the reason says so, no Sandbox is made, and nothing is repeated.
func TestC2ClaimThatCanNeverWork(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*claim)
		want   string
	}{
		"label": {
			func(c *claim) { c.Spec.AdditionalPodMetadata.Labels = map[string]string{"team": "a"} },
			`False/InvalidMetadata: invalid additionalPodMetadata: spec.additionalPodMetadata.labels[team]: Forbidden: ` +
				`label "team" must have a domain prefix (one of: sandbox.users.io, or a subdomain)`,
		},
		"contradiction": {
			func(c *claim) { c.Spec.AdditionalPodMetadata.Annotations = map[string]string{"note": "b"} },
			`False/ReconcilerError: Error seen: spec.additionalPodMetadata.annotations[note]: Forbidden: metadata override conflict: ` +
				`annotation "note" is defined in template with value "a", but claim requests "b"`,
		},
		"env": {withVariable, "False/EnvVarsInjectionRejected: spec.env: Forbidden: environment variable injection rejected: the template does not allow it"},
		"volume": {
			func(c *claim) {
				c.Spec.VolumeClaimTemplates = []agentsv1beta1.PersistentVolumeClaimTemplate{{Metadata: agentsv1beta1.EmbeddedObjectMetadata{Name: "data"}}}
			},
			"False/VolumeClaimTemplatesError: spec.volumeClaimTemplates: Forbidden: volume claim templates are disallowed by the template",
		},
	} {
		t.Run(name, func(t *testing.T) {
			noted := testTemplate(func(t *template) { t.Spec.PodTemplate.Metadata.Annotations = map[string]string{"note": "a"} })
			f := newFixture(t).Everywhere(testPool(), noted, testMember()).created(testClaim(test.change))
			if after := f.MustPass(); after != 0 {
				t.Errorf("comes back after %v", after)
			}
			f.wantReady(test.want)
			f.wantWrites("patch sandboxclaims/status")
			f.sync()
			f.MustPass()
			f.wantWrites()
		})
	}
}

func TestRefusalByATemplateThatTheCacheHasLateDoesNotCount(t *testing.T) {
	f := newFixture(t).Everywhere(testPool()).InCache(testTemplate()).OnServer(testTemplate(func(t *template) { t.Spec.EnvVarsInjectionPolicy = "Allowed" })).
		created(testClaim(withVariable))
	f.MustPass()
	f.wantReady(beingMade)
	if env := f.sandbox("c1").Spec.PodTemplate.Spec.Containers[0].Env; len(env) != 1 || env[0].Value != "1" {
		t.Errorf("env is %v", env)
	}
}

func TestSandboxThatTheServerCallsInvalidIsNotTriedAgain(t *testing.T) {
	f := newFixture(t).Everywhere(testPool(), testTemplate()).created(testClaim())
	f.Refuse("create", "sandboxes", apierrors.NewInvalid(schema.GroupKind{Kind: "Sandbox"}, "c1", field.ErrorList{field.Required(field.NewPath("spec"), "")}))
	if after := f.MustPass(); after != 0 {
		t.Errorf("comes back after %v", after)
	}
	f.wantReady(`False/InvalidConfiguration: creating sandbox "c1": Sandbox "c1" is invalid: spec: Required value`)
}

func TestRefusedSandboxIsReportedAndTriedAgain(t *testing.T) {
	f := newFixture(t).Everywhere(testPool(), testTemplate()).created(testClaim())
	f.Refuse("create", "sandboxes", apierrors.NewForbidden(agentsv1beta1.Resource("sandboxes"), "c1", errors.New("exceeded quota")))
	if _, err := f.Pass(); err == nil {
		t.Error("no error")
	}
	f.wantReady(`False/ReconcilerError: Error seen: creating sandbox "c1": sandboxes.agents.x-k8s.io "c1" is forbidden: exceeded quota`)
}

func TestNothingIsMadeInATerminatingNamespace(t *testing.T) {
	f := newFixture(t).Everywhere(testPool(), testTemplate()).created(testClaim())
	refusal := apierrors.NewForbidden(agentsv1beta1.Resource("sandboxes"), "c1", nil)
	refusal.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	f.Refuse("create", "sandboxes", refusal)
	for range 2 {
		if after := f.MustPass(); after != namespace.TerminatingDelay {
			t.Errorf("comes back after %v", after)
		}
	}
	f.wantWrites("patch sandboxclaims/status", "create sandboxes")
}

func TestNothingIsSaidInANamespaceThatIsKnownToBeTerminating(t *testing.T) {
	f := newFixture(t).Everywhere(testPool(), testTemplate()).created(testClaim())
	refusal := apierrors.NewForbidden(agentsv1beta1.Resource("sandboxes"), "other", nil)
	refusal.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	_, err := namespace.Create(f.terminating, testClaim(), func() (*sandbox, error) { return nil, refusal })
	if !namespace.IsTerminating(err) {
		t.Fatal(err)
	}
	if after := f.MustPass(); after != namespace.TerminatingDelay {
		t.Errorf("comes back after %v", after)
	}
	f.WantRequests()
}

// TestC12NameOfAnExistingSandbox: the claim says so and does not touch it, and goes on when it is gone.
func TestC12NameOfAnExistingSandbox(t *testing.T) {
	foreign := &sandbox{ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: testName, UID: "foreign", ResourceVersion: "7"}}
	f := newFixture(t).Everywhere(testPool(), testTemplate(), foreign).created(testClaim())
	if after := f.MustPass(); after != 0 {
		t.Errorf("comes back after %v", after)
	}
	f.wantReady(`False/ReconcilerError: Error seen: sandbox "c1" is not controlled by claim "c1". Please use a different claim name or delete the sandbox manually`)
	f.wantSandboxName("")
	f.WantEvents()
	if diff := cmp.Diff(foreign, f.sandbox(testName)); diff != "" {
		t.Errorf("the Sandbox has changed:\n%s", diff)
	}
	f.sync()
	f.queued()

	f.Remove(foreign)
	f.DropFromCache(foreign)
	f.sandboxHandler().OnDelete(foreign)
	f.wantQueued(testName)
	f.MustPass()
	f.wantReady(beingMade)
}

// TestC14AlreadyExistsIsNoError: a Sandbox that was made by a request without an answer is found, by UID.
func TestC14AlreadyExistsIsNoError(t *testing.T) {
	f := newFixture(t).Everywhere(testPool(), testTemplate()).OnServer(made(testClaim())).created(testClaim())
	f.MustPass()
	f.wantReady(beingMade)
	f.wantWrites("patch sandboxclaims/status", "create sandboxes")
	f.MustPass()
	f.wantWrites()
	f.WantEvents()
}

func TestClaimThatWasBoundMeanwhileGetsNoSandboxOfItsOwn(t *testing.T) {
	c, s := boundPair()
	c.ResourceVersion = "101"
	f := newFixture(t).Everywhere(testPool(), testTemplate()).OnServer(c, s).InCache(testClaim())
	if _, err := f.Pass(); !failure.Outdated(err) {
		t.Errorf("error is %v", err)
	}
	f.wantWrites("patch sandboxclaims/status")
	f.wantSandboxName("p1-x")
}

func TestReadyMemberIsTaken(t *testing.T) {
	f := newFixture(t).Everywhere(testPool(), testTemplate(), testMember()).created(testClaim())
	f.bindGives(testMember())
	f.MustPass()
	f.WantRequests("create sandboxclaims/bind", "patch sandboxclaims")
	f.wantReady("True/DependenciesReady: Pod is Ready")
	f.wantSandboxName("p1-x")
	f.WantEvents(`Normal SandboxAdopted Adopted warm pool Sandbox "p1-x"`)

	f.sync()
	f.MustPass()
	f.WantRequests()
}

func TestMemberIsTakenThoughTheTemplateIsGone(t *testing.T) {
	f := newFixture(t).Everywhere(testPool(), testMember()).created(testClaim())
	f.bindGives(testMember())
	f.MustPass()
	f.wantReady("True/DependenciesReady: Pod is Ready")
}

// TestWhatIsNoMemberIsNotTaken covers what only looks like one; W12 is the first.
func TestWhatIsNoMemberIsNotTaken(t *testing.T) {
	for name, change := range map[string]func(*sandbox){
		"of a pool elsewhere":     func(s *sandbox) { s.Namespace = "other" },
		"of an earlier pool":      func(s *sandbox) { s.OwnerReferences[0].UID = "earlier" },
		"W7: used before":         func(s *sandbox) { s.Labels[agentsv1beta1.ClaimUIDLabel] = "gone" },
		"reserved for another":    func(s *sandbox) { s.Annotations[extensionsv1beta1.ReservedForClaimAnnotation] = "other" },
		"on its way out":          deleting,
		"without a pool's labels": func(s *sandbox) { s.Labels = nil },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t).Everywhere(testPool(), testTemplate()).InCache(testMember(change)).created(testClaim())
			f.MustPass()
			f.wantWrites("patch sandboxclaims/status", "create sandboxes")
		})
	}
}

func TestMemberThatThePoolIsAboutToReplaceIsNotAskedFor(t *testing.T) {
	recreating := testPool(func(p *pool) {
		p.Spec.UpdateStrategy = &extensionsv1beta1.SandboxWarmPoolUpdateStrategy{Type: extensionsv1beta1.RecreateSandboxWarmPoolUpdateStrategyType}
	})
	fresh := func(s *sandbox) {
		s.Labels[agentsv1beta1.SandboxTemplateHashLabel] = sandboxtemplate.Hash(testTemplate())
	}
	for name, test := range map[string]struct {
		member *sandbox
		want   []string
	}{
		"stale": {testMember(), []string{"patch sandboxclaims/status", "create sandboxes"}},
		"fresh": {testMember(fresh), []string{"create sandboxclaims/bind", "patch sandboxclaims"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t).Everywhere(recreating, testTemplate(), test.member).created(testClaim())
			f.bindGives(test.member)
			f.MustPass()
			f.wantWrites(test.want...)
		})
	}
}

func TestClaimWithVariablesTakesNoMember(t *testing.T) {
	f := newFixture(t).Everywhere(testPool(), testTemplate(func(t *template) { t.Spec.EnvVarsInjectionPolicy = "Allowed" }), testMember()).
		created(testClaim(withVariable))
	f.MustPass()
	f.wantWrites("patch sandboxclaims/status", "create sandboxes")
}

// TestW11WaitForAMemberThatWarmsUp: without a word, for the grace period, and no longer.
func TestW11WaitForAMemberThatWarmsUp(t *testing.T) {
	f := newFixture(t).Everywhere(testPool(), testTemplate(), testMember(warming)).created(testClaim())
	f.clock.Step(500 * time.Millisecond)
	if after := f.MustPass(); after != 1500*time.Millisecond {
		t.Errorf("comes back after %v", after)
	}
	f.WantRequests()
	f.wantReady("absent")

	f.clock.Step(1500 * time.Millisecond)
	f.MustPass()
	f.wantWrites("patch sandboxclaims/status", "create sandboxes")
	if _, waits := f.waiting.next(cache.NewObjectName(testNamespace, "p1")); waits {
		t.Error("it still waits")
	}
}

func TestMemberThatBecomesReadyWakesTheClaimThatHasWaitedLongest(t *testing.T) {
	f := newFixture(t).Everywhere(testPool(), testTemplate(), testMember(warming)).created(testClaim())
	f.clock.Step(time.Millisecond)
	f.MustPass()
	pool := cache.NewObjectName(testNamespace, "p1")
	f.waiting.add(pool, cache.NewObjectName(testNamespace, "later"), testTime().Add(time.Second))
	f.waiting.add(cache.NewObjectName(testNamespace, "p2"), cache.NewObjectName(testNamespace, "elsewhere"), testTime().Add(-time.Second))
	f.queued()

	f.InCache(testMember())
	f.sandboxHandler().OnUpdate(testMember(warming), testMember())
	f.wantQueued(testName)
	f.sandboxHandler().OnUpdate(testMember(), testMember())
	f.wantQueued()
	f.bindGives(testMember())
	f.MustPass()
	f.wantSandboxName("p1-x")
	f.sandboxHandler().OnAdd(testMember(func(s *sandbox) { s.Name = "p1-y" }), false)
	f.wantQueued("later")
}

func TestMemberThatBecomesReadyWhileTheClaimLooksIsNotMissed(t *testing.T) {
	f := newFixture(t).Everywhere(testPool(), testTemplate(), testMember(warming)).created(testClaim())
	f.queued()
	pool, name := cache.NewObjectName(testNamespace, "p1"), cache.NewObjectName(testNamespace, testName)
	// The order of a pass: first wait, then look. The event in between wakes the claim.
	f.waiting.add(pool, name, testTime())
	f.sandboxHandler().OnUpdate(testMember(warming), testMember())
	f.wantQueued(testName)
}

func TestServerThatGivesNothingIsAskedAgainAndThenNotWaitedFor(t *testing.T) {
	f := newFixture(t).Everywhere(testPool(), testTemplate(), testMember()).created(testClaim())
	after, err := f.Pass()
	if !failure.Outdated(err) || after != testGrace {
		t.Errorf("comes back after %v, error is %v", after, err)
	}
	f.WantRequests("create sandboxclaims/bind")
	f.wantReady("absent")

	f.clock.Step(testGrace)
	f.MustPass()
	f.wantWrites("create sandboxclaims/bind", "patch sandboxclaims/status", "create sandboxes")
}

func TestLostRacesAreReportedAndTriedAgain(t *testing.T) {
	f := newFixture(t).Everywhere(testPool(), testTemplate(), testMember()).created(testClaim())
	f.bindReturns(func() (*claim, error) {
		return nil, apierrors.NewConflict(extensionsv1beta1.Resource("sandboxclaims"), testName, errors.New("all members were given to others"))
	})
	if _, err := f.Pass(); !apierrors.IsConflict(err) {
		t.Errorf("error is %v", err)
	}
	f.wantReady(`False/AdoptionConflict: binding the SandboxClaim: Operation cannot be fulfilled on sandboxclaims.extensions.agents.x-k8s.io "c1": ` +
		`all members were given to others; the next pass retries from a converged view`)
	f.sync()
	f.DropFromCache(testMember())
	f.Requests()
	f.MustPass()
	f.wantWrites("patch sandboxclaims/status", "create sandboxes")
}

func TestRefusedBindingIsReportedAndTriedAgain(t *testing.T) {
	for name, err := range map[string]error{
		"invalid":   apierrors.NewInvalid(schema.GroupKind{Kind: "SandboxClaim"}, testName, field.ErrorList{field.Required(field.NewPath("spec"), "")}),
		"forbidden": apierrors.NewForbidden(extensionsv1beta1.Resource("sandboxclaims/bind"), testName, nil),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t).Everywhere(testPool(), testTemplate(), testMember()).created(testClaim())
			f.bindReturns(func() (*claim, error) { return nil, err })
			if _, err := f.Pass(); err == nil {
				t.Error("no error")
			}
			f.wantReady("False/ReconcilerError: Error seen: binding the SandboxClaim: " + err.Error())
		})
	}
}

func TestBindingOfAClaimThatIsGone(t *testing.T) {
	f := newFixture(t).Everywhere(testPool(), testTemplate(), testMember()).created(testClaim())
	f.bindReturns(func() (*claim, error) {
		return nil, apierrors.NewNotFound(extensionsv1beta1.Resource("sandboxclaims"), testName)
	})
	if _, err := f.Pass(); !failure.Outdated(err) {
		t.Errorf("error is %v", err)
	}
	f.wantWrites("create sandboxclaims/bind")
}

func TestClaimIsForgottenWhenItIsGone(t *testing.T) {
	f := newFixture(t).Everywhere(testPool(), testTemplate(), testMember(warming)).created(testClaim())
	f.MustPass()
	f.coldStarts.note(testClaim(), coldStart{})
	f.queued()
	f.DropFromCache(testClaim())
	f.claimHandler().OnDelete(cache.DeletedFinalStateUnknown{Key: "k", Obj: testClaim()})
	f.wantQueued(testName)
	f.MustPass()
	if len(f.firstSeen.at)+len(f.waiting.pools)+len(f.waiting.poolOf)+len(f.coldStarts.byName) > 0 {
		t.Error("memory of a claim that is gone remains")
	}
}

// TestHandlers says which changes call for a pass.
func TestHandlers(t *testing.T) {
	waitingClaim := testClaim(func(c *claim) { c.Name, c.UID = "waits", "waits" })
	boundClaim, boundSandbox := bind(testClaim(), testMember())
	for name, test := range map[string]struct {
		event func(*fixture)
		want  []string
	}{
		"status of a claim": {func(f *fixture) { f.claimHandler().OnUpdate(testClaim(), boundClaim) }, nil},
		"spec of a claim":   {func(f *fixture) { f.claimHandler().OnUpdate(testClaim(), testClaim(func(c *claim) { c.Generation++ })) }, []string{testName}},
		"label of a claim": {func(f *fixture) {
			f.claimHandler().OnUpdate(testClaim(), testClaim(func(c *claim) { c.Labels = map[string]string{"a": "b"} }))
		}, []string{testName}},
		"another claim of the name": {func(f *fixture) {
			f.claimHandler().OnUpdate(testClaim(), testClaim(func(c *claim) { c.UID = "later" }))
		}, []string{testName}},
		"Sandbox was claimed":    {func(f *fixture) { f.sandboxHandler().OnUpdate(testMember(), boundSandbox) }, []string{testName}},
		"Sandbox was taken away": {func(f *fixture) { f.sandboxHandler().OnUpdate(boundSandbox, testMember()) }, []string{testName}},
		"Sandbox is gone":        {func(f *fixture) { f.sandboxHandler().OnDelete(boundSandbox) }, []string{testName}},
		"Sandbox is going":       {func(f *fixture) { f.sandboxHandler().OnUpdate(boundSandbox, changed(boundSandbox, deleting)) }, []string{testName}},
		"Sandbox is not ready":   {func(f *fixture) { f.sandboxHandler().OnUpdate(boundSandbox, changed(boundSandbox, warming)) }, []string{testName}},
		"Sandbox has finished": {func(f *fixture) {
			f.sandboxHandler().OnUpdate(boundSandbox, changed(boundSandbox, finished(testTime())))
		}, []string{testName}},
		"Service of the Sandbox": {func(f *fixture) {
			f.sandboxHandler().OnUpdate(boundSandbox, changed(boundSandbox, func(s *sandbox) { s.Status.ServiceFQDN = "x" }))
		}, []string{testName}},
		"spec and labels of the Sandbox": {func(f *fixture) {
			f.sandboxHandler().OnUpdate(boundSandbox, changed(boundSandbox, func(s *sandbox) { s.Generation++; s.Labels["a"] = "b"; s.Status.NodeName = "n" }))
		}, nil},
		"pool is gone":    {func(f *fixture) { f.poolHandler().OnDelete(testPool()) }, []string{"waits"}},
		"pool was edited": {func(f *fixture) { f.poolHandler().OnUpdate(testPool(), testPool(func(p *pool) { p.Generation++ })) }, []string{"waits"}},
		"status of the pool": {func(f *fixture) {
			f.poolHandler().OnUpdate(testPool(), testPool(func(p *pool) { p.Status.Replicas++ }))
		}, nil},
		"another pool": {func(f *fixture) { f.poolHandler().OnAdd(testPool(func(p *pool) { p.Name = "p2" }), false) }, nil},
		"template was edited": {func(f *fixture) {
			f.templateHandler().OnUpdate(testTemplate(), testTemplate(func(t *template) { t.Generation++ }))
		}, []string{"waits"}},
		"template was labelled": {func(f *fixture) {
			f.templateHandler().OnUpdate(testTemplate(), testTemplate(func(t *template) { t.Labels = map[string]string{"a": "b"} }))
		}, nil},
		"template was created": {func(f *fixture) { f.templateHandler().OnAdd(testTemplate(), false) }, []string{testName, "waits"}},
		"template is gone":     {func(f *fixture) { f.templateHandler().OnDelete(testTemplate()) }, []string{"waits"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t).InCache(testPool(), boundClaim, waitingClaim)
			test.event(f)
			f.wantQueued(test.want...)
		})
	}
}

func changed(s *sandbox, changes ...func(*sandbox)) *sandbox {
	s = s.DeepCopy()
	for _, change := range changes {
		change(s)
	}
	return s
}

func TestOtherLabelDomainsAreTriedAtOnce(t *testing.T) {
	invalid := testClaim(func(c *claim) { c.Spec.AdditionalPodMetadata.Labels = map[string]string{"team": "a"} })
	f := newFixture(t).Everywhere(testPool(), testTemplate()).created(invalid)
	f.MustPass()
	f.sync()
	f.InCache(testClaim(func(c *claim) { c.Name = "other" }), testClaim(startedCold, func(c *claim) { c.Name = "started" }))
	f.queued()
	f.enqueueInvalidMetadata()
	f.wantQueued(testName, "started")
}

func TestEventsCanBeDisabled(t *testing.T) {
	c, s := boundPair()
	f := newFixture(t).Everywhere(testPool(), testTemplate(), s).created(c)
	f.config.DisableEvents = true
	f.MustPass()
	f.WantEvents()
	f.wantWrites("patch sandboxclaims")
}

func TestLongMessagesAreCut(t *testing.T) {
	status := statusNotReady(testClaim(), &notReady{"ReconcilerError", strings.Repeat("é", 20000)}, testTime())
	if got := len(status.Conditions[0].Message); got > 32768 || got < 32766 {
		t.Errorf("message has %d bytes", got)
	}
}
