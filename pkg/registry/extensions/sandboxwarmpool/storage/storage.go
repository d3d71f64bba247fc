// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package storage serves SandboxWarmPools: the endpoint itself over etcd, and its subresources.
package storage

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/extensions/sandboxwarmpool"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/status"
)

// REST serves sandboxwarmpools.
type REST struct {
	*genericregistry.Store
}

var (
	_ rest.StandardStorage      = &REST{}
	_ rest.ShortNamesProvider   = &REST{}
	_ rest.SingularNameProvider = &REST{}
)

// ShortNames returns upstream's short name.
func (*REST) ShortNames() []string { return []string{"swp"} }

// NewREST returns the endpoint of sandboxwarmpools and that of their status, over one store. It fails if the storage cannot be set up.
func NewREST(scheme *runtime.Scheme, optsGetter generic.RESTOptionsGetter) (*REST, *status.REST, error) {
	strategy := sandboxwarmpool.NewStrategy(scheme)
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &extensions.SandboxWarmPool{} },
		NewListFunc:               func() runtime.Object { return &extensions.SandboxWarmPoolList{} },
		DefaultQualifiedResource:  extensions.Resource("sandboxwarmpools"),
		SingularQualifiedResource: extensions.Resource("sandboxwarmpool"),

		CreateStrategy:      strategy,
		UpdateStrategy:      strategy,
		DeleteStrategy:      strategy,
		ResetFieldsStrategy: strategy,

		TableConvertor: sandboxwarmpool.NewTableConvertor(clock.RealClock{}),
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: optsGetter}); err != nil {
		return nil, nil, err
	}
	return &REST{store}, status.NewREST(store, sandboxwarmpool.NewStatusStrategy(scheme)), nil
}
