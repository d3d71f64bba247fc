// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package strategy makes the strategies of a kind from what is particular to it. What they have in common is here: our kinds live in
// namespaces and behave as custom resources do, a change of the spec is a new generation, and the status has an endpoint of its own.
package strategy

import (
	"context"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
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

// Kind is what is particular to a kind. Its objects, in the internal version, are of type O, their specs of type S and their statuses of
// type U.
type Kind[O, S, U any] struct {
	// Version is the version that is served.
	Version schema.GroupVersion
	// Parts returns the spec and the status of an object. A kind without a status has nil for it.
	Parts func(*O) (*S, *U)
	// Validate returns what is wrong with a new object.
	Validate func(*O) field.ErrorList
	// ValidateUpdate returns what is wrong with a change to an object.
	ValidateUpdate func(changed, old *O) field.ErrorList
	// ValidateStatusUpdate returns what is wrong with a change to the status. A kind without a status needs none.
	ValidateStatusUpdate func(changed, old *O) field.ErrorList
	// Warnings returns what is allowed in an object and yet hardly meant, and was not so in the old one. A new object comes with an empty one.
	Warnings func(changed, old *O) []string
}

// base is what the strategies of both endpoints do alike.
type base[O, S, U any] struct {
	runtime.ObjectTyper
	names.NameGenerator
	kind Kind[O, S, U]
}

// NamespaceScoped is true for all our kinds.
func (base[O, S, U]) NamespaceScoped() bool { return true }

// AllowCreateOnUpdate is false as it is for custom resources: a PUT on a name that is not there answers 404.
func (base[O, S, U]) AllowCreateOnUpdate() bool { return false }

// AllowUnconditionalUpdate is false as it is for custom resources: a PUT must say which version it replaces.
func (base[O, S, U]) AllowUnconditionalUpdate() bool { return false }

// Canonicalize does nothing: objects are stored as they were sent.
func (base[O, S, U]) Canonicalize(runtime.Object) {}

func (b base[O, S, U]) parts(obj runtime.Object) (*S, *U) { return b.kind.Parts(as[O](obj)) }

// ignoring names top-level fields that an endpoint ignores, so that server-side apply does not give them an owner.
func (b base[O, S, U]) ignoring(fields ...string) map[fieldpath.APIVersion]*fieldpath.Set {
	paths := fieldpath.NewSet()
	for _, name := range fields {
		paths.Insert(fieldpath.MakePathOrDie(name))
	}
	return map[fieldpath.APIVersion]*fieldpath.Set{fieldpath.APIVersion(b.kind.Version.String()): paths}
}

// as returns an object as what it is: only objects of its own kind reach a strategy.
func as[O any](obj runtime.Object) *O { return any(obj).(*O) }

type mainStrategy[O, S, U any] struct{ base[O, S, U] }

// NewMain returns the strategy of the endpoint that the kind itself has: it owns everything but the status. typer knows the kind.
func NewMain[O, S, U any](typer runtime.ObjectTyper, kind Kind[O, S, U]) Main {
	return mainStrategy[O, S, U]{base[O, S, U]{typer, names.SimpleNameGenerator, kind}}
}

func (s mainStrategy[O, S, U]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	if _, status := s.kind.Parts(new(O)); status == nil {
		return nil
	}
	return s.ignoring("status")
}

func (s mainStrategy[O, S, U]) PrepareForCreate(_ context.Context, obj runtime.Object) {
	obj.(metav1.Object).SetGeneration(1)
	if _, status := s.parts(obj); status != nil {
		*status = *new(U)
	}
}

func (s mainStrategy[O, S, U]) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	spec, status := s.parts(obj)
	oldSpec, oldStatus := s.parts(old)
	if status != nil {
		*status = *oldStatus
	}
	if !apiequality.Semantic.DeepEqual(spec, oldSpec) {
		obj.(metav1.Object).SetGeneration(old.(metav1.Object).GetGeneration() + 1)
	}
}

func (s mainStrategy[O, S, U]) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return s.kind.Validate(as[O](obj))
}

func (s mainStrategy[O, S, U]) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return s.kind.ValidateUpdate(as[O](obj), as[O](old))
}

func (s mainStrategy[O, S, U]) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	return s.kind.Warnings(as[O](obj), new(O))
}

func (s mainStrategy[O, S, U]) WarningsOnUpdate(_ context.Context, obj, old runtime.Object) []string {
	return s.kind.Warnings(as[O](obj), as[O](old))
}

type statusStrategy[O, S, U any] struct{ base[O, S, U] }

// NewStatus returns the strategy of the status subresource of a kind that has one: it owns the status and nothing else. typer knows the kind.
func NewStatus[O, S, U any](typer runtime.ObjectTyper, kind Kind[O, S, U]) Status {
	return statusStrategy[O, S, U]{base[O, S, U]{typer, names.SimpleNameGenerator, kind}}
}

func (s statusStrategy[O, S, U]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return s.ignoring("spec", "metadata")
}

func (s statusStrategy[O, S, U]) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	spec, _ := s.parts(obj)
	oldSpec, _ := s.parts(old)
	*spec = *oldSpec
	metav1.ResetObjectMetaForStatus(obj.(metav1.Object), old.(metav1.Object))
}

func (s statusStrategy[O, S, U]) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return s.kind.ValidateStatusUpdate(as[O](obj), as[O](old))
}

// WarningsOnUpdate returns nothing: statuses are written by programs.
func (statusStrategy[O, S, U]) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}
