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
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/utils/clock"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/validation"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/strategy"
)

type mainStrategy struct {
	strategy.Base
	clock clock.PassiveClock
}

// NewStrategy returns the strategy of the sandboxes endpoint: it owns everything but the status.
func NewStrategy(typer runtime.ObjectTyper) strategy.Main { return newStrategy(typer) }

func newStrategy(typer runtime.ObjectTyper) mainStrategy {
	return mainStrategy{strategy.NewBase(typer), clock.RealClock{}}
}

// GetResetFields names the fields that this endpoint ignores, so that server-side apply does not give them an owner.
func (mainStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return strategy.ResetFields(v1beta1.SchemeGroupVersion, "status")
}

func (mainStrategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	sandbox := obj.(*agents.Sandbox)
	sandbox.Generation = 1
	sandbox.Status = agents.SandboxStatus{}
}

func (mainStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	sandbox, oldSandbox := obj.(*agents.Sandbox), old.(*agents.Sandbox)
	sandbox.Status = oldSandbox.Status
	if !apiequality.Semantic.DeepEqual(sandbox.Spec, oldSandbox.Spec) {
		sandbox.Generation = oldSandbox.Generation + 1
	}
}

func (mainStrategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidateSandbox(obj.(*agents.Sandbox))
}

func (mainStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateSandboxUpdate(obj.(*agents.Sandbox), old.(*agents.Sandbox))
}

func (s mainStrategy) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	return warningsOf(obj.(*agents.Sandbox), &agents.Sandbox{}, s.clock.Now())
}

func (s mainStrategy) WarningsOnUpdate(_ context.Context, obj, old runtime.Object) []string {
	return warningsOf(obj.(*agents.Sandbox), old.(*agents.Sandbox), s.clock.Now())
}

type statusStrategy struct {
	mainStrategy
}

// NewStatusStrategy returns the strategy of the status subresource: it owns the status and nothing else.
func NewStatusStrategy(typer runtime.ObjectTyper) strategy.Status {
	return statusStrategy{newStrategy(typer)}
}

func (statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return strategy.ResetFields(v1beta1.SchemeGroupVersion, "spec", "metadata")
}

func (statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	sandbox, oldSandbox := obj.(*agents.Sandbox), old.(*agents.Sandbox)
	sandbox.Spec = oldSandbox.Spec
	metav1.ResetObjectMetaForStatus(&sandbox.ObjectMeta, &oldSandbox.ObjectMeta)
}

func (statusStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateSandboxStatusUpdate(obj.(*agents.Sandbox), old.(*agents.Sandbox))
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
