// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxwarmpool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/failure"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/loop"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/message"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/namespace"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/patch"
)

// again is the delay before the next pass where this one has left work for it. It is not nothing, because that would mean never.
const again = time.Nanosecond

// statusInterval is the time between two writes of the status of a pool. Claims change it hundreds of times in a second; nobody reads
// that fast, and every write is sent to all who watch.
const statusInterval = 500 * time.Millisecond

// pass is one pass over a pool.
type pass struct {
	*Controller
	*memory

	pool *extensionsv1beta1.SandboxWarmPool
	// template is nil if there is none of the name that the pool says.
	template *extensionsv1beta1.SandboxTemplate
	census   census
	// unanswered are the names that members were asked for under, without an answer, in order.
	unanswered []cache.ObjectName
	// seen are the names and UIDs of all Sandboxes that the pool is known to have.
	seen map[string]types.UID
}

// reconcile makes one pass over a pool.
func (c *Controller) reconcile(ctx context.Context, name cache.ObjectName) (time.Duration, error) {
	cached, err := c.pools.SandboxWarmPools(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("getting the SandboxWarmPool from the cache: %w", err)
	}
	pool, _ := c.poolWrites.Latest(name, cached, true)
	if pool.DeletionTimestamp != nil {
		return 0, nil
	}
	template, err := c.templates.SandboxTemplates(name.Namespace).Get(pool.Spec.SandboxTemplateRef.Name)
	if err != nil && !apierrors.IsNotFound(err) {
		return 0, fmt.Errorf("getting the SandboxTemplate from the cache: %w", err)
	}
	p := &pass{Controller: c, memory: c.memoryOf(pool.UID), pool: pool, template: template, seen: map[string]types.UID{}}
	return p.run(ctx)
}

func (p *pass) run(ctx context.Context) (time.Duration, error) {
	arrival, err := p.findLost(ctx)
	if err != nil {
		return 0, err
	}
	if err := p.takeCensus(); err != nil {
		return 0, err
	}
	p.compareWithLast()
	defer p.remember()

	more, err := p.removeMembers(ctx)
	after := loop.Soonest(arrival, p.census.recheck, more)
	if err == nil {
		err = p.markMembers(ctx)
	}
	if err == nil {
		more, err = p.addMembers(ctx)
		after = loop.Soonest(after, more)
	}
	if namespace.IsTerminating(err) {
		// There is nothing to tell: the pool goes with its namespace.
		return namespace.TerminatingDelay, nil
	}
	if failure.Outdated(err) {
		return after, err
	}
	wait, statusErr := p.updateStatus(ctx)
	return loop.Soonest(after, wait), errors.Join(err, statusErr)
}

// takeCensus counts the members in the cache, and those that it does not show yet.
func (p *pass) takeCensus() error {
	// In this order: what arrives between the two is in both, rather than in neither.
	made, unanswered, _ := p.ledger.onTheWay(p.pool.UID)
	objects, err := p.Controller.members.ByIndex(memberIndex, memberKey(p.pool.Namespace, string(p.pool.UID)))
	if err != nil {
		return fmt.Errorf("looking up the members: %w", err)
	}
	p.unanswered = unanswered
	inspector := &inspector{
		pool: p.pool, template: p.template, notes: p.notes, now: p.config.Clock.Now(),
		grace: p.config.ReadinessGracePeriod, recheck: p.config.UnschedulableRecheckInterval,
	}
	for _, object := range objects {
		if cached, ok := object.(*agentsv1beta1.Sandbox); ok {
			sandbox, _ := p.sandboxWrites.Latest(cache.MetaObjectToName(cached), cached, true)
			p.seen[sandbox.Name] = sandbox.UID
			inspector.inspect(&p.census, sandbox)
		}
	}
	for _, sandbox := range made {
		_, seen := p.seen[sandbox.Name]
		cached, err := p.sandboxes.Sandboxes(sandbox.Namespace).Get(sandbox.Name)
		if arrived := err == nil; arrived {
			p.ledger.delivered(cached)
			sandbox = cached
		}
		if !seen && owns(p.pool, sandbox) {
			p.seen[sandbox.Name] = sandbox.UID
			inspector.inspect(&p.census, sandbox)
		}
	}
	return nil
}

// compareWithLast notes what has become of the members that the last pass left, and whether what it went by is still so.
func (p *pass) compareWithLast() {
	members := map[string]bool{}
	for _, member := range p.census.members {
		members[member.Name] = true
	}
	taken := 0
	for name := range p.memory.members {
		if !members[name] && p.claimed(name) {
			taken++
		}
	}
	p.refill.taken(taken, p.config.Clock.Now())

	inputs := fmt.Sprint(p.pool.Generation)
	if p.template != nil {
		inputs += fmt.Sprint(" ", p.template.UID, " ", p.template.Generation)
	}
	if p.inputs != inputs {
		p.inputs = inputs
		p.refill.relieved()
	}
}

// remember notes the members that this pass leaves, and forgets what there is to know of others.
func (p *pass) remember() {
	p.memory.members = make(map[string]bool, len(p.census.members))
	for _, member := range p.census.members {
		p.memory.members[member.Name] = true
	}
	uids := make(map[types.UID]bool, len(p.seen))
	for _, uid := range p.seen {
		uids[uid] = true
	}
	maps.DeleteFunc(p.notes, func(uid types.UID, _ note) bool { return !uids[uid] })
}

// claimed says whether the Sandbox of this name has got another controller.
func (p *pass) claimed(name string) bool {
	sandbox, err := p.sandboxes.Sandboxes(p.pool.Namespace).Get(name)
	return err == nil && metav1.GetControllerOfNoCopy(sandbox) != nil && !owns(p.pool, sandbox)
}

func (p *pass) demand() demand {
	return demand{
		replicas: p.replicas(),
		members:  len(p.census.members) + p.census.terminating,
		ready:    p.census.ready,
	}
}

func (p *pass) replicas() int { return int(ptr.Deref(p.pool.Spec.Replicas, 1)) }

// updateStatus writes the status if it has changed and was not written just before, and returns after which time it is to be, or 0.
func (p *pass) updateStatus(ctx context.Context) (time.Duration, error) {
	now := p.config.Clock.Now()
	status := observedStatus(p.pool, &outcome{
		members: len(p.census.members), ready: p.census.ready, replicas: p.replicas(),
		templateMissing: p.template == nil,
		refusal:         cmp.Or(p.refill.refusal, p.census.refusal),
		unschedulable:   p.census.unschedulable, grace: p.config.ReadinessGracePeriod,
	}, now)
	if equality.Semantic.DeepEqual(&p.pool.Status, status) {
		return 0, nil
	}
	if wait := p.writtenAt.Add(statusInterval).Sub(now); wait > 0 {
		return wait, nil
	}
	err := p.writeStatus(ctx, status)
	if failure.ObjectNotFound(err) {
		return 0, nil
	}
	return 0, err
}

func (p *pass) writeStatus(ctx context.Context, status *extensionsv1beta1.SandboxWarmPoolStatus) error {
	identity := metav1.ObjectMeta{UID: p.pool.UID, ResourceVersion: p.pool.ResourceVersion}
	data, err := patch.Merge(
		&extensionsv1beta1.SandboxWarmPool{ObjectMeta: identity, Status: p.pool.Status},
		&extensionsv1beta1.SandboxWarmPool{ObjectMeta: identity, Status: *status}, patch.AnyVersion)
	if err != nil {
		return fmt.Errorf("computing the status patch: %w", err)
	}
	updated, err := p.config.SandboxClient.ExtensionsV1beta1().SandboxWarmPools(p.pool.Namespace).
		Patch(ctx, p.pool.Name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: Name}, "status")
	if err != nil {
		return fmt.Errorf("patching the status: %w", err)
	}
	updated.ManagedFields = nil
	p.poolWrites.Updated(updated)
	p.writtenAt = p.config.Clock.Now()
	if event, ok := transitionEvent(&p.pool.Status, status); ok {
		p.config.Recorder.Eventf(p.pool, nil, event.eventType, event.reason, actionReconciling, "%s", message.Cut(event.note, message.MaxEventNote))
	}
	klog.FromContext(ctx).V(4).Info("Wrote status", "resourceVersion", updated.ResourceVersion)
	return nil
}
