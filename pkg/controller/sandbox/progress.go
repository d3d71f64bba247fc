// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// How long a status write that may wait is held back, so that it can be merged with what follows.
const (
	// statusDelay is for all that somebody may want to know of.
	statusDelay = time.Second
	// routineDelay is for a Pod that is on its way as it should be: longer than that takes where many start at once.
	routineDelay = 10 * time.Second
)

// progress remembers, between passes, what cannot be read from the objects. All of it may be lost without harm. It is safe for
// concurrent use.
type progress struct {
	mu sync.Mutex
	// heldSince is when the first of the held back status writes of a Sandbox was due.
	heldSince map[types.UID]time.Time
}

func newProgress() *progress {
	return &progress{heldSince: map[types.UID]time.Time{}}
}

// hold returns how long a status write is to be held back from now on, or 0 if it was held for the delay.
func (p *progress) hold(uid types.UID, now time.Time, delay time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	since, held := p.heldSince[uid]
	if !held {
		since = now
		p.heldSince[uid] = since
	}
	return max(0, delay-now.Sub(since))
}

// written notes that the status is up to date.
func (p *progress) written(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.heldSince, uid)
}

func (p *progress) forget(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.heldSince, uid)
}
