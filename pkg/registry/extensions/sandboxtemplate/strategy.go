// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package sandboxtemplate decides what may be stored as a SandboxTemplate and how it is shown: strategy and table columns. It does no
// I/O; the storage package beneath it does.
package sandboxtemplate

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/validation"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/strategy"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/warnings"
)

// NewStrategy returns the strategy of the sandboxtemplates endpoint, which owns all of a template: there is no status.
func NewStrategy(typer runtime.ObjectTyper) strategy.Main {
	return strategy.NewMain(typer, strategy.Kind[extensions.SandboxTemplate, extensions.SandboxTemplateSpec, struct{}]{
		Version:        v1beta1.SchemeGroupVersion,
		Parts:          func(t *extensions.SandboxTemplate) (*extensions.SandboxTemplateSpec, *struct{}) { return &t.Spec, nil },
		Validate:       validation.ValidateSandboxTemplate,
		ValidateUpdate: validation.ValidateSandboxTemplateUpdate,
		Warnings:       warningsOf,
	})
}

func warningsOf(template, old *extensions.SandboxTemplate) []string {
	return warnings.PodTemplate(&template.Spec.PodTemplate, &old.Spec.PodTemplate, field.NewPath("spec", "podTemplate"))
}
