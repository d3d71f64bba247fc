// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"net/http"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

// Rules about what clients were told.
const (
	// FalseAnswer is broken by an answer with an object that was never stored like that.
	FalseAnswer = "FalseAnswer"
	// FalseRefusal is broken by a request that was refused and took effect, or was refused for something that is not true.
	FalseRefusal = "FalseRefusal"
	// DryRunStored is broken by a dry run that took effect.
	DryRunStored = "DryRunStored"
	// CreatedTwice is broken by two claims that one request made.
	CreatedTwice = "CreatedTwice"
	// Unasked is broken by a claim that nobody asked for, and by the deletion of one that nobody asked for.
	Unasked = "Unasked"
	// NotDeleted is broken by a claim that is there although its deletion was confirmed.
	NotDeleted = "NotDeleted"
	// NoLaterEvent is broken by a claim that was ready in the answer to its creation, and of which whoever watches from there on never
	// sees an event that says so.
	NoLaterEvent = "NoLaterEvent"
)

// Verb is what a client asked for.
type Verb string

// Verbs of requests about claims.
const (
	Create Verb = "create"
	DryRun Verb = "create as dry run"
	Delete Verb = "delete"
	Get    Verb = "get"
)

// Unknown is the code of a request without an answer, or with one that leaves open what became of it.
const Unknown = 0

// Answer is what a client was told about a claim.
type Answer struct {
	Verb Verb
	// Server is who was asked.
	Server string
	// Attempt names a request that creates; see AttemptAnnotation.
	Attempt string
	Key     Key
	// UID is that of the claim that was to be deleted or read.
	UID types.UID
	// Code is the status of HTTP.
	Code int
	// Revision and Object are what was answered.
	Revision int64
	Object   *Object
}

func (a Answer) String() string {
	return fmt.Sprintf("%s %s at %s (attempt %q): %d, revision %d, %s", a.Verb, a.Key, a.Server, a.Attempt, a.Code, a.Revision, a.Object)
}

// life is the whole life of a claim.
type life struct {
	Key
	attempt          string
	expires          bool
	created, deleted int64
}

// CheckAnswers holds what clients were told against the record. Nothing must be under way any more.
func CheckAnswers(r *Record, answers []Answer) []Violation {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &answerCheck{Record: r, lives: r.lives(), attempts: map[string][]types.UID{}}
	for uid, life := range c.lives {
		c.attempts[life.attempt] = append(c.attempts[life.attempt], uid)
	}
	asked, dismissed := map[string]bool{}, map[types.UID]bool{}
	for _, a := range answers {
		switch a.Verb {
		case Create:
			asked[a.Attempt] = a.Code == Unknown || a.Code == http.StatusCreated
			c.created(a)
		case DryRun:
			if uids := c.attempts[a.Attempt]; len(uids) > 0 {
				c.violate(DryRunStored, c.lives[uids[0]].Key, "%s made %v", a, uids)
			}
		case Delete:
			dismissed[a.UID] = dismissed[a.UID] || a.Code == Unknown || a.Code == http.StatusOK
			c.gone(NotDeleted, a, http.StatusOK, http.StatusNotFound)
		case Get:
			c.stored(a, http.StatusOK)
			c.gone(FalseRefusal, a, http.StatusNotFound)
		}
	}
	for uid, life := range c.lives {
		if !asked[life.attempt] {
			c.violate(Unasked, life.Key, "%s of UID %s was made by attempt %q, which nobody made or which was refused", life.Key, uid, life.attempt)
		}
		if life.deleted != 0 && !dismissed[uid] && !life.expires {
			c.violate(Unasked, life.Key, "%s of UID %s was deleted, and nobody asked for that", life.Key, uid)
		}
	}
	return c.violations
}

// lives returns the lives of all claims.
func (r *Record) lives() map[types.UID]life {
	lives := map[types.UID]life{}
	for key, versions := range r.versions {
		if key.Resource != Claims {
			continue
		}
		var last types.UID
		for _, v := range versions {
			switch {
			case v.Object == nil:
				ended := lives[last]
				ended.deleted = v.Revision
				lives[last] = ended
			case v.Object.UID != last:
				last = v.Object.UID
				lives[last] = life{Key: key, attempt: v.Object.Claim.Attempt, expires: v.Object.Claim.Expires, created: v.Revision}
			}
		}
	}
	return lives
}

type answerCheck struct {
	*Record
	lives map[types.UID]life
	// attempts has the claims that each request made.
	attempts   map[string][]types.UID
	violations []Violation
}

func (c *answerCheck) violate(rule string, key Key, format string, args ...any) {
	c.violations = append(c.violations, Violation{Rule: rule, Text: fmt.Sprintf(format, args...), Keys: []Key{key}})
}

// created judges the answer to a creation.
func (c *answerCheck) created(a Answer) {
	made := c.attempts[a.Attempt]
	if len(made) > 1 {
		c.violate(CreatedTwice, a.Key, "%s made %v", a, made)
	}
	c.stored(a, http.StatusCreated)
	switch a.Code {
	case Unknown:
	case http.StatusCreated:
		if a.Object.Claim.Ready && !c.saysLater(a) {
			c.violate(NoLaterEvent, a.Key, "nothing was written after %s", a)
		}
	case http.StatusConflict:
		if len(c.versions[a.Key]) == 0 {
			c.violate(FalseRefusal, a.Key, "%s, and there never was one", a)
		}
		fallthrough
	default:
		if len(made) > 0 {
			c.violate(FalseRefusal, c.lives[made[0]].Key, "%s, and it made %v", a, made)
		}
	}
}

// stored judges an answer with an object.
func (c *answerCheck) stored(a Answer, code int) {
	if a.Code != code {
		return
	}
	if diff := cmp.Diff(c.at(a.Key, a.Revision), a.Object); diff != "" || !c.writtenAt(a.Key, a.Revision) {
		c.violate(FalseAnswer, a.Key, "%s\nwas not stored like that (-stored +answered):\n%s", a, diff)
	}
}

func (r *Record) writtenAt(key Key, revision int64) bool {
	for _, v := range r.versions[key] {
		if v.Revision == revision {
			return true
		}
	}
	return false
}

// saysLater says whether the claim of an answer was written again as ready, or there was no time for that.
func (c *answerCheck) saysLater(a Answer) bool {
	if c.lives[a.Object.UID].deleted != 0 || c.dismissed[c.boxOf[a.Object.UID].UID] {
		return true
	}
	for _, v := range c.versions[a.Key] {
		if v.Revision > a.Revision && v.Object != nil && v.Object.Claim.Ready {
			return true
		}
	}
	return false
}

// gone judges an answer that says that a claim is gone, by one of some codes.
func (c *answerCheck) gone(rule string, a Answer, codes ...int) {
	for _, code := range codes {
		if life, known := c.lives[a.UID]; a.Code == code && known && life.deleted == 0 {
			c.violate(rule, a.Key, "%s, and it was never deleted", a)
		}
	}
}
