// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxwarmpool

import (
	"math"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/failure"
)

// How replacements for members that claims take are held back, see refill.
const (
	// quiet is how long no claim takes a member before replacements are made as fast as members of a new pool are.
	quiet = 500 * time.Millisecond
	// patience is how long replacements are held back at most while claims keep coming.
	patience = 5 * time.Second
	// trickleInterval is the time between two batches of replacements while claims keep coming. It is short because a batch that is noticed
	// is a batch that claims wait for.
	trickleInterval = 100 * time.Millisecond
	// Of a pool's size, one part in trickleShare is replaced in such a batch, or, once fewer than one part in lowShare of the members
	// are ready, one in lowTrickleShare, but at least one and at most lowTrickleMax.
	// In a second that is 1 % of the pool, or 10 % and at most 100 members, and at least ten.
	trickleShare    = 1000
	lowShare        = 4
	lowTrickleShare = 100
	lowTrickleMax   = 10
	// replacementBatch is how many replacements are made before it is looked again whether claims come.
	replacementBatch = 50

	// Creates that failed are repeated after minCreateBackoff, doubling up to maxRefusalBackoff if they were refused, for nothing tells when
	// a quota is raised, and up to maxOutageBackoff if there was no answer.
	minCreateBackoff  = time.Second
	maxRefusalBackoff = 30 * time.Second
	maxOutageBackoff  = 5 * time.Second
)

// Limits are what the operator says about the making of members.
type Limits struct {
	// MaxBatchSize is how many members of a pool are made, or deleted, in one pass at most.
	MaxBatchSize int
	// ReplenishDelay is how long after the last claim took a member its replacements are made, in the place of the default rule. Claims
	// that keep coming put them off by no more than that, or 5 s if that is more. 0 means the default rule.
	ReplenishDelay time.Duration
	// MaxRefillRate is how many members of a pool are made per second at most, for whatever reason. 0 means no limit.
	MaxRefillRate float64
}

// demand is what a pool is short of at one moment.
type demand struct {
	// replicas is how many members are wanted.
	replicas int
	// members is how many there are, those on their way and those being deleted included.
	members int
	// ready is how many of them a claim could have now.
	ready int
}

// refill decides when the missing members of a pool are made. Claims go first: the Pods that replace a burst of claimed members would
// slow the claims that follow. So
//   - members that never were, in a new pool or one that was scaled up, are made at once, and so are those that were deleted;
//   - replacements for claimed members are made once claims have been quiet for a moment;
//   - while claims keep coming, they are made in small batches from when the pool has waited long enough, and in larger ones from when
//     few ready members are left.
//
// All of it is bounded by the operator's limits, and after a refusal by a growing delay. It is a function of its fields and of what it is
// told, and may be lost: without memory, all that is missing counts as never made.
type refill struct {
	limits Limits

	// owed is how many of the missing members were taken by claims.
	owed int
	// owedSince is when the first of them was, and takenAt when the last was.
	owedSince, takenAt time.Time
	// trickledAt is when the last batch was made while claims kept coming.
	trickledAt time.Time

	// spent is how much of the allowance by MaxRefillRate is used up at the time of spentAt.
	spent   float64
	spentAt time.Time

	// backoff is the delay after the last refusal, 0 if there was none since the last success; no member is made before retryAt.
	backoff time.Duration
	retryAt time.Time
	// refusal is what the API server said, empty if there was none since the last success.
	refusal string
	// hopeless says that no member can be made until pool or template are changed.
	hopeless bool
}

// taken notes that claims took members.
func (r *refill) taken(count int, now time.Time) {
	if count == 0 {
		return
	}
	if r.owed == 0 {
		r.owedSince = now
	}
	r.owed += count
	r.takenAt = now
}

// asked notes that so many of the members that next called for were asked for, whatever came of it.
func (r *refill) asked(count int, d demand, now time.Time) {
	if r.limits.MaxRefillRate > 0 {
		r.spent, r.spentAt = r.spentNow(now)+float64(count), now
	}
	if replacements := count - (d.missing() - r.owed); replacements > 0 {
		r.owed -= replacements
		r.trickledAt = now
	}
}

// refused notes why the API server made no more members. A delay that it asks for is respected.
func (r *refill) refused(err error, now time.Time) {
	limit := maxOutageBackoff
	if refused(err) {
		limit = maxRefusalBackoff
	}
	r.backoff = min(max(2*r.backoff, minCreateBackoff), limit)
	asked, _ := apierrors.SuggestsClientDelay(err)
	r.retryAt = now.Add(max(r.backoff, time.Duration(asked)*time.Second))
	r.refusal, r.hopeless = err.Error(), failure.Terminal(err)
}

// relieved notes that the last refusal is of no more interest: it is over, or was about something else.
func (r *refill) relieved() { r.backoff, r.retryAt, r.refusal, r.hopeless = 0, time.Time{}, "", false }

func (d demand) missing() int { return max(0, d.replicas-d.members) }

// next returns how many members are to be made now, and after which time to ask again even if nothing happens, or 0.
func (r *refill) next(d demand, now time.Time) (int, time.Duration) {
	missing := d.missing()
	// What others have made meanwhile, or what is no longer wanted, is not owed.
	r.owed = min(r.owed, missing)
	switch {
	case missing == 0 || r.hopeless:
		return 0, 0
	case now.Before(r.retryAt):
		return 0, r.retryAt.Sub(now)
	}
	count, wait := r.replacements(d, now)
	count += missing - r.owed
	count = min(count, r.limits.MaxBatchSize)
	if allowed, refills := r.allowance(now); count > allowed {
		count, wait = allowed, refills
	}
	return count, wait
}

// replacements returns how many of the owed members may be made now, and after which time more of them may be.
func (r *refill) replacements(d demand, now time.Time) (int, time.Duration) {
	if r.owed == 0 {
		return 0, 0
	}
	calm, patient := quiet, patience
	if r.limits.ReplenishDelay > 0 {
		calm, patient = r.limits.ReplenishDelay, max(patience, r.limits.ReplenishDelay)
	}
	untilCalm := r.takenAt.Add(calm).Sub(now)
	untilImpatient := r.owedSince.Add(patient).Sub(now)
	low := r.limits.ReplenishDelay == 0 && lowShare*d.ready < d.replicas
	untilTrickle := r.trickledAt.Add(trickleInterval).Sub(now)
	switch {
	case untilCalm <= 0:
		return min(r.owed, replacementBatch), 0
	case untilImpatient > 0 && !low:
		return 0, min(untilCalm, untilImpatient)
	case untilTrickle > 0:
		return 0, min(untilCalm, untilTrickle)
	case low:
		return min(r.owed, min(max(d.replicas/lowTrickleShare, 1), lowTrickleMax)), min(untilCalm, trickleInterval)
	default:
		return min(r.owed, max(d.replicas/trickleShare, 1)), min(untilCalm, trickleInterval)
	}
}

// allowance returns how many members MaxRefillRate allows to make now, and how long it takes until it allows one more. The allowance of
// one second can be used at once.
func (r *refill) allowance(now time.Time) (int, time.Duration) {
	rate := r.limits.MaxRefillRate
	if rate == 0 {
		return math.MaxInt, 0
	}
	left := max(1, rate) - r.spentNow(now)
	whole := math.Floor(left)
	seconds := min((whole+1-left)/rate, time.Hour.Seconds())
	return int(max(0, whole)), max(time.Nanosecond, time.Duration(seconds*float64(time.Second)))
}

func (r *refill) spentNow(now time.Time) float64 {
	return max(0, r.spent-now.Sub(r.spentAt).Seconds()*r.limits.MaxRefillRate)
}
