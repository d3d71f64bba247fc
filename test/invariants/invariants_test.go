// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/invariants/history"
)

const (
	// settleTimeout is how long everything may take to come to rest. The garbage collector deletes some ten objects in a second.
	settleTimeout = 5 * time.Minute
	// shown is how many violations are explained. More of them mostly follow from the first ones.
	shown = 5
)

// TestC3Invariants is case C3, and W7, C11 and C14 under faults.
func TestC3Invariants(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	f := newFleet(t)
	r := newRun(t, f)
	f.start(t)
	r.progress("%d servers and the controller are ready", replicas)
	r.prepare(random)
	r.load(random)
	r.settle()
	r.judge()
}

// run is a run of the test.
type run struct {
	*testing.T
	*fleet
	began    time.Time
	recorder *recorder
	clients  *load
	operator *operator
	watchers []*watcher
	// watching ends the watchers.
	watching context.CancelFunc
	watched  sync.WaitGroup

	mu         sync.Mutex
	violations []history.Violation
	// broken is closed when there is a violation.
	broken context.Context
	stop   context.CancelCauseFunc
}

// newRun begins to record.
func newRun(t *testing.T, f *fleet) *run {
	r := &run{T: t, fleet: f, began: time.Now(), recorder: &recorder{Record: history.NewRecord(), etcd: f.etcd}}
	r.broken, r.stop = context.WithCancelCause(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	var recording sync.WaitGroup
	recording.Go(func() {
		if err := r.recorder.run(ctx, r.violated); err != nil {
			r.stop(fmt.Errorf("the record is not complete: %w", err))
		}
	})
	t.Cleanup(func() {
		cancel()
		recording.Wait()
	})
	return r
}

// progress logs what happens, and how far the record is then.
func (r *run) progress(format string, args ...any) {
	r.Logf("%6.1fs revision %d: %s", time.Since(r.began).Seconds(), r.recorder.revision.Load(), fmt.Sprintf(format, args...))
}

// violated notes violations, and ends the run.
func (r *run) violated(violations ...history.Violation) {
	if len(violations) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.violations = append(r.violations, violations...)
	r.stop(errors.New("an invariant is broken"))
}

// check fails the test if anything is wrong by now, and explains it.
func (r *run) check() {
	r.Helper()
	r.mu.Lock()
	violations := slices.Clone(r.violations)
	r.mu.Unlock()
	for i, violation := range violations {
		if i == shown {
			r.Errorf("and %d more", len(violations)-shown)
			break
		}
		var text strings.Builder
		r.recorder.Write(&text, violation.Keys...)
		for _, a := range r.clients.about(violation.Keys) {
			fmt.Fprintln(&text, "  answered:", a)
		}
		r.Errorf("%s\n%s", violation, &text)
	}
	if r.broken.Err() != nil {
		r.Fatal(context.Cause(r.broken))
	}
}

// about returns the answers about some objects.
func (l *load) about(keys []history.Key) []history.Answer {
	l.mu.Lock()
	defer l.mu.Unlock()
	var answers []history.Answer
	for _, a := range l.answers {
		if slices.Contains(keys, a.Key) {
			answers = append(answers, a)
		}
	}
	return answers
}

// prepare makes the pools and waits until they are full, while watchers watch from before the first claim on.
func (r *run) prepare(random *rand.Rand) {
	r.Helper()
	r.clients = &load{servers: r.servers, recorder: r.recorder, limiter: newLimiter(), fail: r.violated}
	r.operator = &operator{load: r.clients, random: fork(random)}
	ctx, cancel := context.WithCancel(r.Context())
	r.watching = cancel
	for home := range r.servers {
		for _, resource := range []string{history.Claims, history.Sandboxes} {
			w := &watcher{resource: resource, servers: r.servers, home: home, random: fork(random)}
			r.watchers = append(r.watchers, w)
			r.watched.Go(func() { w.run(ctx) })
		}
	}
	r.Cleanup(func() {
		cancel()
		r.watched.Wait()
	})
	r.operator.create(r, r.admin.Kube)
	r.await("full pools", poolsOf(false)...)
}

// load creates and deletes claims until there were enough, and spoils things meanwhile.
func (r *run) load(random *rand.Rand) {
	r.Helper()
	ctx, cancel := context.WithCancel(r.broken)
	defer cancel()
	var working sync.WaitGroup
	for i := range workers {
		w := &worker{load: r.clients, name: fmt.Sprintf("c%d", i), random: fork(random)}
		working.Go(func() { w.run(ctx) })
	}
	working.Go(func() { r.operator.run(ctx) })
	s := &saboteur{fleet: r.fleet, random: fork(random), progress: r.progress, done: map[string]int{}}
	working.Go(func() {
		if err := s.run(ctx); err != nil {
			r.stop(err)
		}
	})
	err := waitForClaims(ctx, r.recorder, func(stats history.Stats) { r.progress("%+v", stats) })
	cancel()
	working.Wait()
	r.progress("done with %+v; faults %v", r.recorder.Stats(), s.done)
	r.check()
	if err != nil {
		r.Fatal(err)
	}
}

// settle makes all pools what they are to be in the end, and waits until everything is as it must be.
func (r *run) settle() {
	r.Helper()
	for _, plan := range pools {
		framework.Eventually(r, framework.Patience, "finishing the pools", func(ctx context.Context) error {
			return r.operator.finish(ctx, r.servers[0], plan)
		})
	}
	r.await("everything at rest", pools...)
}

// await waits until nothing is unsettled of some pools and of what came out of them.
func (r *run) await(what string, of ...*poolPlan) {
	r.Helper()
	var left []history.Violation
	deadline := time.After(settleTimeout)
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		if left = r.unsettled(of); len(left) == 0 {
			r.progress("%s: %+v", what, r.recorder.Stats())
			return
		}
		select {
		case <-ticker.C:
		case <-r.broken.Done():
			r.check()
		case <-deadline:
			r.violated(left...)
			r.check()
		}
	}
}

// unsettled returns what is not as it must be of some pools, and of Sandboxes and claims.
func (r *run) unsettled(of []*poolPlan) []history.Violation {
	wanted := map[history.Key]bool{}
	for _, plan := range of {
		wanted[plan.key()] = true
	}
	left := slices.DeleteFunc(history.Unsettled(r.recorder.Record), func(v history.Violation) bool {
		return v.Rule == history.WrongPoolSize && !wanted[v.Keys[0]]
	})
	present := r.recorder.Present(history.Pools)
	for key := range wanted {
		if present[key] == nil {
			left = append(left, history.Violation{Rule: history.WrongPoolSize, Text: fmt.Sprintf("%s is not there", key), Keys: []history.Key{key}})
		}
	}
	return left
}

// judge checks all that can only be judged in the end.
func (r *run) judge() {
	r.Helper()
	r.checkPods()
	for _, at := range r.servers {
		for _, resource := range []string{history.Claims, history.Sandboxes} {
			for _, version := range []string{"", "0"} {
				listed, err := list(r.Context(), at, resource, version)
				if err != nil {
					r.Fatalf("listing %s at %s: %v", resource, at.name, err)
				}
				r.recorder.catchUp(r)
				r.violated(history.CheckList(r.recorder.Record, listed)...)
			}
		}
	}
	r.violated(history.CheckAnswers(r.recorder.Record, r.clients.answers)...)
	r.judgeWatches()
	r.check()
	r.judgeCoverage()
}

// judgeWatches waits until every watcher has seen the last event, and judges what it saw.
func (r *run) judgeWatches() {
	r.Helper()
	for _, w := range r.watchers {
		last := r.recorder.Last(w.resource)
		framework.Eventually(r, framework.Patience, "watches that come to the end", func(context.Context) error { return w.caughtUp(last) })
	}
	r.watching()
	r.watched.Wait()
	r.recorder.catchUp(r)
	watches := 0
	for _, w := range r.watchers {
		watches += len(w.watches)
		for _, seen := range w.watches {
			r.violated(history.CheckList(r.recorder.Record, seen)...)
			r.violated(history.CheckWatch(r.recorder.Record, seen)...)
		}
	}
	r.progress("%d watchers saw %d uninterrupted sequences", len(r.watchers), watches)
}

// judgeCoverage fails the test if it did not try what it is for.
func (r *run) judgeCoverage() {
	r.Helper()
	stats := r.recorder.Stats()
	if stats.AtOnce < stats.Claims/10 {
		r.Errorf("only %d of %d claims were bound in their creation", stats.AtOnce, stats.Claims)
	}
	unknown := 0
	for _, a := range r.clients.answers {
		if a.Code == history.Unknown {
			unknown++
		}
	}
	r.progress("%d of %d answers were lost", unknown, len(r.clients.answers))
	if unknown == 0 {
		r.Error("no answer was lost")
	}
}

// checkPods fails the test unless each Sandbox has one Pod.
func (r *run) checkPods() {
	r.Helper()
	pods, err := r.admin.Kube.CoreV1().Pods("").List(r.Context(), metav1.ListOptions{})
	if err != nil {
		r.Fatal(err)
	}
	podsOf := map[types.UID]int{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if owner := metav1.GetControllerOf(pod); owner != nil && pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning {
			podsOf[owner.UID]++
		}
	}
	for key, sandbox := range r.recorder.Present(history.Sandboxes) {
		if n := podsOf[sandbox.UID]; n != 1 {
			r.violated(history.Violation{Rule: "Pods", Text: fmt.Sprintf("%s has %d Pods", key, n), Keys: []history.Key{key}})
		}
	}
}
