// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package binder

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
)

var (
	// ErrClaimChanged means that the claim is not stored as it was passed any more.
	ErrClaimChanged = errors.New("the claim has changed meanwhile")
	// ErrRacesLost means that others were faster at all that there was to give.
	ErrRacesLost = errors.New("other claims were faster at every member of the pool")
)

// Bind gives a stored claim a Sandbox now. It returns the claim as it is stored then: with a Sandbox, or as it was if it has one already,
// may not have one of its pool, or there is none to give. It fails with ErrClaimChanged or ErrRacesLost, or as the storage does.
func (b *Binder) Bind(ctx context.Context, claim *extensions.SandboxClaim) (*extensions.SandboxClaim, error) {
	if claim.Status.Sandbox.Name != "" {
		return claim, b.Complete(ctx, claim)
	}
	external, err := b.external(claim)
	if err != nil {
		return nil, err
	}
	offer, entitled := b.entitlement(external)
	if !entitled || mustNotBind(external) {
		return claim, nil
	}
	claims := b.resources[claimResource]
	revision, err := claims.storage.Versioner().ObjectResourceVersion(claim)
	if err != nil {
		return nil, err
	}
	out := &extensions.SandboxClaim{}
	r := request{claim: external, key: claims.key(claim.Namespace, claim.Name), revision: int64(revision), offer: offer}
	outcome, err := b.give(ctx, routeBind, r, out)
	switch {
	case err != nil:
		return nil, err
	case outcome == bound:
		return out, nil
	case outcome == claimMoved:
		return nil, ErrClaimChanged
	case outcome == lostRaces:
		return nil, ErrRacesLost
	default:
		return claim, nil
	}
}

// mustNotBind says whether a claim that names no Sandbox is to be given none: one is being made for it, or it had one before, and whoever
// works with it would find himself in another one, without his files. The record of that goes when the claim expires.
func mustNotBind(claim *extensionsv1beta1.SandboxClaim) bool {
	ready := meta.FindStatusCondition(claim.Status.Conditions, extensionsv1beta1.ClaimConditionReady)
	return extensionsv1beta1.StartedCold(claim.Status.Conditions) || claim.Annotations[extensionsv1beta1.SandboxNameAnnotation] != "" ||
		ready != nil && ready.Reason == extensionsv1beta1.ClaimReasonSandboxMissing
}
