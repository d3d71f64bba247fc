// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxclaim

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
)

// firstSeen holds when claims of whose start nothing was told yet were first seen. It may be lost: claims that were there before the process
// are not in it, and their startup is not measured. It is safe for concurrent use.
type firstSeen struct {
	mu sync.Mutex
	at map[types.UID]time.Time
}

func newFirstSeen() *firstSeen { return &firstSeen{at: map[types.UID]time.Time{}} }

func (f *firstSeen) note(uid types.UID, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.at[uid]; !ok {
		f.at[uid] = now
	}
}

func (f *firstSeen) forget(uid types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.at, uid)
}

// when returns when the claim was first seen, or its creation if that was before the process, and which of them it is.
func (f *firstSeen) when(claim *extensionsv1beta1.SandboxClaim) (at time.Time, seen bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if at, ok := f.at[claim.UID]; ok {
		return at, true
	}
	return claim.CreationTimestamp.Time, false
}

// waiting holds the claims that wait for a member of their pool to become ready. Each member that does wakes one of them, the one that
// has waited longest: if it woke all, all would ask for the one member. It is safe for concurrent use.
type waiting struct {
	mu     sync.Mutex
	pools  map[cache.ObjectName]map[cache.ObjectName]time.Time
	poolOf map[cache.ObjectName]cache.ObjectName
}

func newWaiting() *waiting {
	return &waiting{pools: map[cache.ObjectName]map[cache.ObjectName]time.Time{}, poolOf: map[cache.ObjectName]cache.ObjectName{}}
}

// add lets a claim wait that was first seen at a time. It must wait before it looks for members, or it may miss one.
func (w *waiting) add(pool, claim cache.ObjectName, since time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(claim)
	if w.pools[pool] == nil {
		w.pools[pool] = map[cache.ObjectName]time.Time{}
	}
	w.pools[pool][claim] = since
	w.poolOf[claim] = pool
}

// remove ends the waiting of a claim.
func (w *waiting) remove(claim cache.ObjectName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(claim)
}

func (w *waiting) drop(claim cache.ObjectName) {
	pool, ok := w.poolOf[claim]
	if !ok {
		return
	}
	delete(w.poolOf, claim)
	delete(w.pools[pool], claim)
	if len(w.pools[pool]) == 0 {
		delete(w.pools, pool)
	}
}

// next removes the claim that has waited longest for a member of the pool, and returns it.
func (w *waiting) next(pool cache.ObjectName) (claim cache.ObjectName, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var longest time.Time
	for name, since := range w.pools[pool] {
		if !ok || since.Before(longest) {
			claim, longest, ok = name, since, true
		}
	}
	w.drop(claim)
	return claim, ok
}

// coldStart is what this process knows of the Sandbox that is being made for a claim.
type coldStart struct {
	// claim is the UID of the claim.
	claim types.UID
	// open says that there may be a request to make it that nobody waits for any more. It may be carried out yet.
	open bool
	// refusedAt is when, after that request, another was refused for the first time. Zero means that none was.
	refusedAt time.Time
	// made says that the Sandbox has been there.
	made bool
}

// coldStarts holds the cold starts that this process has begun or taken over. It may be lost: they are taken over then. It is safe for
// concurrent use.
type coldStarts struct {
	mu     sync.Mutex
	byName map[cache.ObjectName]coldStart
}

func newColdStarts() *coldStarts { return &coldStarts{byName: map[cache.ObjectName]coldStart{}} }

// of returns the cold start of the claim, and says false if this process does not know of one.
func (c *coldStarts) of(claim *extensionsv1beta1.SandboxClaim) (start coldStart, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	start, known = c.byName[cache.MetaObjectToName(claim)]
	if !known || start.claim != claim.UID {
		return coldStart{}, false
	}
	return start, true
}

func (c *coldStarts) note(claim *extensionsv1beta1.SandboxClaim, start coldStart) {
	c.mu.Lock()
	defer c.mu.Unlock()
	start.claim = claim.UID
	c.byName[cache.MetaObjectToName(claim)] = start
}

func (c *coldStarts) forget(claim cache.ObjectName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byName, claim)
}
