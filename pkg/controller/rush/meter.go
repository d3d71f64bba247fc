// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package rush tells when claims come so fast that what need not be done at once should wait. A claim that was bound in its own request has
// all that its maker asked for; what controllers write about it afterwards would only slow down the claims that follow.
package rush

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
)

const (
	// It is a rush while the last crowd claims have come within window, that is at more than 100 claims per second.
	crowd  = 25
	window = 250 * time.Millisecond
	// pause is how long to wait before looking again, and half as much again at most, so that not all look at once.
	pause = 400 * time.Millisecond
)

// Meter watches how fast claims come. It is safe for concurrent use.
type Meter struct {
	clock clock.PassiveClock

	mu sync.Mutex
	// arrivals are the times of the last claims, in a ring; next is the place of the oldest.
	arrivals [crowd]time.Time
	next     int
}

// NewMeter returns a Meter that no claim has passed yet.
func NewMeter(clock clock.PassiveClock) *Meter { return &Meter{clock: clock} }

// Note notes that a claim has come.
func (m *Meter) Note() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.arrivals[m.next] = m.clock.Now()
	m.next = (m.next + 1) % crowd
}

// Delay returns after which time to ask again, or 0 if there is no rush.
func (m *Meter) Delay() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.clock.Since(m.arrivals[m.next]) > window {
		return 0
	}
	return wait.Jitter(pause, 0.5)
}
