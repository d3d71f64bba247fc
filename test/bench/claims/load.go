// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// load says how many requests are made, and how they follow each other.
type load struct {
	count int
	// perSecond is the rate at which requests begin, whatever becomes of those before. Where it is 0, inFlight decides.
	perSecond float64
	// inFlight is the number of requests that are made at the same time: each time one is done, the next begins.
	inFlight int
}

// run calls do for each request, and returns when all are done or, after the end of the context, those that have begun. A request counts
// from begin. At a fixed rate that is when it was due, even if the machine was too busy to begin it then: who waits does not care why.
func (l load) run(ctx context.Context, do func(i int, begin time.Time)) {
	if l.perSecond > 0 {
		l.runAtRate(ctx, do)
		return
	}
	var begun atomic.Int64
	var workers sync.WaitGroup
	for range min(l.inFlight, l.count) {
		workers.Go(func() {
			for ctx.Err() == nil {
				i := int(begun.Add(1)) - 1
				if i >= l.count {
					return
				}
				do(i, time.Now())
			}
		})
	}
	workers.Wait()
}

func (l load) runAtRate(ctx context.Context, do func(i int, begin time.Time)) {
	var requests sync.WaitGroup
	defer requests.Wait()
	start := time.Now()
	for i := range l.count {
		due := start.Add(time.Duration(float64(i) / l.perSecond * float64(time.Second)))
		if !sleepUntil(ctx, due) {
			return
		}
		requests.Go(func() { do(i, due) })
	}
}

// timerSlack is more than timers are late on a machine that is not busy: about half a millisecond, which would be a tenth of what is
// measured.
const timerSlack = 2 * time.Millisecond

// sleepUntil returns false if the context ended before.
func sleepUntil(ctx context.Context, due time.Time) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(time.Until(due) - timerSlack):
	}
	// The kernel is more exact. An interruption makes the request begin early, by no more than the slack.
	if left := time.Until(due); left > 0 {
		rest := syscall.NsecToTimespec(left.Nanoseconds())
		_ = syscall.Nanosleep(&rest, nil)
	}
	return true
}

// atMost returns the same load with no more requests than that.
func (l load) atMost(count int) load {
	l.count = min(l.count, count)
	return l
}
