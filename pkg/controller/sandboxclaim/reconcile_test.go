// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxclaim

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/claimedsandbox"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/failure"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
)

// seenByServer marks a claim as bound in the request that created it, by a server that is about to announce it.
func seenByServer(c *claim) {
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, extensionsv1beta1.ControllerFirstObservedAtAnnotation, "2026-01-02T03:04:04.9Z")
}

// announce does to the claim what the server does that has bound it, and lets the controller know.
func (f *fixture) announce() {
	f.T.Helper()
	before, after := f.live(), f.live()
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, extensionsv1beta1.ClaimFirstReadyAtAnnotation, "2026-01-02T03:04:04.9Z")
	after.ResourceVersion = f.nextVersion()
	f.Change(after)
	f.InCache(after)
	f.claimHandler().OnUpdate(before, after)
}

func TestClaimBoundWhenCreatedCostsNothing(t *testing.T) {
	c, s := boundPair(seenByServer)
	f := newFixture(t).Everywhere(testPool(), testTemplate(), s).created(c)
	f.wantQueued(testName)
	if after := f.MustPass(); after != maxHoldBack {
		t.Errorf("comes back after %v", after)
	}
	f.WantEvents()
	f.announce()
	f.wantQueued(testName)
	f.MustPass()
	f.WantEvents(`Normal SandboxAdopted Adopted warm pool Sandbox "p1-x"`)
	f.MustPass()
	f.WantRequests()
	f.WantEvents()
}

// TestPassThatIsAheadOfTheNewsOfItsClaim is about a claim that is in the cache, so that the news of its Sandbox asks for a pass, while the
// news of the claim is still on its way to the controller.
func TestPassThatIsAheadOfTheNewsOfItsClaim(t *testing.T) {
	c, s := boundPair(seenByServer)
	f := newFixture(t).Everywhere(testPool(), testTemplate(), s, c)
	if after := f.MustPass(); after != maxHoldBack-100*time.Millisecond {
		t.Errorf("comes back after %v", after)
	}
	f.claimHandler().OnAdd(c, false)
	f.announce()
	f.MustPass()
	f.WantRequests()
	f.WantEvents(`Normal SandboxAdopted Adopted warm pool Sandbox "p1-x"`)
}

// TestClaimThatNoServerAnnounces is about a server that has ended after it bound the claim.
func TestClaimThatNoServerAnnounces(t *testing.T) {
	c, s := boundPair(seenByServer)
	f := newFixture(t).Everywhere(testPool(), testTemplate(), s).created(c)
	f.clock.Step(f.MustPass() - time.Nanosecond)
	f.clock.Step(f.MustPass())
	f.WantRequests()

	f.MustPass()
	f.WantRequests("patch sandboxclaims")
	f.WantEvents(`Normal SandboxAdopted Adopted warm pool Sandbox "p1-x"`)
	want := c.DeepCopy()
	want.ResourceVersion = f.live().ResourceVersion
	want.Annotations[extensionsv1beta1.ClaimFirstReadyAtAnnotation] = "2026-01-02T03:04:08Z"
	if diff := cmp.Diff(want, f.live()); diff != "" {
		t.Errorf("claim differs (-want +got):\n%s", diff)
	}
}

// TestAnnouncedClaimIsToldOfByWhoLeads is about a replica that begins to lead before or after a claim is announced that it has seen.
func TestAnnouncedClaimIsToldOfByWhoLeads(t *testing.T) {
	for name, test := range map[string]struct {
		steps func(f *fixture)
		want  []string
	}{
		"announced before": {steps: func(f *fixture) { f.announce(); f.forgetStarted() }},
		"announced after": {
			steps: func(f *fixture) { f.forgetStarted(); f.announce() },
			want:  []string{`Normal SandboxAdopted Adopted warm pool Sandbox "p1-x"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, s := boundPair(seenByServer)
			f := newFixture(t).Everywhere(testPool(), testTemplate(), s).created(c)
			test.steps(f)
			f.MustPass()
			f.WantEvents(test.want...)
			f.WantRequests()
		})
	}
}

func TestClaimBoundWhileItWaitedCostsOnePatch(t *testing.T) {
	c, s := boundPair()
	f := newFixture(t).Everywhere(testPool(), testTemplate(), s).created(c)
	f.clock.Step(3 * time.Millisecond)

	f.MustPass()
	f.WantRequests("patch sandboxclaims")
	f.WantEvents(`Normal SandboxAdopted Adopted warm pool Sandbox "p1-x"`)
	want := c.DeepCopy()
	want.ResourceVersion = f.live().ResourceVersion
	want.Annotations[extensionsv1beta1.ControllerFirstObservedAtAnnotation] = "2026-01-02T03:04:05Z"
	want.Annotations[extensionsv1beta1.ClaimFirstReadyAtAnnotation] = "2026-01-02T03:04:05.003Z"
	if diff := cmp.Diff(want, f.live()); diff != "" {
		t.Errorf("claim differs (-want +got):\n%s", diff)
	}

	f.MustPass()
	f.sync()
	f.MustPass()
	f.WantRequests()
	f.WantEvents()
}

// TestRushComesFirst makes sure that nothing is told of a claim that is ready while many others come, and that it is in the end.
func TestRushComesFirst(t *testing.T) {
	for name, test := range map[string]struct {
		rush time.Duration
		want time.Duration
	}{
		"short": {rush: time.Second, want: 2 * time.Second},
		"long":  {rush: time.Minute, want: maxHoldBack},
	} {
		t.Run(name, func(t *testing.T) {
			c, s := boundPair(seenByServer)
			f := newFixture(t).Everywhere(testPool(), testTemplate(), s).created(c)
			f.announce()
			begin := f.clock.Now()
			for {
				if f.clock.Since(begin) < test.rush {
					for range 100 {
						f.config.Rush.Note()
					}
				}
				after := f.MustPass()
				if after == 0 {
					break
				}
				f.WantEvents()
				f.clock.Step(after)
			}
			if took := f.clock.Since(begin); took < min(test.rush, maxHoldBack) || took > test.want {
				t.Errorf("it took %v until anything was told, want at least %v and at most %v", took, min(test.rush, maxHoldBack), test.want)
			}
			f.WantEvents(`Normal SandboxAdopted Adopted warm pool Sandbox "p1-x"`)
			f.WantRequests()
		})
	}
}

func TestCacheThatDoesNotShowTheBindingYetIsWaitedFor(t *testing.T) {
	c, s := boundPair()
	f := newFixture(t).Everywhere(testPool(), testTemplate()).OnServer(s).InCache(testMember()).created(c)
	if after := f.MustPass(); after != deliveryDelay {
		t.Errorf("comes back after %v", after)
	}
	f.WantRequests("patch sandboxclaims")

	// If the event does not come, it is asked for.
	f.clock.Step(deliveryDelay)
	f.MustPass()
	f.WantRequests("get sandboxes")
	f.wantReady("True/DependenciesReady: Pod is Ready")
}

func TestMemberThatTheCacheDoesNotKnowIsAskedForAtOnce(t *testing.T) {
	c, s := boundPair()
	f := newFixture(t).Everywhere(testPool(), testTemplate()).OnServer(s).created(c)
	f.MustPass()
	f.WantRequests("get sandboxes", "patch sandboxclaims")
	f.wantReady("True/DependenciesReady: Pod is Ready")
}

func TestStampIsRepeatedUntilItIsWritten(t *testing.T) {
	c, s := boundPair()
	f := newFixture(t).Everywhere(testPool(), testTemplate(), s).created(c)
	f.Refuse("patch", "sandboxclaims", unavailable())
	if _, err := f.Pass(); err == nil {
		t.Error("no error")
	}
	f.WantEvents()
	f.heal()
	f.MustPass()
	f.WantEvents(`Normal SandboxAdopted Adopted warm pool Sandbox "p1-x"`)
}

func TestClaimOfAnEarlierProcessIsStampedWithItsCreation(t *testing.T) {
	c, s := boundPair()
	f := newFixture(t).Everywhere(testPool(), testTemplate(), s, c)
	f.claimHandler().OnAdd(c, true)
	f.clock.Step(time.Minute)
	f.MustPass()
	if got := f.live().Annotations[extensionsv1beta1.ControllerFirstObservedAtAnnotation]; got != "2026-01-02T03:04:05Z" {
		t.Errorf("first observed at %s", got)
	}
}

func TestStatusFollowsTheSandbox(t *testing.T) {
	c, s := boundPair(stamped)
	f := newFixture(t).Everywhere(testPool(), testTemplate(), s, c)
	for _, step := range []struct {
		change func(*sandbox)
		want   string
	}{
		{sandboxReady(metav1.ConditionFalse, "SandboxSuspended", "Sandbox is suspended"), "False/SandboxSuspended: Sandbox is suspended"},
		{readied, "True/DependenciesReady: Pod is Ready"},
		{func(s *sandbox) { s.Status.ServiceFQDN = "p1-x.tenant.svc.cluster.local" }, "True/DependenciesReady: Pod is Ready"},
		{sandboxReady(metav1.ConditionFalse, "SandboxExpired", "Sandbox has expired"), "False/SandboxExpired: Underlying Sandbox resource has expired independently of the Claim."},
		{finished(testTime()), "False/PodSucceeded: Pod completed successfully"},
		{deleting, "False/PodSucceeded: Pod completed successfully"},
	} {
		step.change(s)
		f.InCache(s)
		f.MustPass()
		f.wantReady(step.want)
		if diff := cmp.Diff(claimedsandbox.Status(c, s), f.live().Status); diff != "" {
			t.Errorf("status differs (-want +got):\n%s", diff)
		}
		f.sync()
	}
	f.wantWrites("patch sandboxclaims/status", "patch sandboxclaims/status", "patch sandboxclaims/status", "patch sandboxclaims/status",
		"patch sandboxclaims/status")
}

func TestStatusThatMeetsANewerClaimIsNotWritten(t *testing.T) {
	c, s := boundPair(stamped)
	f := newFixture(t).Everywhere(testPool(), testTemplate(), s, c)
	newer := c.DeepCopy()
	newer.ResourceVersion = "101"
	f.Change(newer)
	warming(s)
	f.InCache(s)
	if _, err := f.Pass(); !failure.Outdated(err) {
		t.Errorf("error is %v", err)
	}
	f.wantReady("True/DependenciesReady: Pod is Ready")
}

// TestC11SandboxDisappears is what the claim does then, and how sure it has to be.
func TestC11SandboxDisappears(t *testing.T) {
	for name, test := range map[string]struct {
		cached, live *sandbox
		want         string
		wantName     string
	}{
		"gone":                           {nil, nil, "False/SandboxMissing: Sandbox does not exist", ""},
		"gone, cache late":               {testMember(), nil, "False/SandboxMissing: Sandbox does not exist", ""},
		"another of its name":            {nil, testMember(), "False/SandboxMissing: Sandbox does not exist", ""},
		"cache late, really the claim's": {testMember(), claimed(testMember()), "True/DependenciesReady: Pod is Ready", "p1-x"},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := boundPair(stamped)
			f := newFixture(t).Everywhere(testPool(), testTemplate(), c)
			f.clock.Step(time.Minute)
			if test.cached != nil {
				f.InCache(test.cached)
			}
			if test.live != nil {
				f.OnServer(test.live)
			}
			f.MustPass()
			f.wantReady(test.want)
			f.wantSandboxName(test.wantName)
			f.Requests()

			// It gets no other, though there is one to have.
			f.InCache(testMember(func(s *sandbox) { s.Name = "p1-y" }), f.live())
			f.MustPass()
			f.wantWrites()
		})
	}
}

// TestSandboxThatWasNotHandedOverIsAskedFor: the API server had to bind in two steps and made one.
func TestSandboxThatWasNotHandedOverIsAskedFor(t *testing.T) {
	reserved := testMember(func(s *sandbox) { s.Annotations[extensionsv1beta1.ReservedForClaimAnnotation] = string(testUID) })
	c, _ := boundPair(stamped)
	f := newFixture(t).Everywhere(testPool(), testTemplate(), reserved, c)
	f.MustPass()
	f.WantRequests()
	f.clock.Step(deliveryDelay)
	if after := f.MustPass(); after != deliveryDelay {
		t.Errorf("comes back after %v", after)
	}
	f.WantRequests("get sandboxes", "create sandboxclaims/bind")
	f.wantReady("True/DependenciesReady: Pod is Ready")
}

func claimed(member *sandbox) *sandbox {
	_, adopted := bind(testClaim(), member)
	return adopted
}

func TestServerThatDoesNotAnswerLosesNoSandbox(t *testing.T) {
	c, _ := boundPair(stamped)
	f := newFixture(t).Everywhere(testPool(), testTemplate(), c)
	f.Refuse("get", "sandboxes", unavailable())
	if _, err := f.Pass(); err == nil {
		t.Error("no error")
	}
	f.wantReady("True/DependenciesReady: Pod is Ready")
}

// TestSandboxIsFoundByUIDAlone covers claims that were bound by others, whose records are in other places or missing.
func TestSandboxIsFoundByUIDAlone(t *testing.T) {
	for name, change := range map[string]func(*claim){
		"no record at all": func(c *claim) { c.Annotations, c.Status = nil, extensionsv1beta1.SandboxClaimStatus{} },
		"record in the deprecated label": func(c *claim) {
			c.Annotations, c.Status = nil, extensionsv1beta1.SandboxClaimStatus{}
			c.Labels = map[string]string{extensionsv1beta1.SandboxNameAnnotation: "p1-x"}
		},
		"record of another": func(c *claim) { c.Status.Sandbox.Name = "other" },
	} {
		t.Run(name, func(t *testing.T) {
			c, s := boundPair()
			change(c)
			f := newFixture(t).Everywhere(testPool(), testTemplate(), s).created(c)
			f.MustPass()
			f.wantReady("True/DependenciesReady: Pod is Ready")
			f.wantSandboxName("p1-x")
		})
	}
}

func TestMetadataOfTheSandboxFollowsTheClaim(t *testing.T) {
	c, s := boundPair(stamped)
	c.Labels = map[string]string{agentsv1beta1.CreatedByLabel: "go-client"}
	c.Spec.AdditionalPodMetadata.Labels = map[string]string{"sandbox.users.io/a": "b"}
	f := newFixture(t).Everywhere(testPool(), testTemplate(func(t *template) { t.Spec.PodTemplate.Metadata.Annotations = map[string]string{"x": "y"} }), s, c)
	f.MustPass()
	f.wantWrites("patch sandboxes")
	want := agentsv1beta1.PodMetadata{
		Labels: map[string]string{
			"app": "web", "sandbox.users.io/a": "b", agentsv1beta1.CreatedByLabel: "go-client", agentsv1beta1.ClaimUIDLabel: string(testUID),
			agentsv1beta1.SandboxTemplateRefHashLabel: naming.Hash("t1"),
		},
		Annotations: map[string]string{"x": "y"},
	}
	if diff := cmp.Diff(want, f.sandbox("p1-x").Spec.PodTemplate.Metadata); diff != "" {
		t.Errorf("metadata differs (-want +got):\n%s", diff)
	}
	f.MustPass()
	f.WantRequests()
}

func TestMetadataIsNotTakenFromATemplateThatTheCacheHasLate(t *testing.T) {
	c, s := boundPair(stamped)
	f := newFixture(t).Everywhere(testPool(), s, c).OnServer(testTemplate()).
		InCache(testTemplate(func(t *template) { t.Spec.PodTemplate.Metadata.Labels["app"] = "old" }))
	f.MustPass()
	f.wantWrites()
}

// TestBoundClaimStaysReadyWhateverBecomesOfPoolAndTemplate: they are needed no more, and a claim that is said to be unusable is given up.
func TestBoundClaimStaysReadyWhateverBecomesOfPoolAndTemplate(t *testing.T) {
	contradicting := func(t *template) { t.Spec.PodTemplate.Metadata.Labels["sandbox.users.io/a"] = "other" }
	const note = `Warning MetadataNotApplied spec.additionalPodMetadata.labels[sandbox.users.io/a]: Forbidden: metadata override conflict: ` +
		`label "sandbox.users.io/a" is defined in template with value "other", but claim requests "b"`
	for name, test := range map[string]struct {
		prepare func(*fixture)
		events  []string
	}{
		"no pool":     {prepare: func(*fixture) {}},
		"no template": {prepare: func(f *fixture) { f.Everywhere(testPool()) }},
		"a template that contradicts it": {
			prepare: func(f *fixture) { f.Everywhere(testPool(), testTemplate(contradicting)) }, events: []string{note},
		},
		"a domain is not allowed any more": {prepare: func(f *fixture) { f.Everywhere(testPool(), testTemplate()) }},
	} {
		t.Run(name, func(t *testing.T) {
			label := "sandbox.users.io/a"
			if name == "a domain is not allowed any more" {
				label = "gone.io/a"
			}
			c, s := boundPair(stamped, func(c *claim) { c.Spec.AdditionalPodMetadata.Labels = map[string]string{label: "b"} })
			f := newFixture(t).Everywhere(s, c)
			test.prepare(f)
			f.MustPass()
			f.wantReady("True/DependenciesReady: Pod is Ready")
			f.wantWrites()
			f.WantEvents(test.events...)
		})
	}
}

func TestClaimThatIsBeingDeletedIsLeftAlone(t *testing.T) {
	now := metav1.NewTime(testTime())
	c := testClaim(func(c *claim) { c.DeletionTimestamp, c.Finalizers = &now, []string{metav1.FinalizerDeleteDependents} })
	f := newFixture(t).Everywhere(testPool(), testTemplate(), testMember(), c)
	f.MustPass()
	f.WantRequests()
}
