// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	storeerr "k8s.io/apiserver/pkg/storage/errors"
	"k8s.io/apiserver/pkg/util/dryrun"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/precondition"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/storage/binder"
)

// maxBindAttempts bounds how often a claim is read again because it changed between reading and binding.
const maxBindAttempts = 5

// BindREST serves sandboxclaims/bind: a POST that gives a claim which waits a ready member of its pool now. It is for the controller. It
// sets a level and is therefore safe to repeat: a claim that has a Sandbox is answered as it is.
type BindREST struct {
	claims *genericregistry.Store
	binder *binder.Binder
}

var _ rest.NamedCreater = &BindREST{}

// New returns an empty body of sandboxclaims/bind.
func (*BindREST) New() runtime.Object { return &extensions.SandboxClaimBind{} }

// Destroy does nothing: the store belongs to REST.
func (*BindREST) Destroy() {}

// Create binds the claim of the given name and returns it: bound, or as it was if there is nothing to give it. A dry run returns it as it
// is. Create fails with BadRequest if the body names another claim, and with Conflict if a precondition does not hold, the claim is being
// deleted, or others were faster at all that there was to give.
func (r *BindREST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	body, ok := obj.(*extensions.SandboxClaimBind)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a SandboxClaimBind: %T", obj))
	}
	if err := precondition.CheckName(body, name); err != nil {
		return nil, err
	}
	if validate != nil {
		if err := validate(ctx, body.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	for range maxBindAttempts {
		claim, err := r.bind(ctx, name, body, dryrun.IsDryRun(options.DryRun))
		switch {
		case errors.Is(err, binder.ErrClaimChanged):
			continue
		case errors.Is(err, binder.ErrRacesLost):
			return nil, apierrors.NewConflict(extensions.Resource("sandboxclaims"), name, err)
		case err != nil:
			return nil, storeerr.InterpretUpdateError(err, extensions.Resource("sandboxclaims"), name)
		}
		return claim, nil
	}
	return nil, apierrors.NewConflict(extensions.Resource("sandboxclaims"), name, binder.ErrClaimChanged)
}

// bind makes one attempt. It fails with binder.ErrClaimChanged if the claim changed meanwhile.
func (r *BindREST) bind(ctx context.Context, name string, body *extensions.SandboxClaimBind, dryRun bool) (*extensions.SandboxClaim, error) {
	obj, err := r.claims.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	claim := obj.(*extensions.SandboxClaim)
	if err := precondition.Check(extensions.Resource("sandboxclaims"), claim, body.Preconditions); err != nil {
		return nil, err
	}
	if claim.DeletionTimestamp != nil {
		return nil, apierrors.NewConflict(extensions.Resource("sandboxclaims"), name, errors.New("the claim is being deleted"))
	}
	if dryRun {
		return claim, nil
	}
	return r.binder.Bind(ctx, claim)
}
