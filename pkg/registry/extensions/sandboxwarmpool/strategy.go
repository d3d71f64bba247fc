// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package sandboxwarmpool decides what may be stored as a SandboxWarmPool and how it is shown: strategies and table columns. It does no
// I/O; the storage package beneath it does.
package sandboxwarmpool

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/utils/ptr"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/validation"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/strategy"
)

// maxPrefixLength is how much of a pool's name there is room for in the names of its members.
const maxPrefixLength = names.MaxGeneratedNameLength - len("-")

// NewStrategy returns the strategy of the sandboxwarmpools endpoint: it owns everything but the status.
func NewStrategy(typer runtime.ObjectTyper) strategy.Main { return strategy.NewMain(typer, kind()) }

// NewStatusStrategy returns the strategy of the status subresource: it owns the status and nothing else.
func NewStatusStrategy(typer runtime.ObjectTyper) strategy.Status {
	return strategy.NewStatus(typer, kind())
}

// kind says what is particular to SandboxWarmPools.
func kind() strategy.Kind[extensions.SandboxWarmPool, extensions.SandboxWarmPoolSpec, extensions.SandboxWarmPoolStatus] {
	return strategy.Kind[extensions.SandboxWarmPool, extensions.SandboxWarmPoolSpec, extensions.SandboxWarmPoolStatus]{
		Version: v1beta1.SchemeGroupVersion,
		Parts: func(p *extensions.SandboxWarmPool) (*extensions.SandboxWarmPoolSpec, *extensions.SandboxWarmPoolStatus) {
			return &p.Spec, &p.Status
		},
		Validate:             validation.ValidateSandboxWarmPool,
		ValidateUpdate:       validation.ValidateSandboxWarmPoolUpdate,
		ValidateStatusUpdate: validation.ValidateSandboxWarmPoolStatusUpdate,
		Warnings:             warnings,
	}
}

// warnings says if the names of the members of a new pool will not show the whole name of the pool.
func warnings(pool, old *extensions.SandboxWarmPool) []string {
	if pool.Name == old.Name || len(pool.Name) <= maxPrefixLength {
		return nil
	}
	return []string{fmt.Sprintf("metadata.name: longer than %d characters, so the names of the Sandboxes begin with a part of it only", maxPrefixLength)}
}

// Replicas returns the number of members that a pool is to have.
func Replicas(pool *extensions.SandboxWarmPool) int32 { return ptr.Deref(pool.Spec.Replicas, 1) }
