// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxwarmpool

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
)

func testInspector(pool *extensionsv1beta1.SandboxWarmPool, template *extensionsv1beta1.SandboxTemplate) *inspector {
	return &inspector{
		pool: pool, template: template, notes: notes{},
		grace: testGrace, recheck: testRecheck, now: testTime(),
	}
}

func namesOf(sandboxes []*agentsv1beta1.Sandbox) []string {
	var names []string
	for _, sandbox := range sandboxes {
		names = append(names, sandbox.Name)
	}
	return names
}

// counts is a census in short.
type counts struct {
	Members, Ready, Terminating, Stale, Stuck, Forgotten, Unschedulable int
	Refusal                                                             string
	Recheck                                                             time.Duration
}

func summary(c *census) counts {
	return counts{
		len(c.members), c.ready, c.terminating, len(c.stale), len(c.stuck), len(c.forgotten), c.unschedulable, c.refusal, c.recheck,
	}
}

func TestCensus(t *testing.T) {
	failed := says(agentsv1beta1.SandboxConditionReady, metav1.ConditionFalse, agentsv1beta1.SandboxReasonReconcilerError, "Error seen: exceeded quota", time.Hour)
	both := func(a, b memberChange) memberChange {
		return func(member *agentsv1beta1.Sandbox) { a(member); b(member) }
	}
	edited := newTemplate(image("other"))
	for name, test := range map[string]struct {
		pool     *extensionsv1beta1.SandboxWarmPool
		template *extensionsv1beta1.SandboxTemplate
		change   memberChange
		want     counts
	}{
		"ready": {change: becameReady(time.Hour), want: counts{Members: 1, Ready: 1}},
		"ready without an address (W11)": {change: func(member *agentsv1beta1.Sandbox) {
			becameReady(time.Minute)(member)
			member.Status.PodIPs = nil
		}, want: counts{Members: 1, Recheck: 4 * time.Minute}},
		"terminating": {change: terminating, want: counts{Terminating: 1}},
		"used, and given back to the pool (W7)": {change: func(member *agentsv1beta1.Sandbox) {
			setLabel(&member.Labels, agentsv1beta1.ClaimUIDLabel, "claim-uid")
		}, want: counts{}},

		"new": {change: both(age(time.Minute), becameUnready(time.Minute)), want: counts{Members: 1, Recheck: 4 * time.Minute}},
		"new, without any condition": {change: func(member *agentsv1beta1.Sandbox) {
			member.Status = agentsv1beta1.SandboxStatus{}
			age(2 * time.Minute)(member)
		}, want: counts{Members: 1, Recheck: 3 * time.Minute}},
		"never ready in time":            {change: becameUnready(testGrace), want: counts{Stuck: 1, Terminating: 1}},
		"old, and unready just now":      {change: becameUnready(time.Second), want: counts{Members: 1, Recheck: testGrace - time.Second}},
		"resumed just now":               {change: both(becameUnready(time.Hour), says(agentsv1beta1.SandboxConditionSuspended, metav1.ConditionFalse, agentsv1beta1.SandboxReasonNotSuspended, "", time.Second)), want: counts{Members: 1, Recheck: testGrace - time.Second}},
		"suspended long ago":             {change: suspended, want: counts{Members: 1}},
		"got a place on a node just now": {change: both(noPlace(corev1.PodReasonUnschedulable, time.Hour), says(agentsv1beta1.SandboxConditionPodScheduled, metav1.ConditionTrue, agentsv1beta1.SandboxReasonPodScheduled, "", time.Second)), want: counts{Members: 1, Recheck: testGrace - time.Second}},

		"no place for it, for a moment (W5)":    {change: noPlace(corev1.PodReasonUnschedulable, time.Minute), want: counts{Members: 1, Recheck: 4 * time.Minute}},
		"no place for it (W5)":                  {change: noPlace(corev1.PodReasonUnschedulable, time.Hour), want: counts{Members: 1, Unschedulable: 1, Recheck: testRecheck}},
		"scheduling gated":                      {change: noPlace(corev1.PodReasonSchedulingGated, time.Hour), want: counts{Members: 1, Unschedulable: 1, Recheck: testRecheck}},
		"no place, of an earlier template":      {template: edited, change: noPlace(corev1.PodReasonUnschedulable, time.Hour), want: counts{Stuck: 1, Terminating: 1}},
		"refused a Pod (W6)":                    {change: failed, want: counts{Members: 1, Refusal: "Error seen: exceeded quota", Recheck: testRecheck}},
		"refused a Pod, of an earlier template": {template: edited, change: failed, want: counts{Stuck: 1, Terminating: 1, Refusal: "Error seen: exceeded quota"}},

		"stale, to be recreated":      {pool: newPool(1, recreate), template: edited, change: becameReady(time.Hour), want: counts{Stale: 1, Terminating: 1}},
		"stale, to be kept":           {template: edited, change: becameReady(time.Hour), want: counts{Members: 1, Ready: 1}},
		"fresh":                       {pool: newPool(1, recreate), change: becameReady(time.Hour), want: counts{Members: 1, Ready: 1}},
		"nothing to be measured by":   {pool: newPool(1, recreate), template: &extensionsv1beta1.SandboxTemplate{}, change: becameReady(time.Hour), want: counts{Members: 1, Ready: 1}},
		"stale, reserved for a claim": {pool: newPool(1, recreate), template: edited, change: reservedFor("c"), want: counts{Members: 1, Ready: 1, Recheck: reservationTimeout}},
	} {
		t.Run(name, func(t *testing.T) {
			pool, template := test.pool, test.template
			if pool == nil {
				pool = newPool(1)
			}
			switch {
			case template == nil:
				template = newTemplate()
			case template.Name == "":
				template = nil
			}
			var c census
			testInspector(pool, template).inspect(&c, testMember("m", test.change))
			if diff := cmp.Diff(test.want, summary(&c)); diff != "" {
				t.Errorf("census differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMemberWithAnExcuseGetsTheWholeGracePeriodAfterIt(t *testing.T) {
	i := testInspector(newPool(1), newTemplate())
	failed := says(agentsv1beta1.SandboxConditionReady, metav1.ConditionFalse, agentsv1beta1.SandboxReasonReconcilerError, "Error seen: exceeded quota", time.Hour)
	for _, step := range []struct {
		after  time.Duration
		change memberChange
		want   counts
	}{
		{0, failed, counts{Members: 1, Refusal: "Error seen: exceeded quota", Recheck: testRecheck}},
		{time.Minute, failed, counts{Members: 1, Refusal: "Error seen: exceeded quota", Recheck: testRecheck}},
		{2 * time.Minute, becameUnready(time.Hour), counts{Members: 1, Recheck: 4 * time.Minute}},
		{6 * time.Minute, becameUnready(time.Hour), counts{Stuck: 1, Terminating: 1}},
	} {
		i.now = testTime().Add(step.after)
		var c census
		i.inspect(&c, testMember("m", step.change))
		if diff := cmp.Diff(step.want, summary(&c)); diff != "" {
			t.Errorf("after %v: census differs (-want +got):\n%s", step.after, diff)
		}
	}
}

func TestAdoptedMemberGetsTheWholeGracePeriod(t *testing.T) {
	i := testInspector(newPool(1), newTemplate())
	member := testMember("m", becameUnready(time.Hour))
	i.notes[member.UID] = note{adoptedAt: testTime().Add(-time.Minute)}
	var c census
	i.inspect(&c, member)
	if diff := cmp.Diff(counts{Members: 1, Recheck: 4 * time.Minute}, summary(&c)); diff != "" {
		t.Errorf("census differs (-want +got):\n%s", diff)
	}
}

func TestReservationIsForgottenAfterAMinute(t *testing.T) {
	i := testInspector(newPool(1), newTemplate())
	for after, want := range map[time.Duration]counts{
		0:                  {Members: 1, Ready: 1, Recheck: time.Minute},
		reservationTimeout: {Members: 1, Ready: 1, Forgotten: 1},
	} {
		i.now, i.notes = testTime().Add(after), notes{"m-uid": {reservedAt: testTime()}}
		var c census
		i.inspect(&c, testMember("m", reservedFor("c")))
		if diff := cmp.Diff(want, summary(&c)); diff != "" {
			t.Errorf("after %v: census differs (-want +got):\n%s", after, diff)
		}
	}
}

func TestW2ExcessIsTakenFromTheUnreadyAndThenFromTheNewest(t *testing.T) {
	unready := becameUnready(0)
	members := []*agentsv1beta1.Sandbox{
		testMember("old", age(4*time.Hour)),
		testMember("old-unready", age(4*time.Hour), unready),
		testMember("new", age(time.Hour)),
		testMember("new-unready", age(time.Hour), unready),
		testMember("reserved", age(time.Minute), unready, reservedFor("c")),
		testMember("newest", age(time.Minute)),
	}
	for replicas, want := range map[int][]string{
		7: nil,
		6: nil,
		5: {"new-unready"},
		3: {"new-unready", "old-unready", "newest"},
		0: {"new-unready", "old-unready", "newest", "new", "old"},
	} {
		if diff := cmp.Diff(want, namesOf(excess(members, replicas))); diff != "" {
			t.Errorf("for %d replicas: deleted members differ (-want +got):\n%s", replicas, diff)
		}
	}
}
