// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package sandboxwarmpool decides what may be stored as a SandboxWarmPool and how it is shown: strategies and table columns. It does no
// I/O; the storage package beneath it does.
package sandboxwarmpool

import (
	"context"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/validation"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/strategy"
)

// maxPrefixLength is how much of a pool's name there is room for in the names of its members.
const maxPrefixLength = names.MaxGeneratedNameLength - len("-")

type mainStrategy struct {
	strategy.Base
}

// NewStrategy returns the strategy of the sandboxwarmpools endpoint: it owns everything but the status.
func NewStrategy(typer runtime.ObjectTyper) strategy.Main {
	return mainStrategy{strategy.NewBase(typer)}
}

// GetResetFields names the fields that this endpoint ignores, so that server-side apply does not give them an owner.
func (mainStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return strategy.ResetFields(v1beta1.SchemeGroupVersion, "status")
}

func (mainStrategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	pool := obj.(*extensions.SandboxWarmPool)
	pool.Generation = 1
	pool.Status = extensions.SandboxWarmPoolStatus{}
}

func (mainStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	pool, oldPool := obj.(*extensions.SandboxWarmPool), old.(*extensions.SandboxWarmPool)
	pool.Status = oldPool.Status
	if !apiequality.Semantic.DeepEqual(pool.Spec, oldPool.Spec) {
		pool.Generation = oldPool.Generation + 1
	}
}

func (mainStrategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidateSandboxWarmPool(obj.(*extensions.SandboxWarmPool))
}

func (mainStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateSandboxWarmPoolUpdate(obj.(*extensions.SandboxWarmPool), old.(*extensions.SandboxWarmPool))
}

// WarningsOnCreate says if the names of the members will not show the whole name of the pool.
func (mainStrategy) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	name := obj.(*extensions.SandboxWarmPool).Name
	if len(name) <= maxPrefixLength {
		return nil
	}
	return []string{fmt.Sprintf("metadata.name: longer than %d characters, so the names of the Sandboxes begin with a part of it only", maxPrefixLength)}
}

func (mainStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

type statusStrategy struct {
	mainStrategy
}

// NewStatusStrategy returns the strategy of the status subresource: it owns the status and nothing else.
func NewStatusStrategy(typer runtime.ObjectTyper) strategy.Status {
	return statusStrategy{mainStrategy{strategy.NewBase(typer)}}
}

func (statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return strategy.ResetFields(v1beta1.SchemeGroupVersion, "spec", "metadata")
}

func (statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	pool, oldPool := obj.(*extensions.SandboxWarmPool), old.(*extensions.SandboxWarmPool)
	pool.Spec = oldPool.Spec
	metav1.ResetObjectMetaForStatus(&pool.ObjectMeta, &oldPool.ObjectMeta)
}

func (statusStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateSandboxWarmPoolStatusUpdate(obj.(*extensions.SandboxWarmPool), old.(*extensions.SandboxWarmPool))
}

// Replicas returns the number of members that a pool is to have.
func Replicas(pool *extensions.SandboxWarmPool) int32 { return ptr.Deref(pool.Spec.Replicas, 1) }
