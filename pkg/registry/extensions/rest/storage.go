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
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/labeldomains"
	sandboxclaimstorage "github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/extensions/sandboxclaim/storage"
	sandboxtemplatestorage "github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/extensions/sandboxtemplate/storage"
	sandboxwarmpoolstorage "github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/extensions/sandboxwarmpool/storage"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/storage/binder"
)

// Provider makes the storage of the group.
type Provider struct {
	Scheme *runtime.Scheme
	// Binder gives claims their Sandboxes.
	Binder *binder.Binder
	// LabelDomains returns the domains that labels which claims put on Pods may have.
	LabelDomains func() labeldomains.List
}

// Storage returns the storage of each resource and subresource, by served version. Versions share one store per resource: two would
// each hold a watch cache of their own. The options must be those that Binder has decorated. It fails if the storage cannot be set up.
func (p Provider) Storage(optsGetter generic.RESTOptionsGetter) (map[string]map[string]rest.Storage, error) {
	templates, err := sandboxtemplatestorage.NewREST(p.Scheme, optsGetter)
	if err != nil {
		return nil, fmt.Errorf("storage of sandboxtemplates: %w", err)
	}
	pools, poolStatus, err := sandboxwarmpoolstorage.NewREST(p.Scheme, optsGetter)
	if err != nil {
		return nil, fmt.Errorf("storage of sandboxwarmpools: %w", err)
	}
	claims, claimStatus, bind, err := sandboxclaimstorage.NewREST(p.Scheme, optsGetter, p.Binder, p.LabelDomains)
	if err != nil {
		return nil, fmt.Errorf("storage of sandboxclaims: %w", err)
	}
	resources := map[string]rest.Storage{
		"sandboxclaims":           claims,
		"sandboxclaims/status":    claimStatus,
		"sandboxclaims/bind":      bind,
		"sandboxtemplates":        templates,
		"sandboxwarmpools":        pools,
		"sandboxwarmpools/status": poolStatus,
		"sandboxwarmpools/scale":  sandboxwarmpoolstorage.NewScaleREST(pools),
	}
	return map[string]map[string]rest.Storage{v1beta1.SchemeGroupVersion.Version: resources}, nil
}
