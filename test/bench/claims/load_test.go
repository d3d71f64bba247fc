// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// request is when a request began, and when it was made, since the start.
type request struct{ Begin, Made time.Duration }

func TestLoad(t *testing.T) {
	const second = time.Second
	for name, test := range map[string]struct {
		load load
		want map[int]request
	}{
		"at a rate, however long requests take": {
			load{count: 4, perSecond: 2},
			map[int]request{0: {}, 1: {second / 2, second / 2}, 2: {second, second}, 3: {3 * second / 2, 3 * second / 2}},
		},
		"one after the other": {
			load{count: 3, inFlight: 1},
			map[int]request{0: {}, 1: {10 * second, 10 * second}, 2: {20 * second, 20 * second}},
		},
		"two at a time": {
			load{count: 3, inFlight: 2},
			map[int]request{0: {}, 1: {}, 2: {10 * second, 10 * second}},
		},
		"all at once": {
			load{count: 2, inFlight: 5},
			map[int]request{0: {}, 1: {}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := runLoad(t.Context(), test.load, 10*second)
				// Those that begin at the same time may take any order.
				if diff := cmp.Diff(count(test.want), count(got)); diff != "" || len(got) != len(test.want) {
					t.Errorf("requests (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// runLoad runs a load of requests that each take a while.
func runLoad(ctx context.Context, l load, each time.Duration) map[int]request {
	start := time.Now()
	var mutex sync.Mutex
	requests := map[int]request{}
	l.run(ctx, func(i int, begin time.Time) {
		mutex.Lock()
		// The end of a wait is left to the kernel, which knows nothing of the clock of the test.
		requests[i] = request{begin.Sub(start), time.Since(start).Round(2 * timerSlack)}
		mutex.Unlock()
		<-time.After(each)
	})
	return requests
}

func count(requests map[int]request) map[request]int {
	counts := map[request]int{}
	for _, request := range requests {
		counts[request]++
	}
	return counts
}

// A generator that is held up must not hide how long requests waited.
func TestRequestsCountFromWhenTheyWereDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		begins := make(chan time.Duration, 3)
		load{count: 3, perSecond: 1}.run(t.Context(), func(_ int, begin time.Time) {
			<-time.After(time.Minute)
			begins <- begin.Sub(start)
		})
		close(begins)
		var got []time.Duration
		for begin := range begins {
			got = append(got, begin)
		}
		if diff := cmp.Diff([]time.Duration{0, time.Second, 2 * time.Second}, got); diff != "" {
			t.Errorf("begins (-want +got):\n%s", diff)
		}
	})
}

func TestLoadEndsWithItsContext(t *testing.T) {
	for name, l := range map[string]load{
		"at a rate":           {count: 100, perSecond: 1},
		"one after the other": {count: 100, inFlight: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
				defer cancel()
				if got := len(runLoad(ctx, l, time.Second)); got != 3 {
					t.Errorf("%d requests in two and a half seconds", got)
				}
			})
		})
	}
}
