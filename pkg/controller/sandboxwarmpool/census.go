// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxwarmpool

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/claimedsandbox"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/loop"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/sandboxtemplate"
)

// reservationTimeout is how long a member may be reserved for a claim that does not exist. The two writes of a reservation are made
// within one request.
const reservationTimeout = time.Minute

// census is what a pool has at one moment.
type census struct {
	// members are the Sandboxes that make up the size of the pool: its own, neither used nor going away.
	members []*agentsv1beta1.Sandbox
	// ready is how many of them are ready.
	ready int
	// terminating is how many are going away, those of this census that must go included.
	terminating int

	// stale no longer follow the template, and stuck could not become ready in time. Both must go.
	stale, stuck []*agentsv1beta1.Sandbox
	// forgotten are members that are reserved for longer than a claim needs to be created. They must go if it was not.
	forgotten []*agentsv1beta1.Sandbox

	// unschedulable is how many members are kept, though they are not ready in time, because the cluster has no place for them.
	unschedulable int
	// refusal is what keeps a member from getting its Pod, in the words of its condition. Empty if nothing does.
	refusal string
	// recheck is after which time the census may differ though nothing has happened, 0 if never.
	recheck time.Duration
}

// add adds a member.
func (c *census) add(member *agentsv1beta1.Sandbox) {
	c.members = append(c.members, member)
	if claimedsandbox.Ready(member) {
		c.ready++
	}
}

// remove notes that these Sandboxes are going away, be they counted as members or not.
func (c *census) remove(sandboxes []*agentsv1beta1.Sandbox) {
	going := map[types.UID]bool{}
	for _, sandbox := range sandboxes {
		going[sandbox.UID] = true
	}
	members := c.members
	c.members, c.ready = nil, 0
	for _, member := range members {
		if going[member.UID] {
			c.terminating++
		} else {
			c.add(member)
		}
	}
}

// note is what is remembered of a member for as long as the cache shows it.
type note struct {
	// adoptedAt is when the pool became its controller, if it did not make it.
	adoptedAt time.Time
	// excusedAt is when it last had an excuse for not being ready.
	excusedAt time.Time
	// reservedAt is when it was first found to be reserved for a claim.
	reservedAt time.Time
	// deleted says that the API server has accepted its deletion.
	deleted bool
}

// notes are by the UID of the member.
type notes map[types.UID]note

// edit changes what is noted of a member, which may be nothing yet.
func (n notes) edit(uid types.UID, edit func(*note)) {
	note := n[uid]
	edit(&note)
	n[uid] = note
}

// inspector takes the census of a pool.
type inspector struct {
	pool *extensionsv1beta1.SandboxWarmPool
	// template is nil if there is none.
	template *extensionsv1beta1.SandboxTemplate
	// notes are what is remembered of the members, and is added to.
	notes   notes
	grace   time.Duration
	recheck time.Duration
	now     time.Time
}

// inspect adds one of the Sandboxes that the pool controls to the census.
func (i *inspector) inspect(c *census, sandbox *agentsv1beta1.Sandbox) {
	switch {
	case claimedsandbox.Used(sandbox):
		// Whoever gave it back to the pool: it is no member again.
		return
	case sandbox.DeletionTimestamp != nil || i.notes[sandbox.UID].deleted:
		c.terminating++
		return
	}
	_, reserved := sandbox.Annotations[extensionsv1beta1.ReservedForClaimAnnotation]
	switch {
	case reserved:
		if left := reservationTimeout - i.now.Sub(i.reservedSince(sandbox)); left > 0 {
			c.recheck = loop.Soonest(c.recheck, left)
		} else {
			c.forgotten = append(c.forgotten, sandbox)
		}
	case sandboxtemplate.Recreates(i.pool) && i.stale(sandbox):
		c.stale = append(c.stale, sandbox)
		c.terminating++
		return
	case !claimedsandbox.Ready(sandbox) && !i.wait(c, sandbox):
		c.stuck = append(c.stuck, sandbox)
		c.terminating++
		return
	}
	c.add(sandbox)
}

func (i *inspector) stale(sandbox *agentsv1beta1.Sandbox) bool {
	return i.template != nil && !sandboxtemplate.Fresh(i.template, sandbox)
}

// wait says whether a member that is not ready may stay. It may for the grace period, and for as long as it has an excuse. An excuse is
// void once the member no longer follows the template: then its replacement may do better.
func (i *inspector) wait(c *census, sandbox *agentsv1beta1.Sandbox) bool {
	suspended := sandbox.Spec.OperatingMode == agentsv1beta1.SandboxOperatingModeSuspended
	homeless, refusal := unschedulable(sandbox), refusalOf(sandbox)
	c.refusal = cmp.Or(c.refusal, refusal)
	since := i.notReadySince(sandbox)
	if suspended || homeless || refusal != "" {
		i.excuse(sandbox)
	}
	if left := i.grace - i.now.Sub(since); left > 0 {
		c.recheck = loop.Soonest(c.recheck, left)
		return true
	}
	switch {
	case suspended:
		return true
	case homeless || refusal != "":
		if i.stale(sandbox) {
			return false
		}
		if homeless {
			c.unschedulable++
		}
		c.recheck = loop.Soonest(c.recheck, i.recheck)
		return true
	}
	left := i.grace - i.now.Sub(i.notes[sandbox.UID].excusedAt)
	c.recheck = loop.Soonest(c.recheck, max(0, left))
	return left > 0
}

// notReadySince returns since when the member could have become ready and did not: since it became a member, was ready for the last time,
// was resumed, or got or lost its place on a node.
func (i *inspector) notReadySince(sandbox *agentsv1beta1.Sandbox) time.Time {
	since := latest(sandbox.CreationTimestamp.Time, i.notes[sandbox.UID].adoptedAt)
	for _, conditionType := range []string{
		agentsv1beta1.SandboxConditionReady, agentsv1beta1.SandboxConditionSuspended, agentsv1beta1.SandboxConditionPodScheduled,
	} {
		if condition := meta.FindStatusCondition(sandbox.Status.Conditions, conditionType); condition != nil {
			since = latest(since, condition.LastTransitionTime.Time)
		}
	}
	return since
}

// excuse notes that the member has an excuse now.
func (i *inspector) excuse(sandbox *agentsv1beta1.Sandbox) {
	i.notes.edit(sandbox.UID, func(n *note) { n.excusedAt = i.now })
}

// reservedSince returns since when the member is known to be reserved, which it is from the first call on.
func (i *inspector) reservedSince(sandbox *agentsv1beta1.Sandbox) time.Time {
	if i.notes[sandbox.UID].reservedAt.IsZero() {
		i.notes.edit(sandbox.UID, func(n *note) { n.reservedAt = i.now })
	}
	return i.notes[sandbox.UID].reservedAt
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// unschedulable says whether the scheduler has no place for the member, or is not yet allowed to look for one.
func unschedulable(sandbox *agentsv1beta1.Sandbox) bool {
	scheduled := meta.FindStatusCondition(sandbox.Status.Conditions, agentsv1beta1.SandboxConditionPodScheduled)
	return scheduled != nil && scheduled.Status == metav1.ConditionFalse &&
		(scheduled.Reason == corev1.PodReasonUnschedulable || scheduled.Reason == corev1.PodReasonSchedulingGated)
}

// refusalOf returns what keeps the member from getting its Pod, volumes or Service, such as a quota. Empty if nothing does.
func refusalOf(sandbox *agentsv1beta1.Sandbox) string {
	ready := meta.FindStatusCondition(sandbox.Status.Conditions, agentsv1beta1.SandboxConditionReady)
	if ready == nil || ready.Reason != agentsv1beta1.SandboxReasonReconcilerError && ready.Reason != agentsv1beta1.SandboxReasonInvalidConfiguration {
		return ""
	}
	return cmp.Or(ready.Message, ready.Reason)
}

// excess returns the members to delete so that no more than so many remain: those first that are not ready, then those that were made
// last. Those that are reserved for a claim stay.
func excess(members []*agentsv1beta1.Sandbox, replicas int) []*agentsv1beta1.Sandbox {
	surplus := len(members) - replicas
	if surplus <= 0 {
		return nil
	}
	candidates := slices.DeleteFunc(slices.Clone(members), func(sandbox *agentsv1beta1.Sandbox) bool {
		_, reserved := sandbox.Annotations[extensionsv1beta1.ReservedForClaimAnnotation]
		return reserved
	})
	slices.SortStableFunc(candidates, func(a, b *agentsv1beta1.Sandbox) int {
		if aReady, bReady := claimedsandbox.Ready(a), claimedsandbox.Ready(b); aReady != bReady {
			if bReady {
				return -1
			}
			return 1
		}
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(b.Name, a.Name))
	})
	return candidates[:min(surplus, len(candidates))]
}
