// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"net/http"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// answered is the answer to a creation by the attempt of the same name as the claim.
func answered(verb Verb, name string, code int, options ...func(*Answer)) Answer {
	a := Answer{Verb: verb, Attempt: name, Key: key(Claims, name), UID: types.UID("claim-" + name), Code: code}
	for _, option := range options {
		option(&a)
	}
	return a
}

// with makes an answer have the object of a change, at a revision.
func with(revision int64, c Change) func(*Answer) {
	return func(a *Answer) { a.Revision, a.Object = revision, c.Object }
}

func by(attempt string) func(*Answer) { return func(a *Answer) { a.Attempt = attempt } }

func TestCheckAnswers(t *testing.T) {
	bound := func() []Change { return at(claim("c", "s"), claimed("s", "c")) }
	boundAndSeen := start(bound(), at(claim("c", "s")))
	boundAndDeleted := start(bound(), at(deletion(Claims, "c")))
	waiting := start(at(claim("c", "")))
	create := answered(Create, "c", http.StatusCreated, with(4, claim("c", "s")))
	for name, tc := range map[string]struct {
		history [][]Change
		answers []Answer
		want    []string
	}{
		"bound":            {history: boundAndSeen, answers: []Answer{create}},
		"bound, no answer": {history: boundAndSeen, answers: []Answer{answered(Create, "c", Unknown)}},
		"no answer, and not made": {
			history: boundAndSeen,
			answers: []Answer{create, answered(Create, "d", Unknown)},
		},
		"waiting": {history: waiting, answers: []Answer{answered(Create, "c", http.StatusCreated, with(4, claim("c", "")))}},
		"made again after the answer was lost": {
			history: boundAndSeen,
			answers: []Answer{answered(Create, "c", Unknown), answered(Create, "c", http.StatusConflict, by("again"))},
		},
		"refused": {
			history: boundAndSeen,
			answers: []Answer{create, answered(Create, "d", http.StatusUnprocessableEntity)},
		},
		"dry run": {
			history: boundAndSeen,
			answers: []Answer{create, answered(DryRun, "d", http.StatusCreated, with(4, claim("d", "s")))},
		},
		"deleted": {history: boundAndDeleted, answers: []Answer{create, answered(Delete, "c", http.StatusOK)}},
		"deleted, no answer": {
			history: boundAndDeleted,
			answers: []Answer{create, answered(Delete, "c", Unknown), answered(Delete, "c", http.StatusNotFound)},
		},
		"expired": {
			history: start(at(claim("c", "s", expiring), claimed("s", "c")), at(deletion(Claims, "c"))),
			answers: []Answer{answered(Create, "c", http.StatusCreated, with(4, claim("c", "s", expiring)))},
		},
		"read": {
			history: boundAndSeen,
			answers: []Answer{create, answered(Get, "c", http.StatusOK, with(5, claim("c", "s")))},
		},
		"read when it was gone": {
			history: boundAndDeleted,
			answers: []Answer{create, answered(Delete, "c", http.StatusOK), answered(Get, "c", http.StatusNotFound)},
		},

		"confirmed claim is not there": {
			history: boundAndSeen,
			answers: []Answer{create, answered(Create, "d", http.StatusCreated, with(4, claim("d", "t")))},
			want:    []string{FalseAnswer, NoLaterEvent},
		},
		"confirmed claim has another Sandbox": {
			history: boundAndSeen,
			answers: []Answer{answered(Create, "c", http.StatusCreated, with(4, claim("c", "t")))},
			want:    []string{FalseAnswer},
		},
		"confirmed claim has another revision": {
			history: start(at(pool("q", 0)), bound(), at(claim("c", "s"))),
			answers: []Answer{answered(Create, "c", http.StatusCreated, with(4, claim("c", "s")))},
			want:    []string{FalseAnswer},
		},
		"nothing to see after a claim that is ready": {
			history: start(bound()),
			answers: []Answer{create},
			want:    []string{NoLaterEvent},
		},
		"refused and made": {
			history: boundAndSeen,
			answers: []Answer{create, answered(Create, "c", http.StatusUnprocessableEntity)},
			want:    []string{FalseRefusal, Unasked},
		},
		"refused for a name that nothing ever had": {
			history: boundAndSeen,
			answers: []Answer{create, answered(Create, "d", http.StatusConflict)},
			want:    []string{FalseRefusal},
		},
		"dry run made one": {
			history: boundAndSeen,
			answers: []Answer{answered(DryRun, "c", http.StatusCreated, with(4, claim("c", "s")))},
			want:    []string{DryRunStored, Unasked},
		},
		"one request made two": {
			history: slices.Concat(boundAndSeen, [][]Change{at(claim("d", "", func(o *Object) { o.Claim.Attempt = "c" }))}),
			answers: []Answer{create},
			want:    []string{CreatedTwice},
		},
		"nobody made it": {
			history: boundAndSeen,
			want:    []string{Unasked},
		},
		"nobody deleted it": {
			history: boundAndDeleted,
			answers: []Answer{create},
			want:    []string{Unasked},
		},
		"refused deletion was done": {
			history: boundAndDeleted,
			answers: []Answer{create, answered(Delete, "c", http.StatusConflict)},
			want:    []string{Unasked},
		},
		"confirmed deletion was not done": {
			history: boundAndSeen,
			answers: []Answer{create, answered(Delete, "c", http.StatusOK)},
			want:    []string{NotDeleted},
		},
		"not found and there": {
			history: boundAndSeen,
			answers: []Answer{create, answered(Get, "c", http.StatusNotFound)},
			want:    []string{FalseRefusal},
		},
		"read what never was": {
			history: boundAndSeen,
			answers: []Answer{create, answered(Get, "c", http.StatusOK, with(5, claim("c", "")))},
			want:    []string{FalseAnswer},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, violations := replay(tc.history...)
			checkRules(t, violations)
			checkRules(t, CheckAnswers(r, tc.answers), tc.want...)
		})
	}
}

func TestClaimOfDismissedSandboxNeedNotSayThatItIsReady(t *testing.T) {
	r, _ := replay(start(at(claim("c", "s"), claimed("s", "c")))...)
	r.Dismiss("sandbox-s")
	checkRules(t, CheckAnswers(r, []Answer{answered(Create, "c", http.StatusCreated, with(4, claim("c", "s")))}))
}
