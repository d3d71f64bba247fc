// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package storage serves SandboxTemplates over etcd.
package storage

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/extensions/sandboxtemplate"
)

// REST serves sandboxtemplates.
type REST struct {
	*genericregistry.Store
}

var (
	_ rest.StandardStorage      = &REST{}
	_ rest.ShortNamesProvider   = &REST{}
	_ rest.SingularNameProvider = &REST{}
)

// ShortNames returns upstream's short name, which is the singular one.
func (*REST) ShortNames() []string { return []string{"sandboxtemplate"} }

// NewREST returns the endpoint of sandboxtemplates. It fails if the storage cannot be set up.
func NewREST(scheme *runtime.Scheme, optsGetter generic.RESTOptionsGetter) (*REST, error) {
	strategy := sandboxtemplate.NewStrategy(scheme)
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &extensions.SandboxTemplate{} },
		NewListFunc:               func() runtime.Object { return &extensions.SandboxTemplateList{} },
		DefaultQualifiedResource:  extensions.Resource("sandboxtemplates"),
		SingularQualifiedResource: extensions.Resource("sandboxtemplate"),

		CreateStrategy:      strategy,
		UpdateStrategy:      strategy,
		DeleteStrategy:      strategy,
		ResetFieldsStrategy: strategy,

		TableConvertor: sandboxtemplate.NewTableConvertor(clock.RealClock{}),
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: optsGetter}); err != nil {
		return nil, err
	}
	return &REST{store}, nil
}
