// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/failure"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/loop"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/namespace"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/patch"
)

// reconcile makes one pass over a Sandbox. It returns after which time another pass is due even if nothing happens, or 0, and
// the error that calls for a pass sooner.
func (c *Controller) reconcile(ctx context.Context, name cache.ObjectName) (time.Duration, error) {
	cached, err := c.sandboxes.Sandboxes(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("getting the Sandbox from the cache: %w", err)
	}
	sandbox, _ := c.sandboxWrites.Latest(name, cached, true)
	if sandbox.DeletionTimestamp != nil {
		return 0, nil
	}
	if expired(sandbox, c.config.Clock.Now()) {
		return 0, c.expire(ctx, sandbox)
	}

	o, after, retry := c.reconcileChildren(ctx, sandbox)
	// After the status: who hears of an event finds in the status what it tells of.
	defer c.recordPodEvents(sandbox, o)
	if failure.Outdated(retry) {
		return untilExpiry(sandbox, c.config.Clock.Now()), retry
	}
	now := c.config.Clock.Now()
	if expired(sandbox, now) {
		return 0, c.expire(ctx, sandbox)
	}
	wait, err := c.updateStatus(ctx, sandbox, observedStatus(sandbox, o, c.config.ClusterDomain, now))
	// The write took its time, for which the shutdown time does not wait.
	return loop.Soonest(after, wait, expiryDelay(sandbox, c.config.Clock.Now())), errors.Join(retry, err)
}

// reconcileChildren goes through the children, each of them even if the one before failed, and returns what it found, after
// which time to look again, and the error to retry for. Errors that a retry cannot mend are in the observation only.
func (c *Controller) reconcileChildren(ctx context.Context, sandbox *agentsv1beta1.Sandbox) (*observation, time.Duration, error) {
	o := &observation{}
	claimErr := c.reconcilePersistentVolumeClaims(ctx, sandbox)
	o.pod, o.podErr = c.reconcilePod(ctx, sandbox, o)

	var serviceErr error
	if o.serviceUnknown = errors.As(o.podErr, new(*multiplePodsError)); !o.serviceUnknown {
		o.service, serviceErr = c.reconcileService(ctx, sandbox)
		o.serviceUnknown = serviceErr != nil
	}

	var after time.Duration
	var seen, retry []error
	for _, err := range []error{claimErr, o.podErr, serviceErr} {
		switch {
		case err == nil:
		case failure.Outdated(err):
			return o, 0, err
		case namespace.IsTerminating(err):
			after = namespace.TerminatingDelay
		default:
			seen = append(seen, err)
			if !failure.Terminal(err) && !errors.As(err, new(*multiplePodsError)) {
				retry = append(retry, err)
			}
		}
	}
	if namespace.IsTerminating(o.podErr) {
		o.podErr = nil
	}
	if suspended(sandbox) && o.pod != nil && o.ownedPod(sandbox) == nil {
		// Nothing may tell when a Pod goes that has neither the owner nor the label.
		after = loop.Soonest(after, foreignPodDelay)
	}
	o.err = errors.Join(seen...)
	return o, after, errors.Join(retry...)
}

// updateStatus writes the status if it is worth a write now, and returns after which time it will be, or 0.
func (c *Controller) updateStatus(ctx context.Context, sandbox *agentsv1beta1.Sandbox, status *agentsv1beta1.SandboxStatus) (time.Duration, error) {
	delay := statusDelay
	switch urgency(&sandbox.Status, status) {
	case statusUnchanged:
		c.progress.written(sandbox.UID)
		return 0, nil
	case statusRidesAlong:
		return 0, nil
	case statusRoutine:
		delay = routineDelay
		fallthrough
	case statusMayWait:
		if wait := c.progress.hold(sandbox.UID, c.config.Clock.Now(), delay); wait > 0 {
			return wait, nil
		}
	}
	_, err := c.writeStatus(ctx, sandbox, status, patch.AnyVersion)
	if failure.ObjectNotFound(err) {
		return 0, nil
	}
	return 0, err
}

// writeStatus patches the status subresource, tells of what has changed by it, and returns the Sandbox as it then is.
func (c *Controller) writeStatus(ctx context.Context, sandbox *agentsv1beta1.Sandbox, status *agentsv1beta1.SandboxStatus, lock patch.Lock) (*agentsv1beta1.Sandbox, error) {
	identity := metav1.ObjectMeta{UID: sandbox.UID, ResourceVersion: sandbox.ResourceVersion}
	data, err := patch.Merge(
		&agentsv1beta1.Sandbox{ObjectMeta: identity, Status: sandbox.Status},
		&agentsv1beta1.Sandbox{ObjectMeta: identity, Status: *status}, lock)
	if err != nil {
		return nil, fmt.Errorf("computing the status patch: %w", err)
	}
	updated, err := c.config.SandboxClient.AgentsV1beta1().Sandboxes(sandbox.Namespace).
		Patch(ctx, sandbox.Name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: Name}, "status")
	if err != nil {
		return nil, fmt.Errorf("patching the status: %w", err)
	}
	updated.ManagedFields = nil
	c.sandboxWrites.Updated(updated)
	c.progress.written(sandbox.UID)

	c.record(sandbox, nil, transitionEvents(sandbox, &sandbox.Status, status))
	klog.FromContext(ctx).V(4).Info("Wrote status", "resourceVersion", updated.ResourceVersion)
	return updated, nil
}

// liveSandbox reads the Sandbox from its server. It returns ErrStale if that has no such Sandbox, or has it only to delete it:
// then there is nothing to do for it, and nothing may be done against its children either.
func (c *Controller) liveSandbox(ctx context.Context, sandbox *agentsv1beta1.Sandbox) (*agentsv1beta1.Sandbox, error) {
	live, err := c.config.SandboxClient.AgentsV1beta1().Sandboxes(sandbox.Namespace).Get(ctx, sandbox.Name, metav1.GetOptions{})
	switch {
	case failure.ObjectNotFound(err):
		return nil, failure.ErrStale
	case err != nil:
		return nil, fmt.Errorf("getting the Sandbox: %w", err)
	case live.UID != sandbox.UID || live.DeletionTimestamp != nil:
		return nil, failure.ErrStale
	}
	return live, nil
}
