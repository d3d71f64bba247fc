// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxwarmpool

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ktesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/failure"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/namespace"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/recent"
)

const progressing = " True/Progressing: Members that are missing are being made"

func replicas(count int32) poolChange {
	return func(pool *extensionsv1beta1.SandboxWarmPool) {
		pool.Spec.Replicas = ptr.To(count)
		pool.Generation++
	}
}

// filled returns a fixture of a pool with so many ready members, everywhere, after its first pass.
func filled(t *testing.T, count int, changes ...poolChange) *fixture {
	t.Helper()
	f := newFixture(t).Everywhere(newPool(int32(count), changes...), newTemplate())
	for i := range count {
		f.Everywhere(testMember(fmt.Sprintf("m%d", i), age(time.Hour-time.Duration(i)*time.Second)))
	}
	f.MustPass()
	f.requests()
	f.settle()
	return f
}

// settle makes the cache catch up with the server, and lets so much time pass that the status may be written again.
func (f *fixture) settle() {
	f.T.Helper()
	f.sync()
	f.clock.Step(statusInterval)
}

// edit changes the pool on the server and in the cache.
func (f *fixture) edit(change poolChange) {
	f.T.Helper()
	pool := f.pool()
	change(pool)
	f.Change(pool)
	f.InCache(pool)
}

func (f *fixture) wantMembers(want ...string) {
	f.T.Helper()
	if diff := cmp.Diff(want, namesOf(f.Sandboxes())); diff != "" {
		f.T.Errorf("Sandboxes differ (-want +got):\n%s", diff)
	}
}

func TestNewPoolIsFilledWithOneCreateForEachMember(t *testing.T) {
	f := newFixture(t).Everywhere(newPool(3), newTemplate())
	if after := f.MustPass(); after != 0 {
		t.Errorf("another pass is due after %v", after)
	}
	f.wantRequests("list sandboxes", "3 x create sandboxes", "patch sandboxwarmpools/status")
	f.wantStatus("0/3" + progressing)
	f.sync()
	f.MustPass()
	f.wantRequests()
	for _, member := range f.Sandboxes() {
		f.change(member.Name, becameReady(0))
	}
	f.settle()
	if after := f.MustPass(); after != 0 {
		t.Errorf("another pass is due after %v", after)
	}
	f.wantRequests("patch sandboxwarmpools/status")
	f.wantStatus("3/3" + progressing)
	status := f.pool().Status
	if status.Selector != "agents.x-k8s.io/warm-pool-sandbox="+f.Sandboxes()[0].Labels[agentsv1beta1.WarmPoolSandboxLabel] || status.ObservedGeneration != 2 {
		t.Errorf("selector %q, observedGeneration %d", status.Selector, status.ObservedGeneration)
	}
	f.WantEvents()
}

func TestW1MembersAreNotMadeTwiceWhileTheCacheLags(t *testing.T) {
	f := newFixture(t).Everywhere(newPool(5), newTemplate())
	for range 3 {
		f.MustPass()
	}
	if got := len(f.Sandboxes()); got != 5 {
		t.Errorf("%d Sandboxes", got)
	}
	// Some arrive, of which one is claimed before the others do.
	for i, member := range f.Sandboxes()[:3] {
		if i == 0 {
			f.change(member.Name, claimed)
		}
		f.InCache(f.Sandboxes()[i])
		f.sandboxHandler().OnAdd(f.Sandboxes()[i], false)
	}
	f.clock.Step(quiet)
	f.MustPass()
	f.clock.Step(quiet)
	f.MustPass()
	if got := len(f.Sandboxes()); got != 6 {
		t.Errorf("%d Sandboxes after one was claimed", got)
	}
}

func TestW1NothingIsMadeBeforeTheCacheHasWhatAnotherProcessMade(t *testing.T) {
	f := newFixture(t).Everywhere(newPool(3), newTemplate(), testMember("m0")).OnServer(testMember("m1"), testMember("m2"))
	for range 2 {
		if _, err := f.Pass(); !failure.Outdated(err) {
			t.Errorf("error is %v", err)
		}
		f.wantRequests("list sandboxes")
	}
	f.sync()
	f.MustPass()
	f.wantRequests("patch sandboxwarmpools/status")
}

func TestW1LostMemberIsLookedForAndThenMadeAgain(t *testing.T) {
	f := newFixture(t).Everywhere(newPool(1), newTemplate())
	f.MustPass()
	f.requests()
	// It is deleted again, and the watch tells neither of the one nor of the other.
	f.Remove(f.Sandboxes()[0])
	f.InCache(f.pool())
	if after := f.MustPass(); after != recent.CreationTimeout {
		t.Errorf("it is looked for after %v", after)
	}
	f.wantRequests()
	f.clock.Step(recent.CreationTimeout)
	f.MustPass()
	f.wantRequests("list sandboxes", "create sandboxes")
	// This one is only late.
	f.clock.Step(recent.CreationTimeout)
	f.MustPass()
	f.MustPass()
	f.wantRequests("list sandboxes")
}

func TestW1RequestWithoutAnAnswerIsRepeatedUnderTheSameName(t *testing.T) {
	for name, heard := range map[string]bool{"the first was heard": true, "the first was lost": false} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t).Everywhere(newPool(1), newTemplate())
			var asked []string
			f.Server.PrependReactor("create", "sandboxes", func(action ktesting.Action) (bool, runtime.Object, error) {
				sandbox := action.(ktesting.CreateAction).GetObject().(*agentsv1beta1.Sandbox)
				asked = append(asked, sandbox.Name)
				if len(asked) > 1 {
					return false, nil, nil
				}
				if heard {
					f.OnServer(sandbox)
				}
				return true, nil, errors.New("connection reset by peer")
			})
			if _, err := f.Pass(); err == nil {
				t.Error("no error")
			}
			f.wantStatus("0/0 False/FailedCreate: creating Sandbox \"" + asked[0] + "\": connection reset by peer")
			f.clock.Step(minCreateBackoff)
			f.MustPass()
			if len(asked) != 2 || asked[0] != asked[1] {
				t.Errorf("names asked for are %v", asked)
			}
			f.wantMembers(asked[0])
			f.wantStatus("0/1" + progressing)
		})
	}
}

func TestW1RequestWithoutAnAnswerIsForgottenWhenItCanHaveNoEffect(t *testing.T) {
	f := newFixture(t).Everywhere(newPool(1), newTemplate())
	f.Refuse("create", "sandboxes", errors.New("connection reset by peer"))
	if _, err := f.Pass(); err == nil {
		t.Error("no error")
	}
	f.edit(replicas(0))
	f.settle()
	f.MustPass()
	f.settle()
	f.requests()
	f.clock.Step(recent.CreationTimeout)
	f.MustPass()
	f.wantRequests("list sandboxes")
	f.clock.Step(recent.CreationTimeout)
	f.MustPass()
	f.wantRequests()
}

func TestW1MemberThatArrivesBeforeItsEventIsCountedOnce(t *testing.T) {
	for name, test := range map[string]struct {
		change memberChange
		// sandboxes is how many there are in the end, waited how many of them have not arrived.
		sandboxes, waited int
	}{
		"as it was made": {func(*agentsv1beta1.Sandbox) {}, 1, 0},
		"ready":          {becameReady(0), 1, 0},
		"claimed":        {claimed, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t).Everywhere(newPool(1), newTemplate())
			f.MustPass()
			f.InCache(f.change(f.Sandboxes()[0].Name, test.change))
			f.MustPass()
			if got := len(f.Sandboxes()); got != test.sandboxes {
				t.Errorf("%d Sandboxes", got)
			}
			if got := len(f.ledger.created); got != test.waited {
				t.Errorf("%d members are waited for", got)
			}
		})
	}
}

func TestNameOfSomebodyElseIsNotUsed(t *testing.T) {
	f := newFixture(t).Everywhere(newPool(1), newTemplate())
	taken := ""
	f.Server.PrependReactor("create", "sandboxes", func(action ktesting.Action) (bool, runtime.Object, error) {
		if taken != "" {
			return false, nil, nil
		}
		taken = action.(ktesting.CreateAction).GetObject().(*agentsv1beta1.Sandbox).Name
		f.OnServer(testMember(taken, claimed))
		return false, nil, nil
	})
	if _, err := f.Pass(); !failure.Outdated(err) {
		t.Errorf("error is %v", err)
	}
	f.MustPass()
	if got := len(f.Sandboxes()); got != 2 {
		t.Errorf("%d Sandboxes", got)
	}
}

func TestW2ScaleDownDeletesTheMembersThatAreTooMany(t *testing.T) {
	f := filled(t, 4)
	f.change("m0", claimed)
	f.change("m1", becameUnready(0))
	f.edit(replicas(1))
	f.sync()
	f.MustPass()
	f.wantRequests("get sandboxwarmpools", "get sandboxtemplates", "list sandboxes", "2 x delete sandboxes", "patch sandboxwarmpools/status")
	f.wantMembers("m0", "m2")
	f.wantStatus("1/1" + progressing)
	// The cache still shows those that are gone.
	f.MustPass()
	f.wantRequests()

	f.edit(replicas(0))
	f.settle()
	f.MustPass()
	f.wantMembers("m0")
	f.wantStatus("0/0" + progressing)
}

func TestW2MemberIsDeletedInTheVersionThatWasJudged(t *testing.T) {
	f := filled(t, 2)
	f.edit(replicas(1))
	var preconditions *metav1.Preconditions
	f.Server.PrependReactor("delete", "sandboxes", func(action ktesting.Action) (bool, runtime.Object, error) {
		preconditions = action.(ktesting.DeleteActionImpl).DeleteOptions.Preconditions
		return true, nil, apierrors.NewConflict(agentsv1beta1.Resource("sandboxes"), "m1", errors.New("claimed"))
	})
	f.MustPass()
	want := &metav1.Preconditions{UID: ptr.To(testMember("m1").UID), ResourceVersion: ptr.To("50")}
	if diff := cmp.Diff(want, preconditions); diff != "" {
		t.Errorf("preconditions differ (-want +got):\n%s", diff)
	}
	f.wantMembers("m0", "m1")
}

func TestW2NothingIsDeletedOnAStaleCache(t *testing.T) {
	for name, change := range map[string]poolChange{
		"scaled up again": replicas(2),
		"another pool":    func(pool *extensionsv1beta1.SandboxWarmPool) { pool.UID = "later" },
	} {
		t.Run(name, func(t *testing.T) {
			f := filled(t, 2)
			f.edit(replicas(1))
			cached := f.pool()
			f.edit(change)
			f.InCache(cached)
			f.requests()
			if _, err := f.Pass(); !failure.Outdated(err) {
				t.Errorf("error is %v", err)
			}
			f.wantRequests("get sandboxwarmpools")
		})
	}
}

func TestW4PoolWithoutTemplateSaysSoAndIsFilledWhenItComes(t *testing.T) {
	const missing = ` False/TemplateNotFound: SandboxTemplate "python" not found`
	f := newFixture(t).Everywhere(newPool(2))
	if after := f.MustPass(); after != 0 {
		t.Errorf("another pass is due after %v", after)
	}
	f.wantRequests("patch sandboxwarmpools/status")
	f.wantStatus("0/0" + missing)
	f.WantEvents(`Warning TemplateNotFound SandboxTemplate "python" not found`)

	f.Everywhere(newTemplate())
	f.settle()
	f.MustPass()
	f.wantStatus("0/2" + progressing)
	f.WantEvents("Normal WarmPoolProgressing Warm pool is progressing again")

	if err := f.Cache(newTemplate()).Delete(newTemplate()); err != nil {
		t.Fatal(err)
	}
	f.change(f.Sandboxes()[0].Name, claimed)
	f.requests()
	f.settle()
	f.MustPass()
	f.wantRequests("patch sandboxwarmpools/status")
	f.wantStatus("0/1" + missing)
}

func TestW4TemplateReachesItsPoolsAtOnce(t *testing.T) {
	f := newFixture(t).InCache(newPool(1), newPool(1, func(pool *extensionsv1beta1.SandboxWarmPool) {
		pool.Name, pool.Spec.SandboxTemplateRef.Name = "other", "other"
	}))
	f.templateHandler().OnAdd(newTemplate(), false)
	if got := f.loop.Queue.Len(); got != 1 {
		t.Fatalf("%d pools are queued", got)
	}
	if name, _ := f.loop.Queue.Get(); name.Name != testName {
		t.Errorf("%v is queued", name)
	}
}

func TestW5UnschedulableMembersAreKept(t *testing.T) {
	f := filled(t, 3)
	for _, name := range []string{"m0", "m1"} {
		f.change(name, noPlace(corev1.PodReasonUnschedulable, time.Hour))
	}
	f.settle()
	if after := f.MustPass(); after != testRecheck {
		t.Errorf("another pass is due after %v", after)
	}
	const note = "2/3 sandboxes are unschedulable past the 5m0s readiness grace period; " +
		"holding them instead of replacing (replacements would be equally unschedulable)"
	f.wantRequests("patch sandboxwarmpools/status")
	f.wantStatus("1/3 False/Unschedulable: " + note)
	f.WantEvents("Warning WarmPoolNotProgressing " + note)
	f.settle()
	f.MustPass()
	f.wantRequests()

	for _, name := range []string{"m0", "m1"} {
		f.change(name, becameReady(0))
	}
	f.settle()
	f.MustPass()
	f.wantStatus("3/3" + progressing)
	f.WantEvents("Normal WarmPoolProgressing Warm pool is progressing again")
}

func TestStuckMemberIsReplaced(t *testing.T) {
	f := filled(t, 2)
	f.change("m0", becameUnready(testGrace))
	f.settle()
	f.MustPass()
	f.wantRequests("delete sandboxes", "patch sandboxwarmpools/status")
	f.wantMembers("m1")
	f.settle()
	f.MustPass()
	f.wantRequests("list sandboxes", "create sandboxes", "patch sandboxwarmpools/status")
}

func TestW6QuotaStopsTheFillAndTheStatusStaysTrue(t *testing.T) {
	f := newFixture(t).Everywhere(newPool(5), newTemplate())
	quota := apierrors.NewForbidden(agentsv1beta1.Resource("sandboxes"), "p1-x", errors.New("exceeded quota: sandboxes"))
	limit := 3
	f.Server.PrependReactor("create", "sandboxes", func(ktesting.Action) (bool, runtime.Object, error) {
		return len(f.Sandboxes()) >= limit, nil, quota
	})
	if _, err := f.Pass(); !apierrors.IsForbidden(err) {
		t.Errorf("error is %v", err)
	}
	if got := len(f.Sandboxes()); got != limit {
		t.Errorf("%d members", got)
	}
	status := f.pool().Status
	if condition := status.Conditions[0]; status.Replicas != 3 || condition.Reason != "FailedCreate" || len(f.Recorder.Events) != 1 {
		t.Errorf("%d replicas, condition %v, %d events", status.Replicas, condition, len(f.Recorder.Events))
	}
	f.requests()
	f.settle()
	if after := f.MustPass(); after != minCreateBackoff-statusInterval {
		t.Errorf("another pass is due after %v", after)
	}
	f.wantRequests()

	limit = 10
	f.clock.Step(minCreateBackoff - statusInterval)
	f.MustPass()
	f.wantRequests("2 x create sandboxes", "patch sandboxwarmpools/status")
	f.wantStatus("0/5" + progressing)
}

func TestW6MembersThatAreRefusedTheirPodsAreKeptAndTheReasonTold(t *testing.T) {
	f := filled(t, 5)
	for _, name := range []string{"m0", "m1", "m2"} {
		f.change(name, says(agentsv1beta1.SandboxConditionReady, metav1.ConditionFalse, agentsv1beta1.SandboxReasonReconcilerError, "Error seen: exceeded quota: pods", time.Hour))
	}
	f.settle()
	f.MustPass()
	f.wantRequests("patch sandboxwarmpools/status")
	f.wantStatus("2/5 False/FailedCreate: Error seen: exceeded quota: pods")
	f.WantEvents("Warning FailedCreate Error seen: exceeded quota: pods")
}

func TestInvalidTemplateIsNotTriedAgainUntilItIsChanged(t *testing.T) {
	f := newFixture(t).Everywhere(newPool(2), newTemplate())
	f.Refuse("create", "sandboxes", apierrors.NewInvalid(agentsv1beta1.SchemeGroupVersion.WithKind("Sandbox").GroupKind(), "p1-x", nil))
	if _, err := f.Pass(); !apierrors.IsInvalid(err) {
		t.Errorf("error is %v", err)
	}
	f.requests()
	f.settle()
	f.clock.Step(time.Hour)
	if after := f.MustPass(); after != 0 {
		t.Errorf("another pass is due after %v", after)
	}
	f.wantRequests()
	f.InCache(newTemplate(image("other")))
	if _, err := f.Pass(); !apierrors.IsInvalid(err) {
		t.Errorf("error is %v", err)
	}
	f.wantRequests("create sandboxes")
}

func TestNamespaceThatGoesIsLeftInSilence(t *testing.T) {
	f := newFixture(t).Everywhere(newPool(2), newTemplate())
	terminating := apierrors.NewForbidden(agentsv1beta1.Resource("sandboxes"), "p1-x", nil)
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	f.Refuse("create", "sandboxes", terminating)
	for _, want := range [][]string{{"list sandboxes", "create sandboxes"}, nil} {
		if after := f.MustPass(); after != namespace.TerminatingDelay {
			t.Errorf("another pass is due after %v", after)
		}
		f.wantRequests(want...)
	}
	f.WantEvents()
}

func TestW8RecreateReplacesStaleMembersAndOnReplenishKeepsThem(t *testing.T) {
	f := filled(t, 3, recreate)
	f.change("m0", reservedFor("claim-uid"))
	template := newTemplate(image("other"))
	f.InCache(template)
	f.sync()
	if _, err := f.Pass(); !failure.Outdated(err) {
		t.Errorf("with a template that the server has not: %v", err)
	}
	f.Change(template)
	f.requests()
	f.MustPass()
	f.wantRequests("get sandboxwarmpools", "get sandboxtemplates", "2 x delete sandboxes", "patch sandboxwarmpools/status")
	f.wantMembers("m0")
	f.settle()
	f.MustPass()
	f.wantRequests("list sandboxes", "2 x create sandboxes", "patch sandboxwarmpools/status")

	f = filled(t, 3)
	f.InCache(template)
	f.MustPass()
	f.wantRequests()
}

func TestW9RecreatedPoolTakesOrphansBack(t *testing.T) {
	f := newFixture(t).Everywhere(newPool(3), newTemplate(),
		testMember("orphan", orphaned), testMember("edited", orphaned, func(m *agentsv1beta1.Sandbox) { m.Spec.PodTemplate.Spec.Containers[0].Image = "evil" }),
		testMember("used", orphaned, func(m *agentsv1beta1.Sandbox) { m.Labels[agentsv1beta1.ClaimUIDLabel] = "claim-uid" }))
	f.MustPass()
	f.wantRequests("get sandboxwarmpools", "patch sandboxes", "list sandboxes", "2 x create sandboxes", "patch sandboxwarmpools/status")
	f.wantStatus("1/3" + progressing)
	for _, sandbox := range f.Sandboxes() {
		if foreign := sandbox.Name == "edited" || sandbox.Name == "used"; owns(newPool(3), sandbox) == foreign {
			t.Errorf("the owners of %s are %v", sandbox.Name, sandbox.OwnerReferences)
		}
	}
}

func TestW9DyingPoolTakesNothing(t *testing.T) {
	f := newFixture(t).InCache(newPool(1), newTemplate()).OnServer(newPool(1, func(pool *extensionsv1beta1.SandboxWarmPool) {
		pool.DeletionTimestamp, pool.Finalizers = ptr.To(metav1.NewTime(testTime())), []string{"orphan"}
	})).Everywhere(testMember("orphan", orphaned))
	if _, err := f.Pass(); !failure.Outdated(err) {
		t.Errorf("error is %v", err)
	}
	f.InCache(f.pool())
	f.requests()
	f.MustPass()
	f.wantRequests()
}

func TestMemberGetsBackTheLabelsItLost(t *testing.T) {
	f := filled(t, 1)
	f.change("m0", func(member *agentsv1beta1.Sandbox) { member.Labels = nil })
	f.sync()
	f.MustPass()
	f.wantRequests("patch sandboxes")
	f.sync()
	f.MustPass()
	f.wantRequests()
	if diff := cmp.Diff(map[string]string{
		agentsv1beta1.WarmPoolSandboxLabel:        testMember("m0").Labels[agentsv1beta1.WarmPoolSandboxLabel],
		agentsv1beta1.SandboxTemplateRefHashLabel: testMember("m0").Labels[agentsv1beta1.SandboxTemplateRefHashLabel],
		agentsv1beta1.LaunchTypeLabel:             agentsv1beta1.LaunchTypeWarm,
	}, f.Sandboxes()[0].Labels); diff != "" {
		t.Errorf("labels differ (-want +got):\n%s", diff)
	}
}

func TestClaimsGoBeforeRefillAndMakeFewStatusWrites(t *testing.T) {
	const claims = 200
	f := filled(t, 500)
	for i := range claims {
		f.InCache(f.change(fmt.Sprintf("m%d", i), claimed))
		f.clock.Step(10 * time.Millisecond)
		if i%10 == 9 {
			f.InCache(f.pool())
			f.MustPass()
		}
	}
	// Two seconds, at two writes a second.
	f.wantRequests("4 x patch sandboxwarmpools/status")
	for range 20 {
		f.sync()
		after := f.MustPass()
		if after == 0 || after > quiet {
			break
		}
		f.clock.Step(after)
	}
	f.wantRequests("2 x patch sandboxwarmpools/status", "list sandboxes", fmt.Sprintf("%d x create sandboxes", claims))
	f.wantStatus("300/500" + progressing)
}

func TestReservationOfAClaimThatWasNotMadeEnds(t *testing.T) {
	claim := &extensionsv1beta1.SandboxClaim{ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: "c1", UID: "claim-uid"}}
	for name, test := range map[string]struct {
		made     bool
		requests []string
	}{
		"never made": {false, []string{"list sandboxclaims", "delete sandboxes", "patch sandboxwarmpools/status"}},
		"made":       {true, []string{"list sandboxclaims"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := filled(t, 1)
			if test.made {
				f.OnServer(claim)
			}
			f.change("m0", reservedFor("claim-uid"))
			f.sync()
			if after := f.MustPass(); after != reservationTimeout {
				t.Errorf("another pass is due after %v", after)
			}
			f.wantRequests()
			f.clock.Step(reservationTimeout)
			f.MustPass()
			f.wantRequests(test.requests...)
		})
	}
}

func TestBatchesAreBounded(t *testing.T) {
	f := newFixture(t, func(config *Config) { config.Limits.MaxBatchSize = 2 }).Everywhere(newPool(3), newTemplate())
	if after := f.MustPass(); after != again {
		t.Errorf("another pass is due after %v", after)
	}
	f.MustPass()
	f.wantRequests("list sandboxes", "3 x create sandboxes", "patch sandboxwarmpools/status")
	f.sync()
	f.edit(replicas(0))
	if after := f.MustPass(); after != again {
		t.Errorf("another pass is due after %v", after)
	}
	if got := len(f.Sandboxes()); got != 1 {
		t.Errorf("%d members are left", got)
	}
}

func TestPoolThatIsGoneIsForgotten(t *testing.T) {
	f := newFixture(t).Everywhere(newPool(1), newTemplate())
	f.Refuse("create", "sandboxes", errors.New("connection reset by peer"))
	if _, err := f.Pass(); err == nil {
		t.Error("no error")
	}
	f.poolHandler().OnDelete(newPool(1))
	if len(f.memories) != 0 || len(f.ledger.created) != 0 {
		t.Errorf("%d memories and %d requests remain", len(f.memories), len(f.ledger.created))
	}
}

func BenchmarkPassOverAFullPool(b *testing.B) {
	const size = 2000
	for name, change := range map[string]poolChange{"OnReplenish": func(*extensionsv1beta1.SandboxWarmPool) {}, "Recreate": recreate} {
		b.Run(name, func(b *testing.B) {
			f := newFixture(b).Everywhere(newPool(size, change), newTemplate())
			for i := range size {
				f.InCache(testMember(fmt.Sprintf("m%d", i)))
			}
			f.MustPass()
			f.InCache(f.pool())
			b.ReportAllocs()
			for b.Loop() {
				f.MustPass()
			}
		})
	}
}
