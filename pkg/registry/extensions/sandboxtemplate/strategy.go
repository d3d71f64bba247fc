// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package sandboxtemplate decides what may be stored as a SandboxTemplate and how it is shown: strategy and table columns. It does no
// I/O; the storage package beneath it does.
package sandboxtemplate

import (
	"context"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/validation"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/strategy"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/warnings"
)

type mainStrategy struct {
	strategy.Base
}

// NewStrategy returns the strategy of the sandboxtemplates endpoint, which owns all of a template: there is no status.
func NewStrategy(typer runtime.ObjectTyper) strategy.Main {
	return mainStrategy{strategy.NewBase(typer)}
}

// GetResetFields names no fields: none is ignored.
func (mainStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set { return nil }

func (mainStrategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	obj.(*extensions.SandboxTemplate).Generation = 1
}

func (mainStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	template, oldTemplate := obj.(*extensions.SandboxTemplate), old.(*extensions.SandboxTemplate)
	if !apiequality.Semantic.DeepEqual(template.Spec, oldTemplate.Spec) {
		template.Generation = oldTemplate.Generation + 1
	}
}

func (mainStrategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidateSandboxTemplate(obj.(*extensions.SandboxTemplate))
}

func (mainStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateSandboxTemplateUpdate(obj.(*extensions.SandboxTemplate), old.(*extensions.SandboxTemplate))
}

func (mainStrategy) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	return warningsOf(obj.(*extensions.SandboxTemplate), &extensions.SandboxTemplate{})
}

func (mainStrategy) WarningsOnUpdate(_ context.Context, obj, old runtime.Object) []string {
	return warningsOf(obj.(*extensions.SandboxTemplate), old.(*extensions.SandboxTemplate))
}

func warningsOf(template, old *extensions.SandboxTemplate) []string {
	return warnings.PodTemplate(&template.Spec.PodTemplate, &old.Spec.PodTemplate, field.NewPath("spec", "podTemplate"))
}
