// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package rest maps the resources of the agents.x-k8s.io API group to what serves them.
package rest

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	sandboxstorage "github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/agents/sandbox/storage"
)

// Provider makes the storage of the group.
type Provider struct {
	Scheme *runtime.Scheme
	// Types knows Sandbox; it tracks the ownership of fields that subresources change.
	Types managedfields.TypeConverter
	// Authorizer decides about streams, whose HTTP verb does not tell what they do.
	Authorizer authorizer.Authorizer
	// Pods reads Pods with this server's own rights.
	Pods corev1client.PodsGetter
	// Streamer opens streams to Pods with this server's own rights.
	Streamer sandboxstorage.ExecStreamer
}

// Storage returns the storage of each resource and subresource, by served version. Versions share one store per resource: two would
// each hold a watch cache of their own.
func (p Provider) Storage(optsGetter generic.RESTOptionsGetter) (map[string]map[string]rest.Storage, error) {
	sandboxes, status, err := sandboxstorage.NewREST(p.Scheme, optsGetter)
	if err != nil {
		return nil, fmt.Errorf("storage of sandboxes: %w", err)
	}
	suspend, resume, err := sandboxstorage.NewOperatingModeREST(p.Scheme, p.Types, sandboxes)
	if err != nil {
		return nil, fmt.Errorf("storage of sandboxes: %w", err)
	}
	resources := map[string]rest.Storage{
		"sandboxes":         sandboxes,
		"sandboxes/status":  status,
		"sandboxes/suspend": suspend,
		"sandboxes/resume":  resume,
		"sandboxes/exec":    sandboxstorage.NewExecREST(sandboxes, p.Pods, p.Authorizer, p.Streamer),
	}
	return map[string]map[string]rest.Storage{v1beta1.SchemeGroupVersion.Version: resources}, nil
}
