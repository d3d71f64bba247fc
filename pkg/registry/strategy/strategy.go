// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package strategy holds what the strategies of all our kinds have in common: they live in namespaces, and behave as custom resources do.
package strategy

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Main is the strategy of the endpoint that a kind itself has.
type Main interface {
	rest.RESTCreateStrategy
	rest.RESTUpdateStrategy
	rest.RESTDeleteStrategy
	rest.ResetFieldsStrategy
}

// Status is the strategy of the status subresource.
type Status interface {
	rest.RESTUpdateStrategy
	rest.ResetFieldsStrategy
}

// Base answers those questions to a strategy whose answer does not depend on the kind.
type Base struct {
	runtime.ObjectTyper
	names.NameGenerator
}

// NewBase returns a Base for the kinds that typer knows.
func NewBase(typer runtime.ObjectTyper) Base { return Base{typer, names.SimpleNameGenerator} }

// NamespaceScoped is true for all our kinds.
func (Base) NamespaceScoped() bool { return true }

// AllowCreateOnUpdate is false as it is for custom resources: a PUT on a name that is not there answers 404.
func (Base) AllowCreateOnUpdate() bool { return false }

// AllowUnconditionalUpdate is false as it is for custom resources: a PUT must say which version it replaces.
func (Base) AllowUnconditionalUpdate() bool { return false }

// Canonicalize does nothing: objects are stored as they were sent.
func (Base) Canonicalize(runtime.Object) {}

// ResetFields names top-level fields of a version that an endpoint ignores, so that server-side apply does not give them an owner.
func ResetFields(version schema.GroupVersion, names ...string) map[fieldpath.APIVersion]*fieldpath.Set {
	paths := fieldpath.NewSet()
	for _, name := range names {
		paths.Insert(fieldpath.MakePathOrDie(name))
	}
	return map[fieldpath.APIVersion]*fieldpath.Set{fieldpath.APIVersion(version.String()): paths}
}
