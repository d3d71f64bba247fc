// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
)

// Objects in the tests of this package are in one namespace. A pool p has the UID pool-p, a claim c the UID claim-c, a Sandbox s the
// UID sandbox-s, and the claim was made by attempt c.

func key(resource, name string) Key { return Key{resource, "ns", name} }

// ips are the addresses of every Sandbox.
var ips = []string{"10.0.0.1"}

func pool(name string, replicas int32, options ...func(*Object)) Change {
	return change(key(Pools, name), &Object{
		UID: types.UID("pool-" + name), Pool: &Pool{Replicas: replicas, Counted: replicas, CountedReady: replicas},
	}, options)
}

func claim(name, sandbox string, options ...func(*Object)) Change {
	object := &Object{UID: types.UID("claim-" + name), Claim: &Claim{Attempt: name, Pool: "p", Sandbox: sandbox}}
	if sandbox != "" {
		object.Claim.Ready, object.Claim.PodIPs, object.Claim.Reason = true, ips, "DependenciesReady"
	}
	return change(key(Claims, name), object, options)
}

func member(name string, options ...func(*Object)) Change {
	return change(key(Sandboxes, name), &Object{
		UID: types.UID("sandbox-" + name), Controller: ofPool("p"),
		Sandbox: &Sandbox{LaunchType: agentsv1beta1.LaunchTypeWarm, Ready: true, PodIPs: ips},
	}, options)
}

// claimed is a member that was given to a claim.
func claimed(name, claim string, options ...func(*Object)) Change {
	return member(name, slices.Concat([]func(*Object){controlledBy(ofClaim(claim))}, options)...)
}

// cold is a Sandbox that was made for a claim.
func cold(claim string, options ...func(*Object)) Change {
	coldly := func(o *Object) { o.Sandbox.LaunchType = agentsv1beta1.LaunchTypeCold }
	return claimed(claim, claim, slices.Concat([]func(*Object){coldly}, options)...)
}

func deletion(resource, name string) Change { return Change{Key: key(resource, name)} }

func change(key Key, object *Object, options []func(*Object)) Change {
	for _, option := range options {
		option(object)
	}
	return Change{key, object}
}

func ofPool(name string) Owner  { return Owner{PoolKind, name, types.UID("pool-" + name)} }
func ofClaim(name string) Owner { return Owner{ClaimKind, name, types.UID("claim-" + name)} }

func controlledBy(owner Owner) func(*Object) { return func(o *Object) { o.Controller = owner } }
func withUID(uid types.UID) func(*Object)    { return func(o *Object) { o.UID = uid } }
func deleting(o *Object)                     { o.Deleting = true }
func expiring(o *Object)                     { o.Claim.Expires = true }

// at is a transaction. Revisions are those of its place in the history, from 1.
func at(changes ...Change) []Change { return changes }

// replay returns the record of a history, and how it violates the rules.
func replay(history ...[]Change) (*Record, []Violation) {
	r := NewRecord()
	var violations []Violation
	for i, changes := range history {
		violations = append(violations, r.Apply(Transaction{Revision: int64(i + 1), Changes: changes})...)
	}
	return r, violations
}

func rulesOf(violations []Violation) []string {
	var broken []string
	for _, v := range violations {
		broken = append(broken, v.Rule)
	}
	slices.Sort(broken)
	return slices.Compact(broken)
}

func checkRules(t *testing.T, violations []Violation, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, rulesOf(violations)); diff != "" {
		t.Errorf("broken rules differ (-want +got):\n%s\n%v", diff, violations)
	}
}

// start is a pool with two members.
func start(more ...[]Change) [][]Change {
	return slices.Concat([][]Change{at(pool("p", 2)), at(member("s")), at(member("t"))}, more)
}

func TestRules(t *testing.T) {
	for name, tc := range map[string]struct {
		history [][]Change
		want    []string
	}{
		"bound in the creation": {history: start(at(claim("c", "s"), claimed("s", "c")))},
		"bound later":           {history: start(at(claim("c", "")), at(claim("c", "s"), claimed("s", "c")))},
		"cold":                  {history: start(at(claim("c", "")), at(cold("c")), at(claim("c", "c")))},
		"deleted with its Sandbox": {
			history: start(at(claim("c", "s"), claimed("s", "c")), at(deletion(Claims, "c")),
				at(claimed("s", "c", deleting)), at(deletion(Sandboxes, "s"))),
		},
		"deleted in the foreground": {
			history: start(at(claim("c", "s"), claimed("s", "c")), at(claim("c", "s", deleting)),
				at(deletion(Sandboxes, "s")), at(deletion(Claims, "c"))),
		},
		"idle member deleted": {history: start(at(deletion(Sandboxes, "s")))},
		"cold Sandbox of a claim that is gone": {
			history: start(at(claim("c", "")), at(deletion(Claims, "c")), at(cold("c"))),
		},
		"name again after deletion": {
			history: start(at(claim("c", "s"), claimed("s", "c")), at(deletion(Claims, "c")),
				at(claim("c", "t", withUID("again")), claimed("t", "c", controlledBy(Owner{ClaimKind, "c", "again"})))),
		},
		"name in the status goes with the Sandbox": {
			history: start(at(claim("c", "s"), claimed("s", "c")), at(claim("c", ""))),
		},

		"two claims at once": {
			history: start(at(claim("c", ""), claim("d", ""))),
			want:    []string{TwoOfOneResource},
		},
		"two claims get a Sandbox": {
			history: start(at(claim("c", "s"), claimed("s", "c")), at(claim("d", "s"), claimed("s", "d"))),
			want:    []string{SandboxReused, WrongName},
		},
		"used Sandbox goes to another claim when its own is gone": {
			history: start(at(claim("c", "s"), claimed("s", "c")), at(deletion(Claims, "c")), at(claim("d", "s"), claimed("s", "d"))),
			want:    []string{SandboxReused, WrongName},
		},
		"used Sandbox goes back to the pool": {
			history: start(at(claim("c", "s"), claimed("s", "c")), at(deletion(Claims, "c")), at(member("s"))),
			want:    []string{SandboxReused},
		},
		"used Sandbox goes to a claim of the same name": {
			history: start(at(claim("c", "s"), claimed("s", "c")), at(deletion(Claims, "c")),
				at(claim("c", "s", withUID("again")), claimed("s", "c", controlledBy(Owner{ClaimKind, "c", "again"})))),
			want: []string{SandboxReused, WrongName},
		},
		"used Sandbox belongs to nobody": {
			history: start(at(claim("c", "s"), claimed("s", "c")), at(claimed("s", "c", controlledBy(Owner{})))),
			want:    []string{NoController, SandboxReused},
		},
		"claim gets two Sandboxes": {
			history: start(at(claim("c", "s"), claimed("s", "c")), at(claim("c", "t"), claimed("t", "c"))),
			want:    []string{SecondSandbox, WrongName},
		},
		"claim gets a cold one too": {
			history: start(at(claim("c", "s"), claimed("s", "c")), at(cold("c"))),
			want:    []string{SecondSandbox},
		},
		"claim gets another when the first is gone": {
			history: start(at(claim("c", "s"), claimed("s", "c")), at(claim("c", "s", deleting)), at(deletion(Sandboxes, "s")),
				at(claim("c", "t", deleting), claimed("t", "c"))),
			want: []string{SecondSandbox, WrongName},
		},
		"idle member belongs to nobody": {
			history: start(at(member("s", controlledBy(Owner{})))),
			want:    []string{NoController},
		},
		"claim says so later": {
			history: start(at(claim("c", "")), at(claimed("s", "c")), at(claim("c", "s"))),
			want:    []string{NotAtOnce},
		},
		"claim said so before": {
			history: start(at(claim("c", "s")), at(claimed("s", "c"))),
			want:    []string{NotAtOnce, WrongName},
		},
		"Sandbox given to a claim that is gone": {
			history: start(at(claim("c", "")), at(deletion(Claims, "c")), at(claimed("s", "c"))),
			want:    []string{NotAtOnce},
		},
		"member of another pool": {
			history: start(at(claim("c", "s", func(o *Object) { o.Claim.Pool = "q" }), claimed("s", "c"))),
			want:    []string{WrongAdoption},
		},
		"member of a pool that is gone": {
			history: start(at(deletion(Pools, "p")), at(claim("c", "s"), claimed("s", "c"))),
			want:    []string{WrongAdoption},
		},
		"member of the pool that had the name before": {
			history: start(at(deletion(Pools, "p")), at(pool("p", 2, withUID("again"))), at(claim("c", "s"), claimed("s", "c"))),
			want:    []string{WrongAdoption},
		},
		"member that is being deleted": {
			history: start(at(member("s", deleting)), at(claim("c", "s"), claimed("s", "c", deleting))),
			want:    []string{WrongAdoption},
		},
		"member for a claim that wants a cold one": {
			history: start(at(claim("c", "s", func(o *Object) { o.Claim.Cold = true }), claimed("s", "c"))),
			want:    []string{WrongAdoption},
		},
		"cold start with another name": {
			history: start(at(claim("c", "")), at(cold("d", controlledBy(ofClaim("c"))))),
			want:    []string{WrongColdStart},
		},
		"cold start that says warm": {
			history: start(at(claim("c", "")), at(claimed("c", "c"))),
			want:    []string{WrongColdStart},
		},
		"name of a Sandbox that is not there": {
			history: start(at(claim("c", "x"))),
			want:    []string{WrongName},
		},
		"ready without a Sandbox": {
			history: start(at(claim("c", "", func(o *Object) { o.Claim.Ready = true }))),
			want:    []string{ReadyWithout},
		},
		"ready without addresses": {
			history: start(at(claim("c", "s", func(o *Object) { o.Claim.PodIPs = nil }), claimed("s", "c"))),
			want:    []string{ReadyWithout},
		},
		"Sandbox deleted under its claim": {
			history: start(at(claim("c", "s"), claimed("s", "c")), at(deletion(Sandboxes, "s"))),
			want:    []string{LostSandbox},
		},
		"Sandbox being deleted under its claim": {
			history: start(at(claim("c", "s"), claimed("s", "c")), at(claimed("s", "c", deleting))),
			want:    []string{LostSandbox},
		},
		"pool far beyond its size": {
			history: [][]Change{at(pool("p", 1)), at(member("a")), at(member("b")), at(member("c"))},
			want:    []string{OverfullPool},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, violations := replay(tc.history...)
			checkRules(t, violations, tc.want...)
		})
	}
}

func TestDismissedSandboxMayGo(t *testing.T) {
	r, _ := replay(start(at(claim("c", "s"), claimed("s", "c")))...)
	r.Dismiss("sandbox-s")
	checkRules(t, r.Apply(Transaction{5, at(claimed("s", "c", deleting))}))
	checkRules(t, r.Apply(Transaction{6, at(deletion(Sandboxes, "s"))}))
}

func TestStats(t *testing.T) {
	r, _ := replay(start(
		at(claim("c", "s"), claimed("s", "c")),
		at(claim("d", "")),
		at(claim("d", "t"), claimed("t", "d")),
		at(claim("e", "")),
		at(cold("e")),
		at(claim("e", "e")),
		at(deletion(Claims, "d")),
		at(member("u", func(o *Object) { o.Sandbox.ReservedFor = "somebody" })),
		at(member("v")),
		at(member("w")),
	)...)
	if diff := cmp.Diff(Stats{Claims: 3, AtOnce: 1, Later: 1, Cold: 1, Deleted: 1, Overshoot: 1, Reserved: 1}, r.Stats()); diff != "" {
		t.Errorf("stats differ (-want +got):\n%s", diff)
	}
}

func TestWrite(t *testing.T) {
	r, _ := replay(start(at(claim("c", "s"), claimed("s", "c")), at(deletion(Claims, "c")))...)
	var text strings.Builder
	r.Write(&text, key(Claims, "c"))
	want := `sandboxclaims ns/c
  4 uid=claim-c {Attempt:c Pool:p Cold:false Expires:false Sandbox:s PodIPs:[10.0.0.1] Ready:true Reason:DependenciesReady}
  5 gone
`
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Errorf("differs (-want +got):\n%s", diff)
	}
}
