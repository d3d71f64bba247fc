// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package storage serves Sandboxes: the endpoint itself over etcd, and its subresources.
package storage

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/agents/sandbox"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/status"
)

// REST serves sandboxes.
type REST struct {
	*genericregistry.Store
}

var (
	_ rest.StandardStorage      = &REST{}
	_ rest.ShortNamesProvider   = &REST{}
	_ rest.SingularNameProvider = &REST{}
)

// ShortNames returns upstream's short name, which is the singular one.
func (*REST) ShortNames() []string { return []string{"sandbox"} }

// NewREST returns the endpoint of sandboxes and that of their status, over one store. It fails if the storage cannot be set up.
func NewREST(scheme *runtime.Scheme, optsGetter generic.RESTOptionsGetter) (*REST, *status.REST, error) {
	strategy := sandbox.NewStrategy(scheme)
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &agents.Sandbox{} },
		NewListFunc:               func() runtime.Object { return &agents.SandboxList{} },
		PredicateFunc:             sandbox.MatchSandbox,
		DefaultQualifiedResource:  agents.Resource("sandboxes"),
		SingularQualifiedResource: agents.Resource("sandbox"),

		CreateStrategy:      strategy,
		UpdateStrategy:      strategy,
		DeleteStrategy:      strategy,
		ResetFieldsStrategy: strategy,

		TableConvertor: sandbox.NewTableConvertor(clock.RealClock{}),
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: optsGetter, AttrFunc: sandbox.GetAttrs}); err != nil {
		return nil, nil, err
	}
	return &REST{store}, status.NewREST(store, sandbox.NewStatusStrategy(scheme)), nil
}
