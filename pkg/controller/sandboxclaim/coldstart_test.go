// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxclaim

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ktesting "k8s.io/client-go/testing"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/claimedsandbox"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/failure"
)

// made returns the Sandbox that is made for a claim, as it is stored.
func made(c *claim) *sandbox {
	s, err := claimedsandbox.New(c, testTemplate())
	if err != nil {
		panic(err)
	}
	s.UID, s.ResourceVersion, s.CreationTimestamp = "made-uid", "900", metav1.NewTime(testTime())
	return s
}

func noAnswer() error { return apierrors.NewTimeoutError("the answer was lost", 1) }

func exceededQuota() error {
	return apierrors.NewForbidden(agentsv1beta1.Resource("sandboxes"), testName, errors.New("exceeded quota"))
}

func invalidSandbox() error {
	return apierrors.NewInvalid(schema.GroupKind{Kind: "Sandbox"}, testName, field.ErrorList{field.Required(field.NewPath("spec"), "")})
}

// startedCold marks a claim for which a Sandbox is being made.
func startedCold(c *claim) {
	c.Status = *statusWithoutSandbox(c, &notReady{extensionsv1beta1.ClaimReasonSandboxCreatePending, `Sandbox "c1" is being created`}, testTime())
}

// createLoses makes the server lose its answer to the creation of a Sandbox, which it has carried out or not.
func (f *fixture) createLoses(carriedOut bool) {
	f.Server.PrependReactor("create", "sandboxes", func(ktesting.Action) (bool, runtime.Object, error) {
		if carriedOut {
			f.OnServer(made(f.live()))
		}
		return true, nil, noAnswer()
	})
}

// mustRetry makes a pass that is to be repeated.
func (f *fixture) mustRetry() {
	f.T.Helper()
	if _, err := f.Pass(); err == nil {
		f.T.Error("the pass is not repeated")
	}
}

// wantOnly checks that the only Sandbox that the claim controls is the one of the name.
func (f *fixture) wantOnly(want string) {
	f.T.Helper()
	var got []string
	for _, s := range f.Sandboxes() {
		if claimedsandbox.Controls(f.live(), s) {
			got = append(got, s.Name)
		}
	}
	if len(got) != 1 || got[0] != want {
		f.T.Errorf("the claim has %q, want %q", got, want)
	}
}

// TestC3LostAnswerToAColdStart: a member is ready by the time that the claim is looked at again, and not given to it.
func TestC3LostAnswerToAColdStart(t *testing.T) {
	for name, test := range map[string]struct {
		carriedOut bool
		want       []string
	}{
		"carried out":     {true, []string{"create sandboxes", "get sandboxes"}},
		"not carried out": {false, []string{"create sandboxes"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t).Everywhere(testPool(), testTemplate()).created(testClaim())
			f.createLoses(test.carriedOut)
			f.mustRetry()
			f.WantRequests("patch sandboxclaims/status", "create sandboxes", "patch sandboxclaims/status")
			f.wantReady(`False/SandboxCreatePending: Error seen: creating sandbox "c1": ` + noAnswer().Error())

			f.heal()
			f.InCache(f.live(), testMember())
			f.MustPass()
			f.WantRequests(test.want...)
			f.wantOnly("c1")
		})
	}
}

// TestC3ControllerEndsWithinAColdStart has the points at which it can, and a successor that finds a member ready.
func TestC3ControllerEndsWithinAColdStart(t *testing.T) {
	cold := testClaim(startedCold)
	for name, test := range map[string]struct {
		claim *claim
		// server has what was made by then, cache what the successor sees of it.
		server, cache []runtime.Object
		want          []string
		wantSandbox   string
	}{
		"before the claim says so": {
			claim: testClaim(), server: []runtime.Object{testMember()}, cache: []runtime.Object{testMember()},
			want: []string{"create sandboxclaims/bind", "patch sandboxclaims"}, wantSandbox: "p1-x",
		},
		"after the claim said so": {
			claim: cold, server: []runtime.Object{testMember()}, cache: []runtime.Object{testMember()},
			want: []string{"patch sandboxclaims/status", "create sandboxes"}, wantSandbox: "c1",
		},
		"after the Sandbox was made, which the cache does not show": {
			claim: cold, server: []runtime.Object{testMember(), made(cold)}, cache: []runtime.Object{testMember()},
			want: []string{"patch sandboxclaims/status", "create sandboxes", "get sandboxes"}, wantSandbox: "c1",
		},
		"after the Sandbox was made": {
			claim: cold, server: []runtime.Object{testMember(), made(cold)}, cache: []runtime.Object{testMember(), made(cold)},
			wantSandbox: "c1",
		},
		"after the Sandbox said something": {
			claim: cold, server: []runtime.Object{changed(made(cold), warming)}, cache: []runtime.Object{changed(made(cold), warming)},
			want: []string{"patch sandboxclaims/status"}, wantSandbox: "c1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t).Everywhere(testPool(), testTemplate(), test.claim).OnServer(test.server...).InCache(test.cache...)
			f.bindGives(testMember())
			f.MustPass()
			f.WantRequests(test.want...)
			f.wantOnly(test.wantSandbox)
			f.MustPass()
			f.WantRequests()
		})
	}
}

// TestC3ColdStartIsTakenOver: what the one before has still under way for the claim fails, or else it could give it back to the pool's
// members while the successor makes a Sandbox.
func TestC3ColdStartIsTakenOver(t *testing.T) {
	f := newFixture(t).Everywhere(testPool(), testTemplate()).created(testClaim())
	f.createLoses(false)
	f.mustRetry()
	f.heal()
	before := f.live()
	successor := f.killed().InCache(testPool(), testTemplate(), before)
	successor.MustPass()
	successor.wantReady(beingMade + "; taken over at version " + before.ResourceVersion)
	if _, err := f.writeStatus(t.Context(), before, statusWithoutSandbox(before, reconcilerError(exceededQuota()), testTime())); !failure.Outdated(err) {
		t.Errorf("the predecessor ends the cold start: %v", err)
	}
	successor.wantOnly("c1")
}

func TestC3LostAnswerToTheIntentOfAColdStart(t *testing.T) {
	for name, carriedOut := range map[string]bool{"carried out": true, "not carried out": false} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t).Everywhere(testPool(), testTemplate()).created(testClaim())
			f.Server.PrependReactor("patch", "sandboxclaims/status", func(action ktesting.Action) (bool, runtime.Object, error) {
				if carriedOut {
					if _, _, err := f.patch(action); err != nil {
						t.Error(err)
					}
				}
				return true, nil, noAnswer()
			})
			f.mustRetry()
			f.WantRequests("patch sandboxclaims/status")
			f.heal()
			f.sync()
			f.MustPass()
			f.WantRequests("patch sandboxclaims/status", "create sandboxes")
			f.wantOnly("c1")
		})
	}
}

// TestC3BindingWithoutAnAnswer: what was asked for may happen yet. It is conditional on the version that the claim had, and so is the
// intent of a cold start, so that one of them fails.
func TestC3BindingWithoutAnAnswer(t *testing.T) {
	t.Run("not carried out", func(t *testing.T) {
		f := newFixture(t).Everywhere(testPool(), testTemplate(), testMember()).created(testClaim())
		f.bindReturns(func() (*claim, error) { return nil, noAnswer() })
		f.mustRetry()
		f.wantWrites("create sandboxclaims/bind")
		f.DropFromCache(testMember())
		f.MustPass()
		f.WantRequests("patch sandboxclaims/status", "create sandboxes")
	})
	t.Run("carried out", func(t *testing.T) {
		f := newFixture(t).Everywhere(testPool(), testTemplate(), testMember()).created(testClaim())
		f.bindReturns(func() (*claim, error) {
			bound, adopted := bind(f.live(), testMember())
			bound.ResourceVersion = f.nextVersion()
			f.Change(bound, adopted)
			return nil, noAnswer()
		})
		f.mustRetry()
		f.Requests()
		f.DropFromCache(testMember())
		if _, err := f.Pass(); !failure.Outdated(err) {
			t.Errorf("error is %v", err)
		}
		f.wantOnly("p1-x")
		f.sync()
		f.MustPass()
		f.wantSandboxName("p1-x")
		f.wantReady("True/DependenciesReady: Pod is Ready")
	})
	t.Run("intent cannot be written", func(t *testing.T) {
		f := newFixture(t).Everywhere(testPool(), testTemplate(), testMember()).created(testClaim())
		f.bindReturns(func() (*claim, error) { return nil, noAnswer() })
		f.mustRetry()
		f.Refuse("patch", "sandboxclaims/status", unavailable())
		f.DropFromCache(testMember())
		f.mustRetry()
		if f.sandbox(testName) != nil {
			t.Error("a Sandbox was made though the claim may be bound yet")
		}
	})
}

// TestRefusedColdStartIsGivenUp: the claim says why, takes the next member there is, and is not written to for each attempt.
func TestRefusedColdStartIsGivenUp(t *testing.T) {
	f := newFixture(t).Everywhere(testPool(), testTemplate()).created(testClaim())
	f.Refuse("create", "sandboxes", exceededQuota())
	f.mustRetry()
	f.wantWrites("patch sandboxclaims/status", "create sandboxes", "patch sandboxclaims/status")
	f.wantReady(`False/ReconcilerError: Error seen: creating sandbox "c1": sandboxes.agents.x-k8s.io "c1" is forbidden: exceeded quota`)
	f.sync()
	f.mustRetry()
	f.wantWrites("create sandboxes (dry run)")

	t.Run("and begun again when it may", func(t *testing.T) {
		later := f.killed().InCache(testPool(), testTemplate(), f.live())
		later.heal()
		later.MustPass()
		later.wantWrites("create sandboxes (dry run)", "patch sandboxclaims/status", "create sandboxes")
		later.wantReady(beingMade)
	})
}

func TestClaimWhoseColdStartWasRefusedTakesAMember(t *testing.T) {
	f := newFixture(t).Everywhere(testPool(), testTemplate()).created(testClaim())
	f.Refuse("create", "sandboxes", exceededQuota())
	f.mustRetry()
	f.sync()
	f.Requests()
	f.Everywhere(testMember())
	f.bindGives(testMember())
	f.MustPass()
	f.wantWrites("create sandboxclaims/bind", "patch sandboxclaims")
	f.wantOnly("p1-x")
}

// TestRefusalDoesNotEndAColdStartWithoutAnAnswer: the first request may be carried out after the second was refused.
func TestRefusalDoesNotEndAColdStartWithoutAnAnswer(t *testing.T) {
	refusals := map[string]error{
		"for now":  exceededQuota(),
		"for good": invalidSandbox(),
	}
	for name, refusal := range refusals {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t).Everywhere(testPool(), testTemplate()).created(testClaim())
			f.createLoses(false)
			f.mustRetry()
			f.heal()
			f.Refuse("create", "sandboxes", refusal)
			f.Everywhere(testMember())
			for range 2 {
				f.sync()
				f.Requests()
				_, err := f.Pass()
				if retried := err != nil; retried != apierrors.IsForbidden(refusal) {
					t.Errorf("error is %v", err)
				}
			}
			f.wantWrites("create sandboxes")
			if reason := readyReason(&f.live().Status); reason != extensionsv1beta1.ClaimReasonSandboxCreatePending {
				t.Errorf("reason is %s", reason)
			}
		})
	}
}

// TestColdStartGoesOnWhateverBecomesOfThePool: neither may it end for that, nor does the Sandbox that may come need the pool.
func TestColdStartGoesOnWhateverBecomesOfThePool(t *testing.T) {
	f := newFixture(t).Everywhere(testClaim(startedCold), testMember())
	f.MustPass()
	f.wantReady(`False/SandboxCreatePending: SandboxWarmPool "p1" not found`)
	f.sync()
	f.Everywhere(testPool())
	f.MustPass()
	f.wantReady(`False/SandboxCreatePending: SandboxTemplate "t1" not found`)
	f.sync()
	f.Everywhere(testTemplate())
	f.MustPass()
	f.wantOnly("c1")
}

func TestColdStartOfAnEarlierClaimOfTheNameDoesNotCount(t *testing.T) {
	f := newFixture(t).Everywhere(testPool(), testTemplate(), testClaim(startedCold))
	f.coldStarts.note(testClaim(func(c *claim) { c.UID = "earlier" }), coldStart{made: true})
	f.MustPass()
	f.wantOnly("c1")
}

func TestOverloadedServerEndsNoColdStart(t *testing.T) {
	f := newFixture(t).Everywhere(testPool(), testTemplate()).created(testClaim())
	f.Refuse("create", "sandboxes", apierrors.NewTooManyRequests("later", 1))
	f.mustRetry()
	f.wantWrites("patch sandboxclaims/status", "create sandboxes")
	f.mustRetry()
	f.wantWrites("create sandboxes")
}

// TestC11SilentSandboxDisappears: it was the claim's even if it never said anything.
func TestC11SilentSandboxDisappears(t *testing.T) {
	for name, test := range map[string]struct {
		disappears func(*fixture, *sandbox)
		want       string
	}{
		"gone": {func(f *fixture, s *sandbox) {
			f.Remove(s)
			f.DropFromCache(s)
		}, "False/SandboxMissing: Sandbox does not exist"},
		"going":                    {func(f *fixture, s *sandbox) { f.InCache(changed(s, deleting)) }, "False/SandboxNotReady: Sandbox is not ready"},
		"gone from the cache only": {func(f *fixture, s *sandbox) { f.DropFromCache(s) }, beingMade},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t).Everywhere(testPool(), testTemplate()).created(testClaim())
			f.MustPass()
			f.sync()
			f.MustPass()
			s := f.sandbox(testName)
			f.sandboxHandler().OnAdd(s, false)
			test.disappears(f, s)
			f.Requests()
			f.MustPass()
			f.wantReady(test.want)
			f.sync()
			f.Requests()
			f.MustPass()
			f.wantWrites()
		})
	}
}

// TestColdStartWithoutAnAnswerIsGivenUpInTheEnd: while each attempt is refused the claim would wait for ever, with a member ready for it.
func TestColdStartWithoutAnAnswerIsGivenUpInTheEnd(t *testing.T) {
	for name, begin := range map[string]func(*fixture){
		"by this process": func(f *fixture) {
			f.created(testClaim()).createLoses(false)
			f.mustRetry()
			f.heal()
		},
		"by the one before": func(f *fixture) { f.Everywhere(testClaim(startedCold)) },
	} {
		for kind, refusal := range map[string]error{"for now": exceededQuota(), "for good": invalidSandbox()} {
			t.Run(name+", refused "+kind, func(t *testing.T) {
				f := newFixture(t).Everywhere(testPool(), testTemplate())
				begin(f)
				f.Refuse("create", "sandboxes", refusal)
				f.Everywhere(testMember())
				f.bindGives(testMember())
				f.sync()
				if after, _ := f.Pass(); after != maxRequestAge {
					t.Errorf("the next pass is due after %v", after)
				}
				f.clock.Step(maxRequestAge - time.Nanosecond)
				f.wantColdStartAfterPass(true)
				f.clock.Step(time.Nanosecond)
				f.wantColdStartAfterPass(false)
				f.Requests()
				f.MustPass()
				f.wantWrites("create sandboxclaims/bind", "patch sandboxclaims")
				f.wantOnly("p1-x")
			})
		}
	}
}

// wantColdStartAfterPass makes a pass over a claim whose Sandbox cannot be made, and checks whether the claim says after it that it is being
// made. The next pass is due soon.
func (f *fixture) wantColdStartAfterPass(want bool) {
	f.T.Helper()
	f.sync()
	if after, _ := f.Pass(); after != time.Nanosecond {
		f.T.Errorf("the next pass is due after %v", after)
	}
	f.sync()
	if got := extensionsv1beta1.StartedCold(f.live().Status.Conditions); got != want {
		f.T.Errorf("cold start goes on: %v, want %v", got, want)
	}
}

// TestLostAnswerBeforeTheEndOfAColdStart: the time begins anew with each request that got no answer.
func TestLostAnswerBeforeTheEndOfAColdStart(t *testing.T) {
	f := newFixture(t).Everywhere(testPool(), testTemplate(), testClaim(startedCold))
	f.Refuse("create", "sandboxes", exceededQuota())
	f.mustRetry()
	f.heal()
	f.clock.Step(maxRequestAge)
	f.sync()
	f.createLoses(false)
	f.mustRetry()
	f.heal()
	f.sync()
	f.Refuse("create", "sandboxes", exceededQuota())
	if after, _ := f.Pass(); after != maxRequestAge {
		t.Errorf("the next pass is due after %v", after)
	}
	if !extensionsv1beta1.StartedCold(f.live().Status.Conditions) {
		t.Error("the cold start was given up")
	}
}

// TestColdStartThatWasCarriedOutIsNotGivenUp: the cache may be late by then.
func TestColdStartThatWasCarriedOutIsNotGivenUp(t *testing.T) {
	f := newFixture(t).Everywhere(testPool(), testTemplate()).created(testClaim())
	f.createLoses(true)
	f.mustRetry()
	f.heal()
	f.InCache(f.live())
	f.Refuse("create", "sandboxes", invalidSandbox())
	f.MustPass()
	f.clock.Step(maxRequestAge)
	f.InCache(f.live(), testMember())
	f.MustPass()
	f.wantOnly("c1")
	if !extensionsv1beta1.StartedCold(f.live().Status.Conditions) {
		t.Error("the cold start was given up")
	}
}

// TestClaimThatCannotBeStartedColdWaitsForMembers: what refuses its Sandbox may never change, and members may come.
func TestClaimThatCannotBeStartedColdWaitsForMembers(t *testing.T) {
	f := newFixture(t).Everywhere(testPool(), testTemplate()).created(testClaim())
	f.Refuse("create", "sandboxes", exceededQuota())
	for range 2 {
		f.mustRetry()
		f.sync()
	}
	f.queued()
	f.sandboxHandler().OnAdd(testMember(), false)
	f.wantQueued("c1")
}
