// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"io"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Transaction is what was written at one revision.
type Transaction struct {
	Revision int64
	Changes  []Change
}

// Change is one write. Object is nil if it was a deletion.
type Change struct {
	Key    Key
	Object *Object
}

// Violation is that something is not as it must be.
type Violation struct {
	// Rule names what is violated.
	Rule string
	// Text tells how.
	Text string
	// Keys are the objects whose history explains it.
	Keys []Key
}

func (v Violation) String() string { return v.Rule + ": " + v.Text }

// Version is what a key held from a revision on. Object is nil if there was none.
type Version struct {
	Revision int64
	Object   *Object
}

// Record is all that a storage held since it was empty. Its methods may be called at the same time.
type Record struct {
	mu       sync.Mutex
	present  map[Key]*Object
	versions map[Key][]Version
	// written has the keys of the changes of each resource, in the order of their revisions.
	written map[string][]write
	// claims has the claims that are present.
	claims map[types.UID]Key
	// claimOf has, of each Sandbox that ever had a claim for its controller, the first of them, and boxOf the other way round.
	claimOf map[types.UID]types.UID
	boxOf   map[types.UID]box
	// peaks has the highest number of replicas that each pool was ever asked for.
	peaks map[types.UID]int32
	// dismissed are Sandboxes that somebody may delete while they have a claim.
	dismissed map[types.UID]bool
	stats     Stats
}

type write struct {
	revision int64
	key      Key
}

// box is a Sandbox at its key.
type box struct {
	Key
	UID types.UID
}

// Stats counts what happened.
type Stats struct {
	// Claims is the number of claims ever stored. AtOnce of them were stored with the Sandbox of a pool, Later of them were given one
	// afterwards, and Cold of them had a Sandbox made for them.
	Claims, AtOnce, Later, Cold int
	// Deleted is the number of claims that are gone.
	Deleted int
	// Overshoot is the highest number of idle members of a pool beyond the highest number that the pool was asked for.
	Overshoot int
	// Reserved is the number of times that a Sandbox was reserved for a claim.
	Reserved int
}

// NewRecord returns the record of an empty storage.
func NewRecord() *Record {
	return &Record{
		present: map[Key]*Object{}, versions: map[Key][]Version{}, written: map[string][]write{}, claims: map[types.UID]Key{},
		claimOf: map[types.UID]types.UID{}, boxOf: map[types.UID]box{}, peaks: map[types.UID]int32{}, dismissed: map[types.UID]bool{},
	}
}

// Dismiss says that a Sandbox is going to be deleted by somebody who may do that, whether it has a claim or not.
func (r *Record) Dismiss(sandbox types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dismissed[sandbox] = true
}

// Apply adds what was written next, and returns how that violates the rules.
func (r *Record) Apply(transaction Transaction) []Violation {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &step{Record: r, revision: transaction.Revision}
	for _, change := range transaction.Changes {
		s.changes = append(s.changes, changed{change.Key, r.present[change.Key], change.Object})
		r.store(transaction.Revision, change)
	}
	for _, rule := range rules {
		rule(s)
	}
	return s.violations
}

func (r *Record) store(revision int64, change Change) {
	before := r.present[change.Key]
	if before != nil && before.Claim != nil {
		delete(r.claims, before.UID)
	}
	if change.Object == nil {
		delete(r.present, change.Key)
	} else {
		r.present[change.Key] = change.Object
		if change.Object.Claim != nil {
			r.claims[change.Object.UID] = change.Key
		}
		if pool := change.Object.Pool; pool != nil {
			r.peaks[change.Object.UID] = max(r.peaks[change.Object.UID], pool.Replicas)
		}
	}
	r.versions[change.Key] = append(r.versions[change.Key], Version{revision, change.Object})
	r.written[change.Key.Resource] = append(r.written[change.Key.Resource], write{revision, change.Key})
}

// Stats returns the counts so far.
func (r *Record) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stats
}

// Present returns the objects of a resource that are stored now.
func (r *Record) Present(resource string) map[Key]*Object {
	r.mu.Lock()
	defer r.mu.Unlock()
	objects := map[Key]*Object{}
	for key, object := range r.present {
		if key.Resource == resource {
			objects[key] = object
		}
	}
	return objects
}

// Last returns the revision of the last write of an object of a resource, or 0.
func (r *Record) Last(resource string) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.written[resource]); n > 0 {
		return r.written[resource][n-1].revision
	}
	return 0
}

// at returns what a key held at a revision.
func (r *Record) at(key Key, revision int64) *Object {
	versions := r.versions[key]
	after, exact := slices.BinarySearchFunc(versions, revision, func(v Version, revision int64) int { return int(v.Revision - revision) })
	switch {
	case exact:
		return versions[after].Object
	case after == 0:
		return nil
	}
	return versions[after-1].Object
}

// Write writes the histories of some objects, for people.
func (r *Record) Write(to io.Writer, keys ...Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range keys {
		fmt.Fprintln(to, key)
		for _, version := range r.versions[key] {
			fmt.Fprintf(to, "  %d %s\n", version.Revision, version.Object)
		}
	}
}
