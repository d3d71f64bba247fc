// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package storage serves SandboxClaims: the endpoint itself over etcd, and its subresources.
package storage

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/labeldomains"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/extensions/sandboxclaim"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/status"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/storage/binder"
)

// REST serves sandboxclaims. A claim that is created is bound in the same request if its pool has a ready member: the storage does that,
// as binder.Binder.Decorate says.
type REST struct {
	*genericregistry.Store
	offers offers
}

var (
	_ rest.StandardStorage      = &REST{}
	_ rest.ShortNamesProvider   = &REST{}
	_ rest.SingularNameProvider = &REST{}
)

// ShortNames returns upstream's short name, which is the singular one.
func (*REST) ShortNames() []string { return []string{"sandboxclaim"} }

// NewREST returns the endpoints of sandboxclaims, of their status and of bind, over one store. optsGetter must be what binder has
// decorated. labelDomains returns the domains that labels for the Pod may have. NewREST fails if the storage cannot be set up.
func NewREST(scheme *runtime.Scheme, optsGetter generic.RESTOptionsGetter, binder *binder.Binder, labelDomains func() labeldomains.List) (*REST, *status.REST, *BindREST, error) {
	strategy := sandboxclaim.NewStrategy(scheme, labelDomains)
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &extensions.SandboxClaim{} },
		NewListFunc:               func() runtime.Object { return &extensions.SandboxClaimList{} },
		PredicateFunc:             sandboxclaim.MatchSandboxClaim,
		DefaultQualifiedResource:  extensions.Resource("sandboxclaims"),
		SingularQualifiedResource: extensions.Resource("sandboxclaim"),

		CreateStrategy:      strategy,
		UpdateStrategy:      strategy,
		DeleteStrategy:      strategy,
		ResetFieldsStrategy: strategy,

		TableConvertor: sandboxclaim.NewTableConvertor(clock.RealClock{}),
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: optsGetter, AttrFunc: sandboxclaim.GetAttrs}); err != nil {
		return nil, nil, nil, err
	}
	return &REST{store, offers{scheme, binder}}, status.NewREST(store, sandboxclaim.NewStatusStrategy(scheme)), &BindREST{store, binder}, nil
}

// Create creates a claim. It fails with Invalid if the template of the pool does not allow what the claim wants.
func (r *REST) Create(ctx context.Context, obj runtime.Object, createValidation rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	return r.Store.Create(ctx, obj, r.offers.validate(createValidation), options)
}

// Update changes a claim, or creates it where server-side apply may; then it does what Create does.
func (r *REST) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc,
	updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return r.Store.Update(ctx, name, objInfo, r.offers.validate(createValidation), updateValidation, forceAllowCreate, options)
}
