// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package sandbox decides what may be stored as a Sandbox and how it is shown: strategies, selectors and table columns. It does no
// I/O; the storage package beneath it does.
package sandbox

import (
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/utils/clock"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/validation"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/strategy"
)

// NewStrategy returns the strategy of the sandboxes endpoint: it owns everything but the status.
func NewStrategy(typer runtime.ObjectTyper) strategy.Main {
	return strategy.NewMain(typer, kind(clock.RealClock{}))
}

// NewStatusStrategy returns the strategy of the status subresource: it owns the status and nothing else.
func NewStatusStrategy(typer runtime.ObjectTyper) strategy.Status {
	return strategy.NewStatus(typer, kind(clock.RealClock{}))
}

// kind says what is particular to Sandboxes.
func kind(clock clock.PassiveClock) strategy.Kind[agents.Sandbox, agents.SandboxSpec, agents.SandboxStatus] {
	return strategy.Kind[agents.Sandbox, agents.SandboxSpec, agents.SandboxStatus]{
		Version:              v1beta1.SchemeGroupVersion,
		Parts:                func(s *agents.Sandbox) (*agents.SandboxSpec, *agents.SandboxStatus) { return &s.Spec, &s.Status },
		Validate:             validation.ValidateSandbox,
		ValidateUpdate:       validation.ValidateSandboxUpdate,
		ValidateStatusUpdate: validation.ValidateSandboxStatusUpdate,
		Warnings:             func(sandbox, old *agents.Sandbox) []string { return warningsOf(sandbox, old, clock.Now()) },
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
