// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package rest maps the resources of the extensions.agents.x-k8s.io API group to what serves them.
package rest

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/labeldomains"
	sandboxstorage "github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/agents/sandbox/storage"
	sandboxtemplatestorage "github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/extensions/sandboxtemplate/storage"
	sandboxwarmpoolstorage "github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/extensions/sandboxwarmpool/storage"
)

// Provider makes the storage of the group.
type Provider struct {
	Scheme *runtime.Scheme
	// Types knows SandboxClaim; it tracks the ownership of fields that subresources change.
	Types managedfields.TypeConverter
	// Sandboxes are what claims are bound to.
	Sandboxes *sandboxstorage.REST
	// LabelDomains say which labels claims may put on Pods.
	LabelDomains *labeldomains.File
}

// Storage returns the storage of each resource and subresource, by served version. Versions share one store per resource: two would
// each hold a watch cache of their own. It fails if it cannot be set up.
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
