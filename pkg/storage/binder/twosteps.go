// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package binder

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/klog/v2"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/claimedsandbox"
)

// giveInTwoSteps gives the claim the picked candidate where one transaction is not possible: it reserves the candidate for the claim,
// stores the claim, which then says what it has been given, and hands the candidate over. Whoever is interrupted leaves
//
//   - after the first step, a member that is reserved for a claim which does not exist: it is never given to another claim. The controller
//     of pools deletes it when it has been so for a while.
//   - after the second step, a claim that has been given a member which is reserved for it: Complete hands it over.
//
// A reservation is taken back only where it is certain that no claim was stored.
func (b *Binder) giveInTwoSteps(ctx context.Context, r request, picked *candidate, out *extensions.SandboxClaim) (outcome, error) {
	if current, err := b.read(ctx, poolResource, r.claim.Namespace, r.offer.Pool.Name, &extensions.SandboxWarmPool{}); err != nil {
		b.candidates.putBack(picked)
		return failed, err
	} else if current == nil || current.(*extensionsv1beta1.SandboxWarmPool).UID != r.offer.Pool.UID {
		b.candidates.putBack(picked)
		return noCandidate, nil
	}
	if err := claimedsandbox.Adopt(picked.sandbox.DeepCopy(), r.claim, r.offer.Template); err != nil {
		b.candidates.putBack(picked)
		return noCandidate, nil
	}
	reserved, err := b.reserve(ctx, r, picked)
	switch {
	case changed(err):
		b.candidates.spend(picked, picked.revision+1)
		return lostRaces, nil
	case err != nil:
		b.later(func(ctx context.Context) error { return b.dissolve(ctx, r, picked) })
		return failed, err
	}
	revision, err := revisionOf(reserved)
	if err != nil {
		return failed, err
	}
	b.candidates.spend(picked, revision)
	return b.storeReserved(ctx, r, reserved, out)
}

// storeReserved takes the second and the third step.
func (b *Binder) storeReserved(ctx context.Context, r request, reserved *agentsv1beta1.Sandbox, out *extensions.SandboxClaim) (outcome, error) {
	now := b.clock.Now()
	claim := r.boundClaim(reserved.Name, now)
	claim.Status = claimedsandbox.Status(claim, reserved)
	ownClaim(r.claim, claim, now)
	err := b.storeClaim(ctx, r, claim, out)
	switch {
	case changed(err):
		if err := b.release(context.WithoutCancel(ctx), reserved); err != nil {
			b.later(func(ctx context.Context) error { return b.release(ctx, reserved) })
		}
		return claimMoved, nil
	case err != nil:
		// The claim may be stored. Then it says that it has the member, and what is left to do is done for it.
		return unknown, err
	}
	if err := b.handOver(ctx, claim, reserved.Name, r.offer.Template); err != nil {
		klog.FromContext(ctx).Error(err, "Handing over a reserved Sandbox is tried again", "claim", klog.KObj(claim), "sandbox", klog.KObj(reserved))
		b.later(func(ctx context.Context) error { return b.handOver(ctx, claim, reserved.Name, r.offer.Template) })
	}
	return bound, nil
}

// reserve takes the first step. It fails if the candidate is not as it was picked.
func (b *Binder) reserve(ctx context.Context, r request, picked *candidate) (*agentsv1beta1.Sandbox, error) {
	return b.updateSandbox(ctx, picked.sandbox, &picked.sandbox.ResourceVersion, func(sandbox *agentsv1beta1.Sandbox) error {
		if sandbox.Annotations == nil {
			sandbox.Annotations = map[string]string{}
		}
		sandbox.Annotations[extensionsv1beta1.ReservedForClaimAnnotation] = string(r.claim.UID)
		sandbox.Annotations[extensionsv1beta1.ReservedAtAnnotation] = b.clock.Now().UTC().Format(time.RFC3339)
		return nil
	})
}

// release takes back a reservation for a claim that was not stored. It does nothing if the Sandbox has changed since.
func (b *Binder) release(ctx context.Context, reserved *agentsv1beta1.Sandbox) error {
	_, err := b.updateSandbox(ctx, reserved, &reserved.ResourceVersion, func(sandbox *agentsv1beta1.Sandbox) error {
		delete(sandbox.Annotations, extensionsv1beta1.ReservedForClaimAnnotation)
		delete(sandbox.Annotations, extensionsv1beta1.ReservedAtAnnotation)
		return nil
	})
	if changed(err) {
		return nil
	}
	return err
}

// dissolve settles a candidate of which it is not known whether it was reserved, for a claim that was not stored.
func (b *Binder) dissolve(ctx context.Context, r request, picked *candidate) error {
	found, err := b.read(ctx, sandboxResource, picked.sandbox.Namespace, picked.sandbox.Name, &agents.Sandbox{})
	if err != nil {
		return err
	}
	if found == nil {
		b.settle(picked, 0)
		return nil
	}
	sandbox := found.(*agentsv1beta1.Sandbox)
	if sandbox.Annotations[extensionsv1beta1.ReservedForClaimAnnotation] == string(r.claim.UID) {
		if err := b.release(ctx, sandbox); err != nil {
			return err
		}
	}
	revision, err := revisionOf(sandbox)
	if err != nil {
		return err
	}
	b.settle(picked, revision)
	return nil
}

// storeClaim takes the second step.
func (b *Binder) storeClaim(ctx context.Context, r request, claim *extensionsv1beta1.SandboxClaim, out *extensions.SandboxClaim) error {
	internal, err := b.scheme.UnsafeConvertToVersion(claim, extensions.SchemeGroupVersion)
	if err != nil {
		return err
	}
	claims := b.resources[claimResource].storage
	if r.revision == 0 {
		return claims.Create(ctx, r.key, internal, out, 0)
	}
	unchanged := &storage.Preconditions{UID: &r.claim.UID, ResourceVersion: &r.claim.ResourceVersion}
	return claims.GuaranteedUpdate(ctx, r.key, out, false, unchanged, storage.SimpleUpdate(func(runtime.Object) (runtime.Object, error) {
		return internal, nil
	}), nil)
}

// handOver takes the third step. It does nothing if the Sandbox is not reserved for the claim.
func (b *Binder) handOver(ctx context.Context, claim *extensionsv1beta1.SandboxClaim, sandboxName string, template *extensionsv1beta1.SandboxTemplate) error {
	target := &agentsv1beta1.Sandbox{}
	target.Namespace, target.Name = claim.Namespace, sandboxName
	_, err := b.updateSandbox(ctx, target, nil, func(sandbox *agentsv1beta1.Sandbox) error {
		if sandbox.Annotations[extensionsv1beta1.ReservedForClaimAnnotation] != string(claim.UID) {
			return errNotReserved
		}
		err := claimedsandbox.Adopt(sandbox, claim, template)
		if err != nil {
			// The template has changed since the claim was given the Sandbox. What it says goes for those that follow.
			err = claimedsandbox.Adopt(sandbox, claim, nil)
		}
		return err
	})
	if errors.Is(err, errNotReserved) || storage.IsNotFound(err) {
		return nil
	}
	return err
}

var errNotReserved = errors.New("the Sandbox is not reserved for the claim")

// updateSandbox changes a Sandbox in its storage, if it is at the given resourceVersion or none is given. It returns the Sandbox as it is
// then.
func (b *Binder) updateSandbox(ctx context.Context, target *agentsv1beta1.Sandbox, resourceVersion *string, change func(*agentsv1beta1.Sandbox) error) (*agentsv1beta1.Sandbox, error) {
	sandboxes := b.resources[sandboxResource]
	unchanged := &storage.Preconditions{ResourceVersion: resourceVersion}
	if target.UID != "" {
		unchanged.UID = &target.UID
	}
	out := &agents.Sandbox{}
	err := sandboxes.storage.GuaranteedUpdate(ctx, sandboxes.key(target.Namespace, target.Name), out, false, unchanged,
		storage.SimpleUpdate(func(obj runtime.Object) (runtime.Object, error) {
			before, err := b.scheme.UnsafeConvertToVersion(obj, agentsv1beta1.SchemeGroupVersion)
			if err != nil {
				return nil, err
			}
			sandbox := before.DeepCopyObject().(*agentsv1beta1.Sandbox)
			if err := change(sandbox); err != nil {
				return nil, err
			}
			ownSandbox(before.(*agentsv1beta1.Sandbox), sandbox, b.clock.Now())
			return b.scheme.UnsafeConvertToVersion(sandbox, agents.SchemeGroupVersion)
		}), nil)
	if err != nil {
		return nil, err
	}
	updated, err := b.scheme.UnsafeConvertToVersion(out, agentsv1beta1.SchemeGroupVersion)
	if err != nil {
		return nil, err
	}
	return updated.(*agentsv1beta1.Sandbox), nil
}

// changed says whether an error means that an object is not as it was thought to be, and that nothing was written.
func changed(err error) bool {
	return storage.IsExist(err) || storage.IsNotFound(err) || storage.IsConflict(err) || storage.IsInvalidObj(err) || apierrors.IsConflict(err)
}

// Complete hands the Sandbox over that a claim says it has, if it is still reserved for the claim: the server that gave it may have ended
// between two steps.
func (b *Binder) Complete(ctx context.Context, claim *extensions.SandboxClaim) error {
	external, err := b.external(claim)
	if err != nil {
		return err
	}
	name := types.NamespacedName{Namespace: claim.Namespace, Name: claim.Status.Sandbox.Name}
	found, err := b.read(ctx, sandboxResource, name.Namespace, name.Name, &agents.Sandbox{})
	if err != nil || found == nil {
		return err
	}
	if found.(*agentsv1beta1.Sandbox).Annotations[extensionsv1beta1.ReservedForClaimAnnotation] != string(claim.UID) {
		return nil
	}
	return b.handOver(ctx, external, name.Name, b.Offer(claim.Namespace, claim.Spec.WarmPoolRef.Name).Template)
}
