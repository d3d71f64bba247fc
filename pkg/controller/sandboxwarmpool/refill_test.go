// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxwarmpool

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
)

// moment is one time that members are asked for: how many claims have taken some since the time before, and what next is to say.
type moment struct {
	at     time.Duration
	taken  int
	demand demand
	count  int
	wait   time.Duration
}

// full returns the demand of a pool that lacks so many members, and of which all others are ready.
func full(replicas, missing int) demand {
	return demand{replicas: replicas, members: replicas - missing, ready: replicas - missing}
}

func TestRefill(t *testing.T) {
	const second, ms = time.Second, time.Millisecond
	plain := Limits{MaxBatchSize: 300}
	for name, test := range map[string]struct {
		limits  Limits
		moments []moment
	}{
		"a full pool": {plain, []moment{{demand: full(10, 0)}}},
		"a new pool is filled at once, in batches": {plain, []moment{
			{demand: full(500, 500), count: 300},
			{demand: full(500, 200), count: 200},
		}},
		"a pool that is scaled up is filled at once, claims or not": {plain, []moment{
			{taken: 4, demand: full(104, 4), wait: 500 * ms},
			{at: 10 * ms, demand: full(204, 104), count: 100, wait: 490 * ms},
		}},
		"members that were deleted are replaced at once": {plain, []moment{{demand: full(100, 10), count: 10}}},
		"claimed members are replaced when claims pause": {plain, []moment{
			{taken: 10, demand: full(100, 10), wait: 500 * ms},
			{at: 400 * ms, taken: 5, demand: full(100, 15), wait: 500 * ms},
			{at: 899 * ms, demand: full(100, 15), wait: ms},
			{at: 900 * ms, demand: full(100, 15), count: 15},
		}},
		"many claimed members are replaced in batches, to see whether claims come again": {plain, []moment{
			{taken: 200, demand: full(500, 200), wait: 500 * ms},
			{at: 500 * ms, demand: full(500, 200), count: 50},
			{at: 600 * ms, taken: 100, demand: full(500, 250), wait: 500 * ms},
			{at: 1100 * ms, demand: full(500, 250), count: 50},
		}},
		"claims that keep coming are not waited for for ever": {plain, []moment{
			{taken: 5, demand: full(100, 5), wait: 500 * ms},
			{at: 4800 * ms, taken: 20, demand: full(100, 25), wait: 200 * ms},
			{at: 5 * second, taken: 1, demand: full(100, 26), count: 1, wait: 100 * ms},
			{at: 5060 * ms, taken: 1, demand: full(100, 26), wait: 40 * ms},
			{at: 5100 * ms, taken: 1, demand: full(100, 27), count: 1, wait: 100 * ms},
		}},
		"claims that keep coming on a large pool": {plain, []moment{
			{taken: 5, demand: full(1050, 5), wait: 500 * ms},
			{at: 4900 * ms, taken: 300, demand: full(1050, 305), wait: 100 * ms},
			{at: 5 * second, demand: full(1050, 305), count: 1, wait: 100 * ms},
		}},
		"a pool that runs low is not waited for": {plain, []moment{
			{taken: 75, demand: full(100, 75), wait: 500 * ms},
			{at: 100 * ms, taken: 1, demand: full(100, 76), count: 1, wait: 100 * ms},
			{at: 160 * ms, taken: 1, demand: full(100, 76), wait: 40 * ms},
			{at: 200 * ms, taken: 1, demand: full(100, 77), count: 1, wait: 100 * ms},
		}},
		"the only member is replaced at once": {plain, []moment{{taken: 1, demand: full(1, 1), count: 1, wait: 100 * ms}}},
		"a large pool that runs low is filled in larger batches": {plain, []moment{
			{taken: 1999, demand: full(2000, 1999), count: 10, wait: 100 * ms},
		}},
		"what others have made is not owed": {plain, []moment{
			{taken: 10, demand: full(100, 10), wait: 500 * ms},
			{at: 100 * ms, demand: full(100, 0)},
			{at: 200 * ms, demand: full(100, 10), count: 10},
		}},
		"a delay is kept though the pool is empty": {Limits{MaxBatchSize: 300, ReplenishDelay: 30 * second}, []moment{
			{taken: 1, demand: full(10, 1), wait: 30 * second},
			{at: 20 * second, taken: 9, demand: full(10, 10), wait: 10 * second},
			{at: 30 * second, taken: 0, demand: full(10, 10), count: 1, wait: 100 * ms},
			{at: 50 * second, demand: full(10, 9), count: 9},
		}},
		"a short delay is put off for 5 s at most": {Limits{MaxBatchSize: 300, ReplenishDelay: second}, []moment{
			{taken: 1, demand: full(10, 1), wait: second},
			{at: 4900 * ms, taken: 2, demand: full(10, 3), wait: 100 * ms},
			{at: 5 * second, demand: full(10, 3), count: 1, wait: 100 * ms},
			{at: 5900 * ms, demand: full(10, 2), count: 2},
		}},
		"a rate": {Limits{MaxBatchSize: 300, MaxRefillRate: 2.5}, []moment{
			{demand: full(10, 10), count: 2, wait: 200 * ms},
			{at: 100 * ms, demand: full(10, 8), wait: 100 * ms},
			{at: 200 * ms, demand: full(10, 8), count: 1, wait: 400 * ms},
			{at: 10 * second, demand: full(10, 7), count: 2, wait: 200 * ms},
		}},
		"a rate of less than one a second": {Limits{MaxBatchSize: 300, MaxRefillRate: 0.1}, []moment{
			{demand: full(10, 10), count: 1, wait: 10 * second},
			{at: 9 * second, demand: full(10, 9), wait: second},
			{at: 10 * second, demand: full(10, 9), count: 1, wait: 10 * second},
		}},
		"a rate that never comes to anything": {Limits{MaxBatchSize: 300, MaxRefillRate: 1e-12}, []moment{
			{demand: full(10, 10), count: 1, wait: time.Hour},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := refill{limits: test.limits}
			for _, moment := range test.moments {
				now := testTime().Add(moment.at)
				r.taken(moment.taken, now)
				count, wait := r.next(moment.demand, now)
				if count != moment.count || wait.Round(time.Microsecond) != moment.wait {
					t.Errorf("at %v: %d now, more after %v; want %d, %v", moment.at, count, wait, moment.count, moment.wait)
				}
				r.asked(count, moment.demand, now)
			}
		})
	}
}

func TestRefusedMembersAreAskedForAfterAGrowingDelay(t *testing.T) {
	resource := agentsv1beta1.Resource("sandboxes")
	quota := apierrors.NewForbidden(resource, "p1-x", errors.New("exceeded quota: sandboxes"))
	invalid := apierrors.NewInvalid(agentsv1beta1.SchemeGroupVersion.WithKind("Sandbox").GroupKind(), "p1-x", field.ErrorList{field.Required(field.NewPath("spec"), "")})
	const never = 0
	for name, test := range map[string]struct {
		err  error
		want []time.Duration
	}{
		"quota":                  {quota, []time.Duration{1, 2, 4, 8, 16, 30, 30}},
		"no answer":              {errors.New("connection refused"), []time.Duration{1, 2, 4, 5, 5}},
		"unavailable":            {apierrors.NewServiceUnavailable("no endpoints"), []time.Duration{1, 2, 4, 5, 5}},
		"too many requests":      {apierrors.NewTooManyRequests("slow down", 7), []time.Duration{7, 7, 7, 8, 16}},
		"a template of no Pod":   {invalid, []time.Duration{never}},
		"namespace without such": {apierrors.NewNotFound(corev1.Resource("namespaces"), "tenant"), []time.Duration{1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			r, now, d := refill{limits: Limits{MaxBatchSize: 300}}, testTime(), full(10, 5)
			var got []time.Duration
			for range test.want {
				if count, _ := r.next(d, now); count != 5 {
					t.Fatalf("after %v: %d are asked for", got, count)
				}
				r.refused(test.err, now)
				count, wait := r.next(d, now)
				if count != 0 || r.refusal != test.err.Error() {
					t.Errorf("%d are asked for right after %q", count, r.refusal)
				}
				got = append(got, wait/time.Second)
				now = now.Add(wait)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("delays in seconds differ (-want +got):\n%s", diff)
			}
			r.relieved()
			if count, _ := r.next(d, testTime()); count != 5 || r.refusal != "" {
				t.Errorf("%d are asked for once %q is over", count, r.refusal)
			}
			r.refused(quota, now)
			if _, wait := r.next(d, now); wait != time.Second {
				t.Errorf("the first delay is then %v", wait)
			}
		})
	}
}

// TestBurstOfClaimsGoesBeforeRefill plays 200 claims in four seconds on a pool of 500, with a pass for each of them.
func TestBurstOfClaimsGoesBeforeRefill(t *testing.T) {
	r := refill{limits: Limits{MaxBatchSize: 300}}
	const claims, every = 200, 20 * time.Millisecond
	missing, last := 0, time.Duration(0)
	for i := range claims {
		last = time.Duration(i) * every
		now := testTime().Add(last)
		missing++
		r.taken(1, now)
		if count, _ := r.next(full(500, missing), now); count != 0 {
			t.Fatalf("%d members are made after %v of claims", count, last)
		}
	}
	passes := 0
	for now := testTime().Add(last + quiet); missing > 0; passes++ {
		count, _ := r.next(full(500, missing), now)
		r.asked(count, full(500, missing), now)
		missing -= count
	}
	if passes != claims/replacementBatch {
		t.Errorf("%d passes fill the pool again", passes)
	}
}
