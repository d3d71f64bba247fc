// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxclaim

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/claimedsandbox"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/failure"
)

// deliveryDelay is how long the cache of Sandboxes is expected to lag behind that of claims at most. A claim that was just bound waits so
// long for the event that says so of its Sandbox, before anything is asked.
const deliveryDelay = 2 * time.Second

// finding is what there is of a claim's Sandbox. All empty: it has never had one.
type finding struct {
	// sandbox is the Sandbox that the claim controls.
	sandbox *agentsv1beta1.Sandbox
	// notYet is how long to wait for the cache before it is asked for.
	notYet time.Duration
	// reserved says that the claim has been given a Sandbox, which has not been handed over to it.
	reserved bool
	// lost says that the claim had a Sandbox, which is gone.
	lost bool
}

// find looks for the Sandbox of a claim.
func (c *Controller) find(ctx context.Context, claim *extensionsv1beta1.SandboxClaim) (finding, error) {
	sandbox, err := c.cachedSandbox(claim)
	if err != nil || sandbox != nil {
		return finding{sandbox: sandbox}, err
	}
	name := claim.Status.Sandbox.Name
	if start, _ := c.coldStarts.of(claim); start.made && extensionsv1beta1.StartedCold(claim.Status.Conditions) {
		// The claim has not said so yet.
		name = claim.Name
	}
	if name == "" {
		return finding{lost: readyReason(&claim.Status) == extensionsv1beta1.ClaimReasonSandboxMissing}, nil
	}
	if _, err := c.sandboxes.Sandboxes(claim.Namespace).Get(name); err == nil {
		if wait := deliveryDelay - c.config.Clock.Since(claim.CreationTimestamp.Time); wait > 0 {
			return finding{notYet: wait}, nil
		}
	}
	live, err := c.liveSandbox(ctx, claim.Namespace, name)
	switch {
	case err != nil:
		return finding{}, err
	case live != nil && claimedsandbox.Controls(claim, live):
		return finding{sandbox: live}, nil
	case live != nil && live.Annotations[extensionsv1beta1.ReservedForClaimAnnotation] == string(claim.UID):
		return finding{reserved: true}, nil
	default:
		// Of a claim that had expired the Sandbox was deleted on purpose. It may have another if it has got more time.
		return finding{lost: !markedExpired(&claim.Status)}, nil
	}
}

// cachedSandbox returns the Sandbox that the claim controls as far as the cache, and what was written of late, tell. Of several, which can
// only be somebody's doing, it is the one that the claim says.
func (c *Controller) cachedSandbox(claim *extensionsv1beta1.SandboxClaim) (*agentsv1beta1.Sandbox, error) {
	indexed, err := lookUp[*agentsv1beta1.Sandbox](c.sandboxIndex, ownerIndex, ownerKey(claim.Namespace, claim.UID))
	if err != nil {
		return nil, err
	}
	var found *agentsv1beta1.Sandbox
	consider := func(sandbox *agentsv1beta1.Sandbox) {
		if claimedsandbox.Controls(claim, sandbox) && (found == nil || sandbox.Name == claim.Status.Sandbox.Name) {
			found = sandbox
		}
	}
	for _, cached := range indexed {
		latest, _ := c.sandboxWrites.Latest(cache.MetaObjectToName(cached), cached, true)
		consider(latest)
	}
	// One that was just made for the claim has its name.
	cached, err := c.sandboxes.Sandboxes(claim.Namespace).Get(claim.Name)
	if made, ok := c.sandboxWrites.Latest(cache.MetaObjectToName(claim), cached, err == nil); ok {
		consider(made)
	}
	return found, nil
}

// liveSandbox reads a Sandbox from its server. It returns nil if there is none.
func (c *Controller) liveSandbox(ctx context.Context, namespace, name string) (*agentsv1beta1.Sandbox, error) {
	live, err := c.config.SandboxClient.AgentsV1beta1().Sandboxes(namespace).Get(ctx, name, metav1.GetOptions{})
	if failure.ObjectNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("getting the Sandbox: %w", err)
	}
	return live, nil
}

// liveClaim reads the claim from its server. It returns failure.ErrStale if that has no such claim, or has it only to delete it.
func (c *Controller) liveClaim(ctx context.Context, claim *extensionsv1beta1.SandboxClaim) (*extensionsv1beta1.SandboxClaim, error) {
	live, err := c.config.SandboxClient.ExtensionsV1beta1().SandboxClaims(claim.Namespace).Get(ctx, claim.Name, metav1.GetOptions{})
	switch {
	case failure.ObjectNotFound(err):
		return nil, failure.ErrStale
	case err != nil:
		return nil, fmt.Errorf("getting the SandboxClaim: %w", err)
	case live.UID != claim.UID || live.DeletionTimestamp != nil:
		return nil, failure.ErrStale
	}
	return live, nil
}

// source is where the Sandbox of a claim comes from: its pool and the template that the pool names. Either is nil if there is none.
type source struct {
	pool     *extensionsv1beta1.SandboxWarmPool
	template *extensionsv1beta1.SandboxTemplate
}

func (c *Controller) cachedSource(claim *extensionsv1beta1.SandboxClaim) source {
	pool, err := c.pools.SandboxWarmPools(claim.Namespace).Get(claim.Spec.WarmPoolRef.Name)
	if err != nil {
		return source{}
	}
	template, err := c.templates.SandboxTemplates(claim.Namespace).Get(pool.Spec.SandboxTemplateRef.Name)
	if err != nil {
		return source{pool: pool}
	}
	return source{pool: pool, template: template}
}

func (c *Controller) liveSource(ctx context.Context, claim *extensionsv1beta1.SandboxClaim) (source, error) {
	client := c.config.SandboxClient.ExtensionsV1beta1()
	pool, err := client.SandboxWarmPools(claim.Namespace).Get(ctx, claim.Spec.WarmPoolRef.Name, metav1.GetOptions{})
	if failure.ObjectNotFound(err) {
		return source{}, nil
	}
	if err != nil {
		return source{}, fmt.Errorf("getting the SandboxWarmPool: %w", err)
	}
	template, err := client.SandboxTemplates(claim.Namespace).Get(ctx, pool.Spec.SandboxTemplateRef.Name, metav1.GetOptions{})
	if failure.ObjectNotFound(err) {
		return source{pool: pool}, nil
	}
	if err != nil {
		return source{}, fmt.Errorf("getting the SandboxTemplate: %w", err)
	}
	return source{pool: pool, template: template}, nil
}
