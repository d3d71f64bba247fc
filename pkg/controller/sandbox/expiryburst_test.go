// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	ktesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
)

const (
	burstSize = 500
	// burstSeconds is how many different shutdown times there are.
	burstSeconds = 3
)

// burst is many Sandboxes that expire one shortly after the other, the first at a given time, and what is seen of it.
type burst struct {
	*fixture
	clock clock.PassiveClock
	first time.Time

	mu sync.Mutex
	// resting are the Sandboxes that have had their first pass.
	resting map[string]bool
	// announced holds how long after its shutdown time the expiry of each Sandbox was announced.
	announced map[string]time.Duration
}

func newBurst(tb testing.TB, clock clock.WithTicker, first time.Time) *burst {
	tb.Helper()
	b := &burst{fixture: newFixtureWithClock(tb, clock), clock: clock, first: first, resting: map[string]bool{}, announced: map[string]time.Duration{}}
	for i := range burstSize {
		// The API knows whole seconds only.
		at := first.Add(time.Duration(i%burstSeconds) * time.Second)
		policy := agentsv1beta1.ShutdownPolicyRetain
		if i%2 == 0 {
			policy = agentsv1beta1.ShutdownPolicyDelete
		}
		// Suspended, so that there is nothing to do for them until they expire.
		b.OnServer(testSandbox(suspend, shutdownAt(at, policy), func(s *agentsv1beta1.Sandbox) {
			s.Name, s.UID = fmt.Sprintf("s%d", i), types.UID(fmt.Sprintf("uid-%d", i))
		}))
	}
	b.Server.PrependReactor("patch", "sandboxes", b.observe)
	return b
}

// observe notes whose status is written, and when it announces an expiry.
func (b *burst) observe(action ktesting.Action) (bool, runtime.Object, error) {
	patch, ok := action.(ktesting.PatchAction)
	if !ok {
		return false, nil, nil
	}
	object, err := b.Server.Tracker().Get(agentsv1beta1.SchemeGroupVersion.WithResource("sandboxes"), patch.GetNamespace(), patch.GetName())
	if err != nil {
		return true, nil, err
	}
	sandbox := object.(*agentsv1beta1.Sandbox)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.resting[sandbox.Name] = true
	announces := bytes.Contains(patch.GetPatch(), []byte(agentsv1beta1.SandboxReasonExpired))
	if _, again := b.announced[sandbox.Name]; announces && !again {
		b.announced[sandbox.Name] = b.clock.Now().Sub(sandbox.Spec.ShutdownTime.Time)
	}
	return false, nil, nil
}

// counts returns how many Sandboxes have had their first pass, and how many expiries were announced.
func (b *burst) counts() (resting, announced int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.resting), len(b.announced)
}

func (b *burst) allRest() bool {
	resting, _ := b.counts()
	return resting == burstSize
}

func (b *burst) allAnnounced() bool {
	_, announced := b.counts()
	return announced == burstSize
}

// announcedAll says whether as many expiries were announced as are due at the given time.
func (b *burst) announcedAll(now time.Time) bool {
	due := 0
	for i := range burstSize {
		if !now.Before(b.first.Add(time.Duration(i%burstSeconds) * time.Second)) {
			due++
		}
	}
	_, announced := b.counts()
	return announced >= due
}

// lateness returns the shortest and the longest time from a shutdown time to the announcement of the expiry.
func (b *burst) lateness() (shortest, longest time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	shortest = time.Hour
	for _, late := range b.announced {
		shortest, longest = min(shortest, late), max(longest, late)
	}
	return shortest, longest
}

func TestManyExpiriesAtOnceAreEachDueToTheMoment(t *testing.T) {
	const (
		step  = 20 * time.Millisecond
		first = 2 * time.Second
	)
	standing := clocktesting.NewFakeClock(testTime())
	b := newBurst(t, standing, testTime().Add(first))
	b.run()
	b.Eventually("all rest", b.allRest)
	for !b.allAnnounced() && standing.Since(testTime()) < first+2*burstSeconds*time.Second {
		standing.Step(step)
		// Whoever is not heard of by the end of the wait is late by the steps that follow.
		_ = wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 100*time.Millisecond, true, func(context.Context) (bool, error) {
			return b.announcedAll(standing.Now()), nil
		})
	}
	if !b.allAnnounced() {
		t.Error("some did not expire")
	}
	if shortest, longest := b.lateness(); shortest < 0 || longest > time.Second {
		t.Errorf("expiries came between %v and %v after their time", shortest, longest)
	}
}

// BenchmarkManyExpiriesAtOnce reports how late, by the real clock, the last of many expiries is.
func BenchmarkManyExpiriesAtOnce(bench *testing.B) {
	for range bench.N {
		b := newBurst(bench, clock.RealClock{}, time.Now().Add(4*time.Second).Truncate(time.Second))
		b.run()
		b.Eventually("all expire", b.allAnnounced)
		_, longest := b.lateness()
		bench.ReportMetric(float64(longest.Milliseconds()), "ms-late")
	}
}
