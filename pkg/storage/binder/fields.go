// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package binder

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
)

// What binding changes belongs to this manager, through this subresource, whichever request it happens in.
const (
	fieldManager = "sandbox-apiserver"
	subresource  = "bind"
)

// fields keeps managedFields for what binding changes, which does not come through the generic handlers. Without an owner a later
// server-side apply could take a label of a bound Sandbox away, or give it another value, without a conflict.
type fields struct {
	claims, sandboxes *managedfields.FieldManager
}

func newFields(scheme *runtime.Scheme, types managedfields.TypeConverter) (*fields, error) {
	claims, err := managedfields.NewDefaultFieldManager(types, scheme, scheme, scheme,
		extensionsv1beta1.SchemeGroupVersion.WithKind("SandboxClaim"), extensions.SchemeGroupVersion, subresource, nil)
	if err != nil {
		return nil, fmt.Errorf("tracking field ownership of claims: %w", err)
	}
	sandboxes, err := managedfields.NewDefaultFieldManager(types, scheme, scheme, scheme,
		agentsv1beta1.SchemeGroupVersion.WithKind("Sandbox"), agents.SchemeGroupVersion, subresource, nil)
	if err != nil {
		return nil, fmt.Errorf("tracking field ownership of Sandboxes: %w", err)
	}
	return &fields{claims, sandboxes}, nil
}

// ownClaim notes in the claim what was changed in it.
func (f *fields) ownClaim(before, claim *extensionsv1beta1.SandboxClaim) {
	f.claims.UpdateNoErrors(before, claim, fieldManager)
}

// ownSandbox notes in the Sandbox what was changed in it. What the Pod runs is left out of the comparison: binding never changes it, and
// to look through it takes more time than all the rest of binding.
func (f *fields) ownSandbox(before, sandbox *agentsv1beta1.Sandbox) {
	compared := metadataOnly(sandbox)
	f.sandboxes.UpdateNoErrors(metadataOnly(before), compared, fieldManager)
	sandbox.ManagedFields = compared.ManagedFields
}

// metadataOnly returns a Sandbox that shares with another all that binding may change, and has nothing else.
func metadataOnly(sandbox *agentsv1beta1.Sandbox) *agentsv1beta1.Sandbox {
	light := &agentsv1beta1.Sandbox{TypeMeta: sandbox.TypeMeta, ObjectMeta: sandbox.ObjectMeta}
	light.Spec.PodTemplate.Metadata = sandbox.Spec.PodTemplate.Metadata
	return light
}
