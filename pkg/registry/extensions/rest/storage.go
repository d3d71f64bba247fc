// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package rest maps the resources of the extensions.agents.x-k8s.io API group to what serves them.
package rest

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	sandboxtemplatestorage "github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/extensions/sandboxtemplate/storage"
	sandboxwarmpoolstorage "github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/extensions/sandboxwarmpool/storage"
)

// Provider makes the storage of the group.
type Provider struct {
	Scheme *runtime.Scheme
}

// Storage returns the storage of each resource and subresource, by served version. Versions share one store per resource: two would
// each hold a watch cache of their own.
func (p Provider) Storage(optsGetter generic.RESTOptionsGetter) (map[string]map[string]rest.Storage, error) {
	templates, err := sandboxtemplatestorage.NewREST(p.Scheme, optsGetter)
	if err != nil {
		return nil, fmt.Errorf("storage of sandboxtemplates: %w", err)
	}
	pools, poolStatus, err := sandboxwarmpoolstorage.NewREST(p.Scheme, optsGetter)
	if err != nil {
		return nil, fmt.Errorf("storage of sandboxwarmpools: %w", err)
	}
	resources := map[string]rest.Storage{
		"sandboxtemplates":        templates,
		"sandboxwarmpools":        pools,
		"sandboxwarmpools/status": poolStatus,
		"sandboxwarmpools/scale":  sandboxwarmpoolstorage.NewScaleREST(pools),
	}
	return map[string]map[string]rest.Storage{v1beta1.SchemeGroupVersion.Version: resources}, nil
}
