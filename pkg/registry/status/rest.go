// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package status serves the status subresource of any kind.
package status

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/strategy"
)

// REST serves the status of a kind over the store of the kind.
type REST struct {
	store *genericregistry.Store
}

var (
	_ rest.Patcher             = &REST{}
	_ rest.ResetFieldsStrategy = &REST{}
)

// NewREST returns the endpoint of the status of what is in the store, which goes on to belong to whoever made it.
func NewREST(store *genericregistry.Store, strategy strategy.Status) *REST {
	status := *store
	status.UpdateStrategy = strategy
	status.ResetFieldsStrategy = strategy
	return &REST{&status}
}

// New returns an empty object.
func (r *REST) New() runtime.Object { return r.store.New() }

// Destroy does nothing: the store belongs to the main endpoint.
func (*REST) Destroy() {}

// Get returns the object. PATCH needs it.
func (r *REST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return r.store.Get(ctx, name, options)
}

// Update changes the status of an existing object. It never creates one, whatever the caller allows.
func (r *REST) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc,
	updateValidation rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return r.store.Update(ctx, name, objInfo, createValidation, updateValidation, false, options)
}

// GetResetFields implements rest.ResetFieldsStrategy.
func (r *REST) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.store.GetResetFields()
}

// ConvertToTable implements rest.TableConvertor.
func (r *REST) ConvertToTable(ctx context.Context, object, tableOptions runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, object, tableOptions)
}
