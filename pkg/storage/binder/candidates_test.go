// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package binder

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
)

var testPool = &extensionsv1beta1.SandboxWarmPool{ObjectMeta: metav1.ObjectMeta{Name: "pool", Namespace: "test", UID: "pool-uid"}}

// ready returns a member of testPool at a revision that can be given away.
func ready(name string, revision int64) *agentsv1beta1.Sandbox {
	sandbox := &agentsv1beta1.Sandbox{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "test", ResourceVersion: strconv.FormatInt(revision, 10)}}
	sandbox.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(testPool, extensionsv1beta1.SchemeGroupVersion.WithKind("SandboxWarmPool"))}
	sandbox.Labels = map[string]string{agentsv1beta1.WarmPoolSandboxLabel: naming.Hash("pool"), agentsv1beta1.SandboxTemplateRefHashLabel: "1"}
	sandbox.Status.PodIPs = []string{"10.0.0.1"}
	sandbox.Status.Conditions = []metav1.Condition{{Type: agentsv1beta1.SandboxConditionReady, Status: metav1.ConditionTrue}}
	return sandbox
}

// claimed returns what is ready as it is once a claim has got it.
func claimed(name string, revision int64) *agentsv1beta1.Sandbox {
	sandbox := ready(name, revision)
	sandbox.OwnerReferences[0].Kind, sandbox.OwnerReferences[0].Name = "SandboxClaim", "claim"
	return sandbox
}

// news is something that a watch tells, or that happens to what was picked last.
type news func(t *testing.T, c *candidates, picked *candidate)

func sees(sandbox *agentsv1beta1.Sandbox) news {
	return func(t *testing.T, c *candidates, _ *candidate) {
		t.Helper()
		if err := (candidateStore{c}).Update(sandbox); err != nil {
			t.Fatal(err)
		}
	}
}

func seesGone(name string, revision int64) news {
	return func(t *testing.T, c *candidates, _ *candidate) {
		t.Helper()
		if err := (candidateStore{c}).Delete(ready(name, revision)); err != nil {
			t.Fatal(err)
		}
	}
}

func lists(revision int64, sandboxes ...*agentsv1beta1.Sandbox) news {
	return func(t *testing.T, c *candidates, _ *candidate) {
		t.Helper()
		objects := make([]any, len(sandboxes))
		for i := range sandboxes {
			objects[i] = sandboxes[i]
		}
		if err := (candidateStore{c}).Replace(objects, strconv.FormatInt(revision, 10)); err != nil {
			t.Fatal(err)
		}
	}
}

func isPutBack(_ *testing.T, c *candidates, picked *candidate) { c.putBack(picked) }

func isSpent(revision int64) news {
	return func(_ *testing.T, c *candidates, picked *candidate) { c.spend(picked, revision) }
}

// TestWhatIsGivenAwayDoesNotComeBack picks the member a, which was seen at revision 10, and then lets things happen in different orders.
func TestWhatIsGivenAwayDoesNotComeBack(t *testing.T) {
	for name, test := range map[string]struct {
		news []news
		// want is the revision of a that can be picked at the end, 0 if it cannot be.
		want int64
		// forgotten says that nothing is to be known of it any more.
		forgotten bool
	}{
		"nothing happens":                       {want: 0},
		"put back":                              {news: []news{isPutBack}, want: 10},
		"put back after it was seen to change":  {news: []news{sees(ready("a", 11)), isPutBack}, want: 11},
		"put back after it was seen to be used": {news: []news{sees(claimed("a", 11)), isPutBack}, forgotten: true},
		"put back after it was seen to go":      {news: []news{seesGone("a", 11), isPutBack}, forgotten: true},
		"seen to change while it is picked":     {news: []news{sees(ready("a", 11))}, want: 0},

		"given":                                   {news: []news{isSpent(12)}},
		"given, then seen as it was before":       {news: []news{isSpent(12), sees(ready("a", 11))}},
		"given, then listed as it was before":     {news: []news{isSpent(12), lists(11, ready("a", 11))}},
		"given, then missing in a list of before": {news: []news{isSpent(12), lists(9)}},
		"given, missing in a list of before, then seen as it was before": {news: []news{isSpent(12), lists(9), sees(ready("a", 11))}},
		"given, then seen":                        {news: []news{isSpent(12), sees(claimed("a", 12))}, forgotten: true},
		"seen to be given, then given":            {news: []news{sees(claimed("a", 12)), isSpent(12)}, forgotten: true},
		"given, then gone":                        {news: []news{isSpent(12), seesGone("a", 13)}, forgotten: true},
		"given, then missing in a list":           {news: []news{isSpent(12), lists(13)}, forgotten: true},
		"seen to be given, then gone, then given": {news: []news{sees(claimed("a", 12)), seesGone("a", 13), isSpent(12)}, forgotten: true},

		"lost to a change":                          {news: []news{isSpent(12)}},
		"lost to a change that is seen then":        {news: []news{isSpent(12), sees(ready("a", 12))}, want: 12},
		"lost to a change that was seen before":     {news: []news{sees(ready("a", 12)), isSpent(12)}, want: 12},
		"lost to a deletion":                        {news: []news{isSpent(11)}},
		"lost to a deletion that is seen then":      {news: []news{isSpent(11), seesGone("a", 12)}, forgotten: true},
		"lost to a deletion, then made anew":        {news: []news{isSpent(11), seesGone("a", 12), sees(ready("a", 13))}, want: 13},
		"gone and made anew while it was picked":    {news: []news{seesGone("a", 11), sees(ready("a", 12)), isSpent(11)}, want: 12},
		"listed anew while it is picked, then back": {news: []news{lists(11, ready("a", 10)), isPutBack}, want: 10},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCandidates(rand.IntN)
			sees(ready("a", 10))(t, c, nil)
			picked := c.pick(testPool, nil)
			if picked == nil || picked.revision != 10 {
				t.Fatalf("picked %v, want a at revision 10", picked)
			}
			for _, news := range test.news {
				news(t, c, picked)
			}
			var got int64
			if again := c.pick(testPool, nil); again != nil {
				got = again.revision
			}
			if got != test.want {
				t.Errorf("picked a at revision %d, want %d", got, test.want)
			}
			if known := len(c.entries) > 0; known == test.forgotten {
				t.Errorf("a is known: %v, want %v", known, !test.forgotten)
			}
			if len(c.pools) != 0 {
				t.Errorf("%d pools have candidates although all were picked", len(c.pools))
			}
		})
	}
}

func TestObjectsWithoutRevisionAreRefused(t *testing.T) {
	sandbox := ready("a", 1)
	sandbox.ResourceVersion = ""
	store := candidateStore{newCandidates(rand.IntN)}
	for what, err := range map[string]error{
		"Add": store.Add(sandbox), "Delete": store.Delete(sandbox), "Replace": store.Replace([]any{sandbox}, "1"), "Replace at no revision": store.Replace(nil, ""),
	} {
		if err == nil {
			t.Errorf("%s succeeds, want an error", what)
		}
	}
}

// TestPicksSpreadByDepletion picks all members of a pool on three nodes: the fullest node is always next.
func TestPicksSpreadByDepletion(t *testing.T) {
	c := newCandidates(rand.IntN)
	left := map[string]int{"a": 5, "b": 3, "c": 1}
	for node, n := range left {
		for i := range n {
			sandbox := ready(fmt.Sprintf("%s-%d", node, i), 1)
			sandbox.Status.NodeName = node
			sees(sandbox)(t, c, nil)
		}
	}
	seen := map[string]bool{}
	for range 9 {
		picked := c.pick(testPool, nil)
		if picked == nil {
			t.Fatalf("nothing was picked, with %v left", left)
		}
		node := picked.sandbox.Status.NodeName
		for other, n := range left {
			if n > left[node] {
				t.Errorf("picked one on %s with %d left, %s has %d", node, left[node], other, n)
			}
		}
		left[node]--
		if seen[picked.sandbox.Name] {
			t.Errorf("%s was picked twice", picked.sandbox.Name)
		}
		seen[picked.sandbox.Name] = true
	}
	if picked := c.pick(testPool, nil); picked != nil {
		t.Errorf("%s was picked after all were", picked.sandbox.Name)
	}
}

// TestSpreadStaysConsistent adds and removes at random, and compares with a plain set.
func TestSpreadStaysConsistent(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	s := newSpread()
	entries := make([]*entry, 50)
	perNode := map[string]int{}
	size := 0
	for i := range entries {
		sandbox := &agentsv1beta1.Sandbox{}
		sandbox.Status.NodeName = fmt.Sprintf("node-%d", i%7)
		entries[i] = &entry{sandbox: sandbox}
	}
	for step := range 10000 {
		e := entries[random.IntN(len(entries))]
		if e.node == nil {
			s.add(e)
			size++
			perNode[e.sandbox.Status.NodeName]++
		} else {
			s.remove(e)
			size--
			perNode[e.sandbox.Status.NodeName]--
		}
		if s.size != size {
			t.Fatalf("step %d: size is %d, want %d", step, s.size, size)
		}
		fullest := 0
		for _, n := range perNode {
			fullest = max(fullest, n)
		}
		chosen := s.choose(random.IntN)
		switch {
		case (chosen == nil) != (size == 0):
			t.Fatalf("step %d: chose %v of %d", step, chosen, size)
		case chosen != nil && (chosen.node == nil || perNode[chosen.sandbox.Status.NodeName] != fullest):
			t.Fatalf("step %d: chose one on %s with %d, the fullest node has %d", step, chosen.sandbox.Status.NodeName,
				perNode[chosen.sandbox.Status.NodeName], fullest)
		}
	}
}

func TestCounts(t *testing.T) {
	c := newCandidates(rand.IntN)
	for i := range 3 {
		sees(ready(strconv.Itoa(i), 1))(t, c, nil)
	}
	former := ready("former", 1)
	former.OwnerReferences[0].UID = "former"
	sees(former)(t, c, nil)
	want := []count{{types.NamespacedName{Namespace: "test", Name: "pool"}, 4}}
	if diff := cmp.Diff(want, c.counts(), cmp.AllowUnexported(count{})); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}
