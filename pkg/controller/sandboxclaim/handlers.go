// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxclaim

import (
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/claimedsandbox"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/informer"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/sandboxpod"
)

func (c *Controller) claimHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, isInInitialList bool) {
			claim, ok := obj.(*extensionsv1beta1.SandboxClaim)
			if !ok {
				return
			}
			if !isInInitialList {
				c.firstSeen.note(claim.UID, c.config.Clock.Now())
				c.config.Rush.Note()
			}
			c.claimWrites.Delivered(claim)
			c.loop.Queue.Add(cache.MetaObjectToName(claim))
		},
		UpdateFunc: func(oldObj, newObj any) {
			before, _ := oldObj.(*extensionsv1beta1.SandboxClaim)
			after, ok := newObj.(*extensionsv1beta1.SandboxClaim)
			if !ok {
				return
			}
			c.claimWrites.Delivered(after)
			if before != nil && before.UID != after.UID {
				c.firstSeen.forget(before.UID)
				c.firstSeen.note(after.UID, c.config.Clock.Now())
			}
			if claimChanged(before, after) || c.announced(before, after) {
				c.loop.Queue.Add(cache.MetaObjectToName(after))
			}
		},
		DeleteFunc: func(obj any) {
			if claim, ok := informer.Untomb(obj).(*extensionsv1beta1.SandboxClaim); ok {
				c.claimWrites.Deleted(claim)
				c.firstSeen.forget(claim.UID)
				// A pass may be under way. The next one forgets the rest.
				c.loop.Queue.Add(cache.MetaObjectToName(claim))
			}
		},
	}
}

// announced says whether the API server has announced a claim of which there is still something to tell.
func (c *Controller) announced(before, after *extensionsv1beta1.SandboxClaim) bool {
	const since = extensionsv1beta1.ClaimFirstReadyAtAnnotation
	if before.Annotations[since] != "" || after.Annotations[since] == "" {
		return false
	}
	_, untold := c.firstSeen.when(after)
	return untold
}

// claimChanged says whether a change of a claim can ask for anything. Its status cannot, nor can annotations: those that count are
// written by the system, and a pass for each of its own writes would undo that terminal errors are not retried.
func claimChanged(before, after *extensionsv1beta1.SandboxClaim) bool {
	return before == nil ||
		before.UID != after.UID ||
		before.Generation != after.Generation ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		!maps.Equal(before.Labels, after.Labels)
}

func (c *Controller) sandboxHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if sandbox, ok := obj.(*agentsv1beta1.Sandbox); ok {
				c.sandboxWrites.Delivered(sandbox)
				c.enqueueOwner(sandbox)
				c.wakeOne(nil, sandbox)
			}
		},
		UpdateFunc: func(oldObj, newObj any) {
			before, ok := oldObj.(*agentsv1beta1.Sandbox)
			after, isSandbox := newObj.(*agentsv1beta1.Sandbox)
			if !ok || !isSandbox {
				return
			}
			c.sandboxWrites.Delivered(after)
			if before.UID != after.UID {
				c.freed(before)
			}
			if sandboxChanged(before, after) {
				c.enqueueOwner(before)
				c.enqueueOwner(after)
			}
			c.wakeOne(before, after)
		},
		DeleteFunc: func(obj any) {
			if sandbox, ok := informer.Untomb(obj).(*agentsv1beta1.Sandbox); ok {
				c.sandboxWrites.Deleted(sandbox)
				c.enqueueOwner(sandbox)
				c.freed(sandbox)
			}
		},
	}
}

// sandboxChanged says whether a claim may have something to tell of a change of its Sandbox, or has got or lost it by that.
func sandboxChanged(before, after *agentsv1beta1.Sandbox) bool {
	differs := func(conditionType string) bool {
		return !equality.Semantic.DeepEqual(meta.FindStatusCondition(before.Status.Conditions, conditionType),
			meta.FindStatusCondition(after.Status.Conditions, conditionType))
	}
	return before.UID != after.UID ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		!equality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences) ||
		!equality.Semantic.DeepEqual(before.Status.PodIPs, after.Status.PodIPs) ||
		before.Status.ServiceFQDN != after.Status.ServiceFQDN ||
		differs(agentsv1beta1.SandboxConditionReady) || differs(agentsv1beta1.SandboxConditionFinished)
}

// enqueueOwner asks for a pass over the claim that controls the Sandbox, if one does.
func (c *Controller) enqueueOwner(sandbox *agentsv1beta1.Sandbox) {
	if owner := sandboxpod.ExtensionsOwner(sandbox); owner != nil && owner.Kind == sandboxpod.ClaimKind {
		c.loop.Queue.Add(cache.NewObjectName(sandbox.Namespace, owner.Name))
	}
}

// freed asks for a pass over the claim that may have waited for the name of a Sandbox, which is gone.
func (c *Controller) freed(sandbox *agentsv1beta1.Sandbox) {
	if claim, err := c.claims.SandboxClaims(sandbox.Namespace).Get(sandbox.Name); err == nil && unbound(claim) {
		c.loop.Queue.Add(cache.MetaObjectToName(claim))
	}
}

// wakeOne asks for a pass over one claim that waits for a Sandbox that has become a ready member of its pool.
func (c *Controller) wakeOne(before, after *agentsv1beta1.Sandbox) {
	owner := sandboxpod.ExtensionsOwner(after)
	if owner == nil || owner.Kind != sandboxpod.WarmPoolKind || !claimedsandbox.Ready(after) {
		return
	}
	if before != nil && before.UID == after.UID && claimedsandbox.Ready(before) {
		return
	}
	if claim, ok := c.waiting.next(cache.NewObjectName(after.Namespace, owner.Name)); ok {
		c.loop.Queue.Add(claim)
	}
}

func (c *Controller) poolHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if pool, ok := obj.(*extensionsv1beta1.SandboxWarmPool); ok {
				c.enqueueClaimsOf(pool, unbound)
			}
		},
		UpdateFunc: func(oldObj, newObj any) {
			before, ok := oldObj.(*extensionsv1beta1.SandboxWarmPool)
			after, isPool := newObj.(*extensionsv1beta1.SandboxWarmPool)
			if ok && isPool && (before.UID != after.UID || before.Generation != after.Generation) {
				c.enqueueClaimsOf(after, unbound)
			}
		},
		DeleteFunc: func(obj any) {
			if pool, ok := informer.Untomb(obj).(*extensionsv1beta1.SandboxWarmPool); ok {
				c.enqueueClaimsOf(pool, unbound)
			}
		},
	}
}

func (c *Controller) templateHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if template, ok := obj.(*extensionsv1beta1.SandboxTemplate); ok {
				// Sandboxes of bound claims may have been made from another one of this name.
				c.enqueueClaimsUsing(template, func(*extensionsv1beta1.SandboxClaim) bool { return true })
			}
		},
		UpdateFunc: func(oldObj, newObj any) {
			before, ok := oldObj.(*extensionsv1beta1.SandboxTemplate)
			after, isTemplate := newObj.(*extensionsv1beta1.SandboxTemplate)
			if ok && isTemplate && (before.UID != after.UID || before.Generation != after.Generation) {
				c.enqueueClaimsUsing(after, unbound)
			}
		},
		DeleteFunc: func(obj any) {
			if template, ok := informer.Untomb(obj).(*extensionsv1beta1.SandboxTemplate); ok {
				c.enqueueClaimsUsing(template, unbound)
			}
		},
	}
}

// enqueueClaimsUsing asks for passes over the claims that fit, on any pool of the template.
func (c *Controller) enqueueClaimsUsing(template *extensionsv1beta1.SandboxTemplate, fits func(*extensionsv1beta1.SandboxClaim) bool) {
	pools, err := lookUp[*extensionsv1beta1.SandboxWarmPool](c.poolIndex, templateIndex, nameKey(template.Namespace, template.Name))
	utilruntime.HandleError(err)
	for _, pool := range pools {
		c.enqueueClaimsOf(pool, fits)
	}
}

// enqueueClaimsOf asks for passes over the claims that fit, on the pool.
func (c *Controller) enqueueClaimsOf(pool *extensionsv1beta1.SandboxWarmPool, fits func(*extensionsv1beta1.SandboxClaim) bool) {
	claims, err := lookUp[*extensionsv1beta1.SandboxClaim](c.claimIndex, poolIndex, nameKey(pool.Namespace, pool.Name))
	utilruntime.HandleError(err)
	for _, claim := range claims {
		if fits(claim) {
			c.loop.Queue.Add(cache.MetaObjectToName(claim))
		}
	}
}

// enqueueInvalidMetadata asks for passes over the claims that other rules about labels may let pass. While a Sandbox is being made for a
// claim, its reason is that.
func (c *Controller) enqueueInvalidMetadata() {
	claims, err := c.claims.List(labels.Everything())
	utilruntime.HandleError(err)
	for _, claim := range claims {
		if readyReason(&claim.Status) == extensionsv1beta1.ClaimReasonInvalidMetadata || extensionsv1beta1.StartedCold(claim.Status.Conditions) {
			c.loop.Queue.Add(cache.MetaObjectToName(claim))
		}
	}
}
