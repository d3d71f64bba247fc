// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxclaim

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/claimedsandbox"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/failure"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/sandboxtemplate"
)

// provide sees to it that a claim which has no Sandbox gets one: a member of its pool, now or in a moment, or else one that is made for it.
func (c *Controller) provide(ctx context.Context, o *outcome) {
	name := cache.MetaObjectToName(o.claim)
	wait := false
	defer func() {
		if !wait {
			c.waiting.remove(name)
		}
	}()
	if err := c.clear(ctx, o); err != nil {
		o.retry = ignoreNotFound(err)
		return
	}
	from, problem, err := c.source(ctx, o.claim)
	switch {
	case err != nil:
		o.retry = err
		return
	case problem != nil:
		c.fail(o, problem)
		return
	}
	if c.takesMembers(o.claim) {
		first, _ := c.firstSeen.when(o.claim)
		c.waiting.add(cache.MetaObjectToName(from.pool), name, first)
		var done bool
		if done, wait = c.takeMember(ctx, o, from); done {
			return
		}
	}
	c.startCold(ctx, o, from)
	// If none could be made, a member will do as soon as there is one.
	wait = c.takesMembers(o.claim)
}

// takesMembers says whether a member of the pool will do for the claim, and no Sandbox is being made for it.
func (c *Controller) takesMembers(claim *extensionsv1beta1.SandboxClaim) bool {
	return !claimedsandbox.NeedsColdStart(claim) && !extensionsv1beta1.StartedCold(claim.Status.Conditions) && !c.mayBeMade(claim)
}

// clear removes what the claim says of an earlier Sandbox, which is gone because the claim had expired.
func (c *Controller) clear(ctx context.Context, o *outcome) error {
	status := o.claim.Status.DeepCopy()
	status.Sandbox = extensionsv1beta1.ClaimedSandboxStatus{}
	meta.RemoveStatusCondition(&status.Conditions, extensionsv1beta1.ClaimConditionFinished)
	updated, err := c.writeStatus(ctx, o.claim, status)
	if err != nil {
		return err
	}
	o.claim = updated
	return nil
}

// fail makes the claim say why it has no Sandbox. While one may yet be made for it that stays the reason, so that it is given no other.
func (c *Controller) fail(o *outcome, problem *notReady) {
	if c.mayBeMade(o.claim) {
		problem = &notReady{extensionsv1beta1.ClaimReasonSandboxCreatePending, problem.message}
	}
	o.status = statusWithoutSandbox(o.claim, problem, c.config.Clock.Now())
}

// source returns where the claim's Sandbox comes from, or what is wrong with that. The pool is there if nothing is; the template need not
// be. Clients give up on most of what can be wrong, so the cache alone is not believed.
func (c *Controller) source(ctx context.Context, claim *extensionsv1beta1.SandboxClaim) (source, *notReady, error) {
	if rejection := c.checkMetadata(claim); rejection != nil {
		problem, _ := blame(rejection)
		return source{}, problem, nil
	}
	from := c.cachedSource(claim)
	if from.template != nil && claimedsandbox.Check(claim, from.template) == nil {
		return from, nil, nil
	}
	from, err := c.liveSource(ctx, claim)
	switch {
	case err != nil:
		return source{}, nil, err
	case from.pool == nil:
		return source{}, &notReady{
			extensionsv1beta1.ClaimReasonWarmPoolNotFound, fmt.Sprintf("SandboxWarmPool %q not found", claim.Spec.WarmPoolRef.Name),
		}, nil
	case from.template != nil:
		if rejection := claimedsandbox.Check(claim, from.template); rejection != nil {
			problem, _ := blame(rejection)
			return source{}, problem, nil
		}
	}
	return from, nil, nil
}

// checkMetadata checks what the claim wants on its Pod against the rules of the cluster. Only a claim without a Sandbox is checked: the API
// server has checked what is stored, and a list that has become shorter is no reason to call a running Sandbox unusable.
func (c *Controller) checkMetadata(claim *extensionsv1beta1.SandboxClaim) *claimedsandbox.Rejection {
	return claimedsandbox.RejectMetadata(claimedsandbox.CheckMetadata(&claim.Spec.AdditionalPodMetadata,
		c.config.AllowedLabelDomains.Current(), field.NewPath("spec", "additionalPodMetadata")))
}

// takeMember has the claim bound to a ready member of the pool. Done says that nothing else is to be done for the claim in this pass: it has
// got one, or waits for one that is about to become ready, or it is not known.
func (c *Controller) takeMember(ctx context.Context, o *outcome, from source) (done, wait bool) {
	ready, warming, err := c.members(from)
	if err != nil {
		o.retry = err
		return true, false
	}
	if ready {
		bound, err := c.bind(ctx, o)
		if err != nil {
			c.bindingFailed(o, err)
			return true, false
		}
		if bound {
			return true, false
		}
	}
	grace := c.graceLeft(o.claim)
	switch {
	case grace <= 0 || !ready && !warming:
		return false, false
	case ready:
		// Either the cache is late, which shows a member that is gone, or the API server is, which does not show one that is there.
		o.retry = failure.ErrStale
	}
	o.after = grace
	return true, true
}

// members says whether the pool has members that are ready, and members that are not yet. One that the pool is about to replace is none.
func (c *Controller) members(from source) (ready, warming bool, err error) {
	owned, err := lookUp[*agentsv1beta1.Sandbox](c.sandboxIndex, ownerIndex, ownerKey(from.pool.Namespace, from.pool.UID))
	if err != nil {
		return false, false, err
	}
	mustBeFresh := sandboxtemplate.Recreates(from.pool)
	for _, sandbox := range owned {
		switch {
		case !claimedsandbox.Adoptable(sandbox, from.pool):
		case mustBeFresh && (from.template == nil || !sandboxtemplate.Fresh(from.template, sandbox)):
		case claimedsandbox.Ready(sandbox):
			return true, warming, nil
		default:
			warming = true
		}
	}
	return false, warming, nil
}

// bind asks the API server to bind the claim, and says whether it did.
func (c *Controller) bind(ctx context.Context, o *outcome) (bool, error) {
	request := &extensionsv1beta1.SandboxClaimBind{Preconditions: &agentsv1beta1.Preconditions{UID: &o.claim.UID}}
	bound, err := c.config.SandboxClient.ExtensionsV1beta1().SandboxClaims(o.claim.Namespace).
		Bind(ctx, o.claim.Name, request, metav1.CreateOptions{FieldManager: Name})
	if err != nil {
		return false, fmt.Errorf("binding the SandboxClaim: %w", err)
	}
	if bound.Status.Sandbox.Name == "" {
		return false, nil
	}
	c.noteClaim(bound)
	o.claim = bound
	klog.FromContext(ctx).V(2).Info("Bound claim", "sandbox", bound.Status.Sandbox.Name)
	return true, nil
}

// bindingFailed decides what a failed binding means for the claim.
func (c *Controller) bindingFailed(o *outcome, err error) {
	switch {
	case failure.ObjectNotFound(err):
		// The claim is gone, and so will be its entry in the cache.
		o.retry = failure.ErrStale
	case apierrors.IsConflict(err):
		c.fail(o, &notReady{extensionsv1beta1.ClaimReasonAdoptionConflict, err.Error() + "; the next pass retries from a converged view"})
		o.retry = err
	case answered(err):
		// What is wrong with a claim was looked for before. If the API server knows better, so will the cache.
		c.fail(o, reconcilerError(err))
		o.retry = err
	default:
		// It may be carried out yet, as long as the claim is as it is. Nothing is done for the claim before it has been written to.
		o.retry = err
	}
}

// graceLeft returns how long the claim may still wait for a member.
func (c *Controller) graceLeft(claim *extensionsv1beta1.SandboxClaim) time.Duration {
	first, _ := c.firstSeen.when(claim)
	return c.config.WarmCandidateGracePeriod - c.config.Clock.Since(first)
}
