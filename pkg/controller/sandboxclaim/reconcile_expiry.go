// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxclaim

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/claimedsandbox"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/failure"
)

// expire announces in the status that the claim has expired, and then deletes it, or its Sandbox. The announcement is conditional on the
// version that was found expired: whoever was told before that the claim has more time has won.
func (c *Controller) expire(ctx context.Context, claim *extensionsv1beta1.SandboxClaim) error {
	cached, err := c.cachedSandbox(claim)
	if err != nil {
		return err
	}
	if markedExpired(&claim.Status) && !deletedOnExpiry(claim) && cleared(claim) && (cached == nil || cached.DeletionTimestamp != nil) {
		return nil
	}
	live, err := c.liveClaim(ctx, claim)
	if err != nil {
		return err
	}
	if !expired(live, c.config.Clock.Now()) {
		return failure.ErrStale
	}
	if !markedExpired(&live.Status) {
		if live, err = c.writeStatus(ctx, live, statusNotReady(live, expiry(""), c.config.Clock.Now())); err != nil {
			return ignoreNotFound(err)
		}
		c.record(live, expiredEvent())
	}
	if deletedOnExpiry(live) {
		return c.deleteClaim(ctx, live)
	}
	return c.retain(ctx, live)
}

// expiry is the state of a claim that has expired. The obstacle says why its Sandbox is not deleted.
func expiry(obstacle string) *notReady {
	if obstacle == "" {
		return &notReady{extensionsv1beta1.ClaimReasonExpired, "Claim expired. Sandbox cleanup initiated."}
	}
	return &notReady{extensionsv1beta1.ClaimReasonExpired, "Claim expired. " + obstacle + "; deletion skipped."}
}

func cleared(claim *extensionsv1beta1.SandboxClaim) bool { return claim.Status.Sandbox.Name == "" }

// deleteClaim deletes the claim in exactly the version that was found expired. Its Sandbox is left to the garbage collector.
func (c *Controller) deleteClaim(ctx context.Context, live *extensionsv1beta1.SandboxClaim) error {
	err := c.config.SandboxClient.ExtensionsV1beta1().SandboxClaims(live.Namespace).Delete(ctx, live.Name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &live.UID, ResourceVersion: &live.ResourceVersion},
		PropagationPolicy: propagation(live),
	})
	if err != nil {
		return ignoreNotFound(fmt.Errorf("deleting the expired SandboxClaim: %w", err))
	}
	c.record(live, deletingEvent(live.Spec.Lifecycle.ShutdownPolicy))
	klog.FromContext(ctx).V(2).Info("Deleted expired claim", "uid", live.UID)
	return nil
}

// retain deletes the Sandbox of a claim that stays, and clears what the claim says of it once it is gone.
func (c *Controller) retain(ctx context.Context, live *extensionsv1beta1.SandboxClaim) error {
	sandbox, obstacle, err := c.toDelete(ctx, live)
	switch {
	case err != nil:
		return err
	case sandbox != nil && sandbox.DeletionTimestamp != nil:
		return nil
	case sandbox != nil:
		return c.deleteSandbox(ctx, sandbox)
	}
	_, err = c.writeStatus(ctx, live, statusWithoutSandbox(live, expiry(obstacle), c.config.Clock.Now()))
	return ignoreNotFound(err)
}

// toDelete returns the Sandbox of an expired claim. If there is none it is nil, and the obstacle says if somebody else's has its name.
func (c *Controller) toDelete(
	ctx context.Context, claim *extensionsv1beta1.SandboxClaim,
) (sandbox *agentsv1beta1.Sandbox, obstacle string, err error) {
	if cached, err := c.cachedSandbox(claim); err != nil || cached != nil {
		return cached, "", err
	}
	name := claim.Status.Sandbox.Name
	if name == "" {
		// One may have been made that the claim has not been told of.
		name = claim.Name
	}
	live, err := c.liveSandbox(ctx, claim.Namespace, name)
	switch {
	case err != nil || live == nil:
		return nil, "", err
	case claimedsandbox.Controls(claim, live):
		return live, "", nil
	case claim.Status.Sandbox.Name == "":
		return nil, "", nil
	default:
		return nil, fmt.Sprintf("sandbox not owned by this claim: sandbox %q is not owned by claim %q", name, claim.Name), nil
	}
}

// deleteSandbox deletes the Sandbox of an expired claim. The event of its deletion brings the claim back.
func (c *Controller) deleteSandbox(ctx context.Context, sandbox *agentsv1beta1.Sandbox) error {
	err := c.config.SandboxClient.AgentsV1beta1().Sandboxes(sandbox.Namespace).Delete(ctx, sandbox.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &sandbox.UID},
	})
	if failure.ObjectNotFound(err) {
		// The cache is late, or there is nothing that it will tell of.
		return errors.Join(failure.ErrStale, err)
	}
	if err != nil {
		return fmt.Errorf("deleting the Sandbox of the expired SandboxClaim: %w", err)
	}
	klog.FromContext(ctx).V(2).Info("Deleted the Sandbox of an expired claim", "sandbox", sandbox.Name, "uid", sandbox.UID)
	return nil
}
