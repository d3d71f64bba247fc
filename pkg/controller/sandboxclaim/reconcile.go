// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxclaim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/claimedsandbox"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/failure"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/loop"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/patch"
)

// again is the delay before the next pass where this one has left work for it. It is not nothing, because that would mean never.
const again = time.Nanosecond

// outcome is what a pass has come to, before the claim is told of it.
type outcome struct {
	// claim is the claim in its latest version.
	claim *extensionsv1beta1.SandboxClaim
	// status is what the claim is to say. Nil leaves it as it is.
	status *extensionsv1beta1.SandboxClaimStatus
	// events are to be recorded once the claim says so.
	events []event
	// after is after which time another pass is due, or 0.
	after time.Duration
	// retry is the error that calls for a pass sooner.
	retry error
}

// reconcile makes one pass over a claim.
func (c *Controller) reconcile(ctx context.Context, name cache.ObjectName) (time.Duration, error) {
	cached, err := c.claims.SandboxClaims(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) {
		c.waiting.remove(name)
		c.coldStarts.forget(name)
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("getting the SandboxClaim from the cache: %w", err)
	}
	claim, _ := c.claimWrites.Latest(name, cached, true)
	if claim.DeletionTimestamp != nil {
		c.waiting.remove(name)
		return 0, nil
	}
	if expired(claim, c.config.Clock.Now()) {
		c.waiting.remove(name)
		return 0, c.expire(ctx, claim)
	}
	if delay := c.holdBack(claim); delay > 0 {
		return delay, nil
	}
	o := c.pursue(ctx, claim)
	return c.conclude(ctx, o)
}

// unstamped says whether a claim is ready and does not say since when.
func unstamped(claim *extensionsv1beta1.SandboxClaim) bool {
	return isReady(&claim.Status) && claim.Annotations[extensionsv1beta1.ClaimFirstReadyAtAnnotation] == ""
}

// maxHoldBack is how long a claim that was bound in the request that created it is left alone, at most.
const maxHoldBack = 3 * time.Second

// holdBack returns how long a pass over a claim is to wait because others go first, or 0. The claim has its Sandbox and says so, and the API
// server announces it within milliseconds, unless it ends or cannot write. After that there is only something to tell about it, which can
// wait for as long as many claims come.
func (c *Controller) holdBack(claim *extensionsv1beta1.SandboxClaim) time.Duration {
	if !isReady(&claim.Status) || claim.Annotations[extensionsv1beta1.ControllerFirstObservedAtAnnotation] == "" {
		return 0
	}
	first, untold := c.firstSeen.when(claim)
	if !untold {
		// It was there before the process, or is so new that nobody has told the controller of it yet.
		first, _ = annotatedTime(claim, extensionsv1beta1.ControllerFirstObservedAtAnnotation)
	}
	left := maxHoldBack - c.config.Clock.Since(first)
	switch {
	case left <= 0 || left > maxHoldBack:
		return 0
	case unstamped(claim):
		return left
	case untold:
		return min(c.config.Rush.Delay(), left)
	default:
		return 0
	}
}

// pursue does what can be done so that the claim has a Sandbox and the Sandbox is as it should be.
func (c *Controller) pursue(ctx context.Context, claim *extensionsv1beta1.SandboxClaim) *outcome {
	o := &outcome{claim: claim}
	found, err := c.find(ctx, claim)
	switch {
	case err != nil:
		o.retry = err
	case found.sandbox != nil:
		c.follow(ctx, o, found.sandbox)
	case found.notYet > 0:
		o.after = found.notYet
	case found.reserved:
		// Whoever gave it to the claim could not finish. Asking for a binding finishes it, and the Sandbox tells when it is.
		_, o.retry = c.bind(ctx, o)
		o.after = deliveryDelay
	case found.lost:
		o.status = statusWithoutSandbox(claim, missing(), c.config.Clock.Now())
	default:
		c.provide(ctx, o)
	}
	return o
}

// conclude tells the claim what the pass has come to.
func (c *Controller) conclude(ctx context.Context, o *outcome) (time.Duration, error) {
	if o.status != nil {
		updated, err := c.writeStatus(ctx, o.claim, o.status)
		if err != nil {
			return 0, errors.Join(o.retry, ignoreNotFound(err))
		}
		o.claim = updated
	}
	c.record(o.claim, o.events...)
	stamped, err := c.stamp(ctx, o.claim)
	if err != nil {
		return 0, errors.Join(o.retry, ignoreNotFound(err))
	}
	return loop.Soonest(o.after, expiryDelay(stamped, c.config.Clock.Now())), o.retry
}

// ignoreNotFound returns nil instead of the error that the claim is gone.
func ignoreNotFound(err error) error {
	if failure.ObjectNotFound(err) {
		return nil
	}
	return err
}

// follow makes the Sandbox's metadata follow the claim, and the claim's status the Sandbox.
func (c *Controller) follow(ctx context.Context, o *outcome, sandbox *agentsv1beta1.Sandbox) {
	c.waiting.remove(cache.MetaObjectToName(o.claim))
	if sandbox.DeletionTimestamp != nil && markedExpired(&o.claim.Status) {
		// It goes because the claim had expired, and the claim has been given more time since. It gets another when this is gone.
		return
	}
	if sandbox.DeletionTimestamp == nil {
		sandbox, o.retry = c.syncMetadata(ctx, o, sandbox)
	}
	c.mirror(o, sandbox)
}

// mirror makes the claim say what its Sandbox says. While one that was made for it says nothing, the claim goes on saying that it is being
// made: to be told that it was would cost a write and help nobody.
func (c *Controller) mirror(o *outcome, sandbox *agentsv1beta1.Sandbox) {
	if extensionsv1beta1.StartedCold(o.claim.Status.Conditions) {
		c.coldStarts.note(o.claim, coldStart{made: true})
		if silent(sandbox) {
			return
		}
	} else {
		c.coldStarts.forget(cache.MetaObjectToName(o.claim))
	}
	status := claimedsandbox.Status(o.claim, sandbox)
	o.status = &status
}

// silent says whether there is nothing to tell of a Sandbox.
func silent(sandbox *agentsv1beta1.Sandbox) bool {
	return sandbox.DeletionTimestamp == nil && meta.FindStatusCondition(sandbox.Status.Conditions, agentsv1beta1.SandboxConditionReady) == nil
}

// syncMetadata makes the metadata of the Sandbox and its Pod what claim and template say, and returns the Sandbox as it then is. Without
// a template, or one that contradicts the claim, it stays as it is.
func (c *Controller) syncMetadata(ctx context.Context, o *outcome, sandbox *agentsv1beta1.Sandbox) (*agentsv1beta1.Sandbox, error) {
	cached := c.cachedSource(o.claim)
	if cached.template == nil {
		return sandbox, nil
	}
	synced := sandbox.DeepCopy()
	rejection := claimedsandbox.Sync(synced, o.claim, cached.template)
	if rejection == nil && equality.Semantic.DeepEqual(sandbox, synced) {
		return sandbox, nil
	}
	// The API server may have bound the claim by a later version of the template than the cache has.
	live, err := c.liveSource(ctx, o.claim)
	if err != nil || live.template == nil {
		return sandbox, err
	}
	synced = sandbox.DeepCopy()
	if rejection := claimedsandbox.Sync(synced, o.claim, live.template); rejection != nil {
		o.events = append(o.events, metadataEvent(rejection))
		return sandbox, nil
	}
	if equality.Semantic.DeepEqual(sandbox, synced) {
		return sandbox, nil
	}
	return c.patchSandbox(ctx, sandbox, synced)
}

func (c *Controller) patchSandbox(ctx context.Context, before, after *agentsv1beta1.Sandbox) (*agentsv1beta1.Sandbox, error) {
	data, err := patch.Merge(before, after, patch.SameVersion)
	if err != nil {
		return before, fmt.Errorf("computing the patch of the Sandbox: %w", err)
	}
	updated, err := c.config.SandboxClient.AgentsV1beta1().Sandboxes(before.Namespace).
		Patch(ctx, before.Name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: Name})
	if err != nil {
		return before, fmt.Errorf("patching the Sandbox: %w", err)
	}
	updated.ManagedFields = nil
	c.sandboxWrites.Updated(updated)
	return updated, nil
}

// writeStatus patches the status subresource if the status differs, and returns the claim as it then is. It fails if the claim has changed.
func (c *Controller) writeStatus(
	ctx context.Context, claim *extensionsv1beta1.SandboxClaim, status *extensionsv1beta1.SandboxClaimStatus,
) (*extensionsv1beta1.SandboxClaim, error) {
	if equality.Semantic.DeepEqual(&claim.Status, status) {
		return claim, nil
	}
	identity := metav1.ObjectMeta{UID: claim.UID, ResourceVersion: claim.ResourceVersion}
	data, err := patch.Merge(
		&extensionsv1beta1.SandboxClaim{ObjectMeta: identity, Status: claim.Status},
		&extensionsv1beta1.SandboxClaim{ObjectMeta: identity, Status: *status}, patch.SameVersion)
	if err != nil {
		return nil, fmt.Errorf("computing the status patch: %w", err)
	}
	return c.patchClaim(ctx, claim, data, "status")
}

// stamp notes in a claim that is ready for the first time when that was, and when it was first seen. In a claim that was bound in the
// request that created it the API server has noted both.
func (c *Controller) stamp(ctx context.Context, claim *extensionsv1beta1.SandboxClaim) (*extensionsv1beta1.SandboxClaim, error) {
	if !unstamped(claim) {
		c.tellAnnounced(claim)
		return claim, nil
	}
	now := c.config.Clock.Now()
	first, seen := c.firstSeen.when(claim)
	stamped := claim.DeepCopy()
	metav1.SetMetaDataAnnotation(&stamped.ObjectMeta, extensionsv1beta1.ClaimFirstReadyAtAnnotation, now.UTC().Format(time.RFC3339Nano))
	if claim.Annotations[extensionsv1beta1.ControllerFirstObservedAtAnnotation] == "" {
		metav1.SetMetaDataAnnotation(&stamped.ObjectMeta, extensionsv1beta1.ControllerFirstObservedAtAnnotation, first.UTC().Format(time.RFC3339Nano))
	}
	data, err := patch.Merge(claim, stamped, patch.AnyVersion)
	if err != nil {
		return nil, fmt.Errorf("computing the patch of the annotations: %w", err)
	}
	updated, err := c.patchClaim(ctx, claim, data)
	if err != nil {
		return nil, err
	}
	c.started(updated, first, seen, now)
	return updated, nil
}

// tellAnnounced tells of a claim that the API server has announced, once.
func (c *Controller) tellAnnounced(claim *extensionsv1beta1.SandboxClaim) {
	first, seen := c.firstSeen.when(claim)
	ready, announced := annotatedTime(claim, extensionsv1beta1.ClaimFirstReadyAtAnnotation)
	if !seen || !announced {
		return
	}
	if at, ok := annotatedTime(claim, extensionsv1beta1.ControllerFirstObservedAtAnnotation); ok {
		first = at
	}
	c.started(claim, first, true, ready)
}

// started tells of a claim that is ready for the first time.
func (c *Controller) started(claim *extensionsv1beta1.SandboxClaim, first time.Time, seen bool, now time.Time) {
	c.firstSeen.forget(claim.UID)
	sandbox, err := c.sandboxes.Sandboxes(claim.Namespace).Get(claim.Status.Sandbox.Name)
	if err != nil {
		sandbox = &agentsv1beta1.Sandbox{}
	}
	if claim.Annotations[extensionsv1beta1.SandboxNameAnnotation] == claim.Status.Sandbox.Name {
		c.record(claim, adoptedEvent(claim.Status.Sandbox.Name))
		c.config.Metrics.countStart(claim, sandbox)
	}
	// One that was there before the process may have been ready for long.
	if seen {
		c.config.Metrics.observeReady(claim, sandbox, first, now)
	}
}

func (c *Controller) patchClaim(
	ctx context.Context, claim *extensionsv1beta1.SandboxClaim, data []byte, subresources ...string,
) (*extensionsv1beta1.SandboxClaim, error) {
	updated, err := c.config.SandboxClient.ExtensionsV1beta1().SandboxClaims(claim.Namespace).
		Patch(ctx, claim.Name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: Name}, subresources...)
	if err != nil {
		return nil, fmt.Errorf("patching the SandboxClaim: %w", err)
	}
	c.noteClaim(updated)
	klog.FromContext(ctx).V(4).Info("Wrote claim", "resourceVersion", updated.ResourceVersion)
	return updated, nil
}

// noteClaim remembers the answer to a write until the informer delivers it.
func (c *Controller) noteClaim(claim *extensionsv1beta1.SandboxClaim) {
	claim.ManagedFields = nil
	c.claimWrites.Updated(claim)
}
