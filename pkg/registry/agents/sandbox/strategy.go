// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package sandbox decides what may be stored as a Sandbox and how it is shown: strategies, selectors and table columns. It does no
// I/O; the storage package beneath it does.
package sandbox

import (
	"context"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/utils/clock"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/validation"
)

type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
	clock clock.PassiveClock
}

var (
	_ rest.RESTCreateStrategy  = strategy{}
	_ rest.RESTUpdateStrategy  = strategy{}
	_ rest.RESTDeleteStrategy  = strategy{}
	_ rest.ResetFieldsStrategy = strategy{}
	_ rest.RESTUpdateStrategy  = statusStrategy{}
	_ rest.ResetFieldsStrategy = statusStrategy{}
)

// NewStrategy returns the strategy of the sandboxes endpoint: it owns everything but the status.
func NewStrategy(typer runtime.ObjectTyper) interface {
	rest.RESTCreateStrategy
	rest.RESTUpdateStrategy
	rest.RESTDeleteStrategy
	rest.ResetFieldsStrategy
} {
	return newStrategy(typer)
}

func newStrategy(typer runtime.ObjectTyper) strategy {
	return strategy{typer, names.SimpleNameGenerator, clock.RealClock{}}
}

func (strategy) NamespaceScoped() bool { return true }

// AllowCreateOnUpdate is false as it is for custom resources: a PUT on a name that is not there answers 404.
func (strategy) AllowCreateOnUpdate() bool { return false }

// AllowUnconditionalUpdate is false as it is for custom resources: a PUT must say which version it replaces.
func (strategy) AllowUnconditionalUpdate() bool { return false }

// GetResetFields names the fields that this endpoint ignores, so that server-side apply does not give them an owner.
func (strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetFields("status")
}

func (strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	sandbox := obj.(*agents.Sandbox)
	sandbox.Generation = 1
	sandbox.Status = agents.SandboxStatus{}
}

func (strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	sandbox, oldSandbox := obj.(*agents.Sandbox), old.(*agents.Sandbox)
	sandbox.Status = oldSandbox.Status
	if !apiequality.Semantic.DeepEqual(sandbox.Spec, oldSandbox.Spec) {
		sandbox.Generation = oldSandbox.Generation + 1
	}
}

func (strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidateSandbox(obj.(*agents.Sandbox))
}

func (strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateSandboxUpdate(obj.(*agents.Sandbox), old.(*agents.Sandbox))
}

func (s strategy) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	return warnings(obj.(*agents.Sandbox), &agents.Sandbox{}, s.clock.Now())
}

func (s strategy) WarningsOnUpdate(_ context.Context, obj, old runtime.Object) []string {
	return warnings(obj.(*agents.Sandbox), old.(*agents.Sandbox), s.clock.Now())
}

func (strategy) Canonicalize(runtime.Object) {}

type statusStrategy struct {
	strategy
}

// NewStatusStrategy returns the strategy of the status subresource: it owns the status and nothing else.
func NewStatusStrategy(typer runtime.ObjectTyper) interface {
	rest.RESTUpdateStrategy
	rest.ResetFieldsStrategy
} {
	return statusStrategy{newStrategy(typer)}
}

func (statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetFields("spec", "metadata")
}

func (statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	sandbox, oldSandbox := obj.(*agents.Sandbox), old.(*agents.Sandbox)
	sandbox.Spec = oldSandbox.Spec
	metav1.ResetObjectMetaForStatus(&sandbox.ObjectMeta, &oldSandbox.ObjectMeta)
}

func (statusStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateSandboxStatusUpdate(obj.(*agents.Sandbox), old.(*agents.Sandbox))
}

func resetFields(names ...string) map[fieldpath.APIVersion]*fieldpath.Set {
	paths := fieldpath.NewSet()
	for _, name := range names {
		paths.Insert(fieldpath.MakePathOrDie(name))
	}
	return map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(v1beta1.SchemeGroupVersion.String()): paths,
	}
}

// GetAttrs returns what label and field selectors on Sandboxes look at. It fails for any other type.
func GetAttrs(obj runtime.Object) (labels.Set, fields.Set, error) {
	sandbox, ok := obj.(*agents.Sandbox)
	if !ok {
		return nil, nil, fmt.Errorf("not a Sandbox: %T", obj)
	}
	return sandbox.Labels, generic.ObjectMetaFieldsSet(&sandbox.ObjectMeta, true), nil
}

// MatchSandbox returns the predicate that selects Sandboxes by label and field.
func MatchSandbox(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
	return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: GetAttrs}
}
