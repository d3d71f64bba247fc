// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package binder

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
)

// claimStorage is the storage of claims. A claim that is created in it gets a Sandbox at once, if there is one to give; otherwise it is
// stored as it is, and waits. Requests come here after strategy and admission, and dry runs do not come at all.
type claimStorage struct {
	storage.Interface
	binder *Binder
}

// Create implements storage.Interface.
func (s *claimStorage) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	claim, isClaim := obj.(*extensions.SandboxClaim)
	stored, wanted := out.(*extensions.SandboxClaim)
	if isClaim && wanted && ttl == 0 && claim.ResourceVersion == "" {
		if done, err := s.binder.create(ctx, key, claim, stored); done || err != nil {
			return err
		}
	}
	return s.Interface.Create(ctx, key, obj, out, ttl)
}

// errCreates ends an update that turns out to create a claim.
var errCreates = errors.New("the update creates a claim")

// GuaranteedUpdate implements storage.Interface. Server-side apply creates claims by an update of what does not exist; they are bound as
// others are.
func (s *claimStorage) GuaranteedUpdate(ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, cachedExistingObject runtime.Object) error {
	if !ignoreNotFound {
		return s.Interface.GuaranteedUpdate(ctx, key, destination, ignoreNotFound, preconditions, tryUpdate, cachedExistingObject)
	}
	var created runtime.Object
	err := s.Interface.GuaranteedUpdate(ctx, key, destination, ignoreNotFound, preconditions, func(input runtime.Object, meta storage.ResponseMeta) (runtime.Object, *uint64, error) {
		updated, ttl, err := tryUpdate(input, meta)
		if err == nil && meta.ResourceVersion == 0 {
			created = updated
			return nil, nil, errCreates
		}
		return updated, ttl, err
	}, cachedExistingObject)
	if !errors.Is(err, errCreates) {
		return err
	}
	if err := s.Create(ctx, key, created, destination, 0); !storage.IsExist(err) {
		return err
	}
	return s.Interface.GuaranteedUpdate(ctx, key, destination, ignoreNotFound, preconditions, tryUpdate, cachedExistingObject)
}

// create stores a new claim together with the Sandbox that it gets. It says false, and has stored nothing, if there is none to give.
func (b *Binder) create(ctx context.Context, key string, claim, out *extensions.SandboxClaim) (bool, error) {
	external, err := b.external(claim)
	if err != nil {
		return false, err
	}
	offer, entitled := b.entitlement(external)
	if !entitled {
		return false, nil
	}
	b.creating.Add(1)
	defer b.creating.Add(-1)
	outcome, err := b.give(ctx, routeCreate, request{claim: external, key: key, offer: offer}, out)
	switch {
	case err != nil:
		return false, err
	case outcome == claimMoved:
		return false, storage.NewKeyExistsError(key, 0)
	case outcome == bound:
		b.announcements.AddAfter(announcement{key: key, uid: out.UID, at: b.clock.Now()}, announceDelay)
		return true, nil
	default:
		return false, nil
	}
}

// external returns the external version of a claim, which shares what it points to.
func (b *Binder) external(claim *extensions.SandboxClaim) (*extensionsv1beta1.SandboxClaim, error) {
	external, err := b.scheme.UnsafeConvertToVersion(claim, extensionsv1beta1.SchemeGroupVersion)
	if err != nil {
		return nil, err
	}
	return external.(*extensionsv1beta1.SandboxClaim), nil
}
