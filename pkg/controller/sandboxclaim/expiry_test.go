// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxclaim

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ktesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/failure"
)

const (
	deletePolicy     = extensionsv1beta1.ClaimShutdownPolicyDelete
	foregroundPolicy = extensionsv1beta1.ClaimShutdownPolicyDeleteForeground
	retainPolicy     = extensionsv1beta1.ClaimShutdownPolicyRetain
)

func shutdownAt(at time.Time, policy extensionsv1beta1.ClaimShutdownPolicy) func(*claim) {
	t := metav1.NewTime(at)
	return lifecycle(extensionsv1beta1.Lifecycle{ShutdownTime: &t, ShutdownPolicy: policy})
}

func ttl(seconds int32, policy extensionsv1beta1.ClaimShutdownPolicy) func(*claim) {
	return lifecycle(extensionsv1beta1.Lifecycle{TTLSecondsAfterFinished: &seconds, ShutdownPolicy: policy})
}

func TestDeadline(t *testing.T) {
	end := testTime().Add(-time.Minute)
	hasFinished := func(status metav1.ConditionStatus) func(*claim) {
		return func(c *claim) {
			c.Status.Conditions = []metav1.Condition{{Type: "Finished", Status: status, LastTransitionTime: metav1.NewTime(end)}}
		}
	}
	both := func(shutdown time.Time) func(*claim) {
		t := metav1.NewTime(shutdown)
		return lifecycle(extensionsv1beta1.Lifecycle{ShutdownTime: &t, TTLSecondsAfterFinished: ptr.To[int32](60)})
	}
	for name, test := range map[string]struct {
		claim *claim
		want  time.Time
	}{
		"no lifecycle":         {testClaim(hasFinished("True")), time.Time{}},
		"empty lifecycle":      {testClaim(lifecycle(extensionsv1beta1.Lifecycle{}), hasFinished("True")), time.Time{}},
		"shutdown time":        {testClaim(shutdownAt(testTime(), retainPolicy)), testTime()},
		"TTL, running":         {testClaim(ttl(5, retainPolicy)), time.Time{}},
		"TTL, not finished":    {testClaim(ttl(5, retainPolicy), hasFinished("False")), time.Time{}},
		"C15: TTL, finished":   {testClaim(ttl(5, retainPolicy), hasFinished("True")), end.Add(5 * time.Second)},
		"C15: TTL of 0":        {testClaim(ttl(0, retainPolicy), hasFinished("True")), end},
		"both, shutdown first": {testClaim(both(end.Add(time.Second)), hasFinished("True")), end.Add(time.Second)},
		"both, TTL first":      {testClaim(both(end.Add(time.Hour)), hasFinished("True")), end.Add(time.Minute)},
		"both, running":        {testClaim(both(end)), end},
	} {
		t.Run(name, func(t *testing.T) {
			if got := deadline(test.claim); !got.Equal(test.want) {
				t.Errorf("deadline is %v, want %v", got, test.want)
			}
		})
	}
}

func TestPassIsDueWhenTheClaimExpires(t *testing.T) {
	c, s := boundPair(stamped, shutdownAt(testTime().Add(90*time.Second), retainPolicy))
	f := newFixture(t).Everywhere(testPool(), testTemplate(), s, c)
	if after := f.MustPass(); after != 90*time.Second {
		t.Errorf("comes back after %v", after)
	}
	f.WantRequests()
}

// TestC10ExpiredClaimThatIsDeleted: it says why before it goes, and how its Sandbox goes with it is up to the policy.
func TestC10ExpiredClaimThatIsDeleted(t *testing.T) {
	for policy, propagation := range map[extensionsv1beta1.ClaimShutdownPolicy]*metav1.DeletionPropagation{
		deletePolicy: nil, foregroundPolicy: ptr.To(metav1.DeletePropagationForeground),
	} {
		t.Run(string(policy), func(t *testing.T) {
			c, s := boundPair(stamped, shutdownAt(testTime(), policy))
			f := newFixture(t).Everywhere(testPool(), testTemplate(), s, c)
			var said string
			var options metav1.DeleteOptions
			f.Server.PrependReactor("delete", "sandboxclaims", func(action ktesting.Action) (bool, runtime.Object, error) {
				said = readyReason(&f.live().Status)
				options = action.(ktesting.DeleteActionImpl).DeleteOptions
				return false, nil, nil
			})
			f.MustPass()
			f.WantRequests("get sandboxclaims", "patch sandboxclaims/status", "delete sandboxclaims")
			if said != extensionsv1beta1.ClaimReasonExpired {
				t.Errorf("before it went its reason was %q", said)
			}
			if ptr.Deref(options.PropagationPolicy, "none") != ptr.Deref(propagation, "none") {
				t.Errorf("propagation is %v", options.PropagationPolicy)
			}
			if p := options.Preconditions; p == nil || *p.UID != testUID || *p.ResourceVersion != "1001" {
				t.Errorf("preconditions are %+v", p)
			}
			f.WantEvents("Normal ClaimExpired Claim expired", "Normal ClaimExpired Deleting Claim (ShutdownPolicy="+string(policy)+")")
		})
	}
}

// TestC10ExpiredClaimThatStays: its Sandbox goes, and then what it says of the Sandbox.
func TestC10ExpiredClaimThatStays(t *testing.T) {
	c, s := bind(testClaim(stamped, shutdownAt(testTime(), retainPolicy)), testMember(finished(testTime().Add(-time.Hour))))
	f := newFixture(t).Everywhere(testPool(), testTemplate(), s, c)
	f.MustPass()
	f.WantRequests("get sandboxclaims", "patch sandboxclaims/status", "delete sandboxes")
	f.wantReady("False/ClaimExpired: Claim expired. Sandbox cleanup initiated.")
	f.wantSandboxName("p1-x")
	f.WantEvents("Normal ClaimExpired Claim expired")

	f.InCache(f.live(), changed(s, deleting))
	f.MustPass()
	f.wantWrites()

	f.DropFromCache(s)
	f.MustPass()
	f.wantWrites("patch sandboxclaims/status")
	f.wantReady("False/ClaimExpired: Claim expired. Sandbox cleanup initiated.")
	if got := f.live().Status; got.Sandbox.Name != "" || got.Sandbox.PodIPs != nil || len(got.Conditions) != 2 || got.Conditions[0].Type != "Finished" {
		t.Errorf("status is %+v", got)
	}

	f.InCache(f.live())
	f.MustPass()
	f.WantRequests()
}

func TestExpiredClaimWithoutASandboxOnlySaysSo(t *testing.T) {
	f := newFixture(t).Everywhere(testPool(), testTemplate(), testMember()).created(testClaim(shutdownAt(testTime(), "")))
	f.MustPass()
	f.wantWrites("patch sandboxclaims/status")
	f.wantReady("False/ClaimExpired: Claim expired. Sandbox cleanup initiated.")
	f.sync()
	f.MustPass()
	f.WantRequests()
}

func TestSandboxOfSomebodyElseIsNotDeleted(t *testing.T) {
	c, _ := boundPair(stamped, shutdownAt(testTime(), retainPolicy))
	f := newFixture(t).Everywhere(testPool(), testTemplate(), testMember(), c)
	f.MustPass()
	f.wantReady(`False/ClaimExpired: Claim expired. sandbox not owned by this claim: sandbox "p1-x" is not owned by claim "c1"; deletion skipped.`)
	f.wantSandboxName("")
	if f.sandbox("p1-x") == nil {
		t.Error("it was deleted")
	}
	f.sync()
	f.Requests()
	f.MustPass()
	f.WantRequests()
}

func TestClaimThatWasGivenMoreTimeDoesNotExpire(t *testing.T) {
	c, s := boundPair(stamped, shutdownAt(testTime(), deletePolicy))
	extended := c.DeepCopy()
	extended.ResourceVersion = "101"
	shutdownAt(testTime().Add(time.Hour), deletePolicy)(extended)
	f := newFixture(t).Everywhere(testPool(), testTemplate(), s).InCache(c).OnServer(extended)
	if _, err := f.Pass(); !failure.Outdated(err) {
		t.Errorf("error is %v", err)
	}
	f.WantRequests("get sandboxclaims")
}

// TestExtendedClaimGetsAnotherSandbox: the one before was deleted because the claim had expired, so nobody misses it.
func TestExtendedClaimGetsAnotherSandbox(t *testing.T) {
	t.Run("after the first is gone", func(t *testing.T) {
		c, s := bind(testClaim(stamped, ttl(0, retainPolicy)), testMember(finished(testTime())))
		f := newFixture(t).Everywhere(testPool(), testTemplate(), s, c)
		f.MustPass()
		f.InCache(f.live())
		f.DropFromCache(s)
		f.MustPass()
		extended := f.live()
		ttl(60, retainPolicy)(extended)
		extended.ResourceVersion = f.nextVersion()
		f.Change(extended)
		f.sync()
		f.MustPass()
		f.wantReady(beingMade)
		f.wantOnly("c1")
		if end := deadline(f.live()); !end.IsZero() {
			t.Errorf("it expires at %v for the Sandbox before", end)
		}
	})
	t.Run("while the first goes", func(t *testing.T) {
		c, s := bind(testClaim(stamped, ttl(0, retainPolicy)), testMember(finished(testTime())))
		f := newFixture(t).Everywhere(testPool(), testTemplate(), s, c)
		f.MustPass()
		extended := f.live()
		ttl(60, retainPolicy)(extended)
		extended.ResourceVersion = f.nextVersion()
		f.Change(extended)
		f.InCache(extended, changed(s, deleting))
		f.Requests()
		f.MustPass()
		f.wantWrites()

		f.DropFromCache(s)
		f.MustPass()
		f.wantWrites("patch sandboxclaims/status", "patch sandboxclaims/status", "create sandboxes")
		f.wantOnly("c1")
		if end := deadline(f.live()); !end.IsZero() {
			t.Errorf("it expires at %v for the Sandbox before", end)
		}
	})
}

func TestClaimThatGetsNoOtherSandboxYetDoesNotExpireForTheOneBefore(t *testing.T) {
	c, _ := bind(testClaim(stamped, ttl(60, retainPolicy)), testMember(finished(testTime())))
	c.Status = *statusNotReady(c, expiry(""), testTime())
	f := newFixture(t).Everywhere(c)
	f.MustPass()
	f.wantReady(`False/WarmPoolNotFound: SandboxWarmPool "p1" not found`)
	if end := deadline(f.live()); !end.IsZero() {
		t.Errorf("it expires at %v", end)
	}
}

// TestC15TTLAfterFinished: the time runs from when the Sandbox finished, whoever hears of that and when.
func TestC15TTLAfterFinished(t *testing.T) {
	c, s := boundPair(stamped, ttl(5, deletePolicy))
	f := newFixture(t).Everywhere(testPool(), testTemplate(), c)
	f.InCache(changed(s, finished(testTime())))
	f.clock.Step(3 * time.Second)
	if after := f.MustPass(); after != 2*time.Second {
		t.Errorf("comes back after %v", after)
	}
	f.wantWrites("patch sandboxclaims/status")
	f.clock.Step(2 * time.Second)
	f.MustPass()
	f.wantWrites("patch sandboxclaims/status", "delete sandboxclaims")
}

func TestTTLOf0IsDueOnceTheClaimSaysFinished(t *testing.T) {
	c, s := boundPair(stamped, ttl(0, deletePolicy))
	f := newFixture(t).Everywhere(testPool(), testTemplate(), c)
	f.InCache(changed(s, finished(testTime())))
	if after := f.MustPass(); after <= 0 || after > time.Millisecond {
		t.Errorf("comes back after %v", after)
	}
	f.wantWrites("patch sandboxclaims/status")
	f.MustPass()
	f.wantWrites("patch sandboxclaims/status", "delete sandboxclaims")
}

func TestMissingSandboxDoesNotStopTheTTL(t *testing.T) {
	c, _ := bind(testClaim(stamped, ttl(5, deletePolicy)), testMember(finished(testTime())))
	f := newFixture(t).Everywhere(testPool(), testTemplate(), c)
	if after := f.MustPass(); after != 5*time.Second {
		t.Errorf("comes back after %v", after)
	}
	f.wantReady("False/SandboxMissing: Sandbox does not exist")
}
