// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxclaim

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/claimedsandbox"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/failure"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/namespace"
)

// startCold makes a Sandbox for the claim. First the claim says so: from then on it is given no member of a pool, by requests that are
// under way neither, whatever becomes of the request to make the Sandbox, and whoever finds the claim goes on with it.
func (c *Controller) startCold(ctx context.Context, o *outcome, from source) {
	if from.template == nil {
		c.fail(o, &notReady{
			extensionsv1beta1.ClaimReasonTemplateNotFound, fmt.Sprintf("SandboxTemplate %q not found", from.pool.Spec.SandboxTemplateRef.Name),
		})
		return
	}
	if c.terminating.Holds(o.claim) {
		o.after = namespace.TerminatingDelay
		return
	}
	desired, err := claimedsandbox.New(o.claim, from.template)
	if err == nil {
		err = c.rehearse(ctx, o.claim, desired)
	}
	if err != nil {
		c.notMade(o, err)
		return
	}
	if err := c.commit(ctx, o); err != nil {
		o.retry = ignoreNotFound(err)
		return
	}
	sandbox, created, err := c.createSandbox(ctx, o.claim, desired)
	switch {
	case err == nil:
	case !answered(err):
		c.coldStarts.note(o.claim, coldStart{open: true})
	case !apierrors.IsTooManyRequests(err) && !failure.Unavailable(err):
		sandbox, err = c.settle(ctx, o, err)
	}
	if err != nil {
		c.notMade(o, err)
		return
	}
	sandbox.ManagedFields = nil
	c.sandboxWrites.Created(sandbox)
	if created {
		c.config.Metrics.countStart(o.claim, sandbox)
		o.events = append(o.events, provisionedEvent(sandbox.Name))
	}
	c.mirror(o, sandbox)
}

// rehearse asks whether the Sandbox would be refused, if one was before. Otherwise each attempt would change the claim twice: from the
// reason to the intent, and back.
func (c *Controller) rehearse(ctx context.Context, claim *extensionsv1beta1.SandboxClaim, desired *agentsv1beta1.Sandbox) error {
	switch readyReason(&claim.Status) {
	case extensionsv1beta1.ClaimReasonReconcilerError, agentsv1beta1.SandboxReasonInvalidConfiguration:
		_, _, err := c.createSandbox(ctx, claim, desired, metav1.DryRunAll)
		return err
	default:
		return nil
	}
}

// commit makes the claim say that a Sandbox is being made for it, unless this process has made it say so. It fails if the claim has
// changed. What another process has begun is taken over by a change of the claim, so that nothing which that process still has under
// way for the claim succeeds, apart from making the Sandbox.
func (c *Controller) commit(ctx context.Context, o *outcome) error {
	start, known := c.coldStarts.of(o.claim)
	begun := extensionsv1beta1.StartedCold(o.claim.Status.Conditions)
	if known && begun {
		return nil
	}
	text := fmt.Sprintf("Sandbox %q is being created", o.claim.Name)
	if begun {
		text += "; taken over at version " + o.claim.ResourceVersion
	}
	status := statusWithoutSandbox(o.claim, &notReady{extensionsv1beta1.ClaimReasonSandboxCreatePending, text}, c.config.Clock.Now())
	updated, err := c.writeStatus(ctx, o.claim, status)
	if err != nil {
		return err
	}
	o.claim = updated
	c.coldStarts.note(updated, coldStart{open: begun || start.open})
	return nil
}

// mayBeMade says whether the claim's Sandbox may come into being without anything being done for it.
func (c *Controller) mayBeMade(claim *extensionsv1beta1.SandboxClaim) bool {
	if start, known := c.coldStarts.of(claim); known {
		return start.open
	}
	return extensionsv1beta1.StartedCold(claim.Status.Conditions)
}

// maxRequestAge is for how long requests must have been refused until one from before, which got no answer, is taken for refused too. It is
// twice the time after which API servers end a request of their own accord, whose default is a minute (--request-timeout).
const maxRequestAge = 2 * time.Minute

// settle decides what the refusal of a request to make the Sandbox means for an earlier one that got no answer: nothing, until servers that
// do their work have long had the time to end it. Otherwise the claim could wait for ever, for a quota that members of its pool use up,
// while others are given these members. It returns the Sandbox if that has been made after all, or else the refusal.
func (c *Controller) settle(ctx context.Context, o *outcome, refusal error) (*agentsv1beta1.Sandbox, error) {
	start, _ := c.coldStarts.of(o.claim)
	if !start.open {
		return nil, refusal
	}
	now := c.config.Clock.Now()
	if start.refusedAt.IsZero() {
		start.refusedAt = now
		c.coldStarts.note(o.claim, start)
	}
	if o.after = start.refusedAt.Add(maxRequestAge).Sub(now); o.after > 0 {
		return nil, refusal
	}
	live, err := c.liveSandbox(ctx, o.claim.Namespace, o.claim.Name)
	switch {
	case err != nil:
		return nil, err
	case live != nil && claimedsandbox.Controls(o.claim, live):
		return live, nil
	}
	c.coldStarts.note(o.claim, coldStart{})
	// The next pass may find a member for the claim.
	o.after = again
	return nil, refusal
}

// createSandbox creates the Sandbox of the claim, or finds it created.
func (c *Controller) createSandbox(
	ctx context.Context, claim *extensionsv1beta1.SandboxClaim, desired *agentsv1beta1.Sandbox, dryRun ...string,
) (*agentsv1beta1.Sandbox, bool, error) {
	sandboxes := c.config.SandboxClient.AgentsV1beta1().Sandboxes(claim.Namespace)
	sandbox, created, err := namespace.CreateOrGet(c.terminating, claim,
		func() (*agentsv1beta1.Sandbox, error) {
			return sandboxes.Create(ctx, desired, metav1.CreateOptions{FieldManager: Name, DryRun: dryRun})
		},
		func() (*agentsv1beta1.Sandbox, error) {
			return sandboxes.Get(ctx, desired.Name, metav1.GetOptions{})
		})
	switch {
	case err != nil:
		return nil, false, fmt.Errorf("creating sandbox %q: %w", desired.Name, err)
	case !claimedsandbox.Controls(claim, sandbox):
		return nil, false, &nameTakenError{sandbox.Name}
	default:
		return sandbox, created, nil
	}
}

// notMade decides what it means for the claim that its Sandbox could not be made.
func (c *Controller) notMade(o *outcome, err error) {
	switch {
	case namespace.IsTerminating(err):
		o.after = namespace.TerminatingDelay
	case failure.Outdated(err) && !failure.Terminal(err), apierrors.IsTooManyRequests(err):
		o.retry = err
	default:
		problem, retry := blame(err)
		c.fail(o, problem)
		if retry {
			o.retry = err
		}
	}
}

// answered says whether an error is the API server's word that it has not done what was asked, and will not.
func answered(err error) bool {
	return failure.Outdated(err) || namespace.IsTerminating(err) || errors.As(err, new(*nameTakenError)) ||
		apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsUnauthorized(err) ||
		apierrors.IsMethodNotSupported(err) || apierrors.IsNotFound(err) || apierrors.IsTooManyRequests(err)
}
