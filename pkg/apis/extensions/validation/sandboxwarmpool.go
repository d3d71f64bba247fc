// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apimachineryvalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	agentsvalidation "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/validation"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
)

// ValidateSandboxWarmPool returns what is wrong with a SandboxWarmPool that is about to be created.
func ValidateSandboxWarmPool(pool *extensions.SandboxWarmPool) field.ErrorList {
	return append(validateMeta(&pool.ObjectMeta), agentsvalidation.Check(poolRules(), pool)...)
}

// ValidateSandboxWarmPoolUpdate returns what is wrong with a change of a SandboxWarmPool.
func ValidateSandboxWarmPoolUpdate(pool, old *extensions.SandboxWarmPool) field.ErrorList {
	return append(validateMetaUpdate(&pool.ObjectMeta, &old.ObjectMeta), agentsvalidation.CheckChange(poolRules(), pool, old)...)
}

// ValidateSandboxWarmPoolStatusUpdate returns what is wrong with a change of a SandboxWarmPool's status.
func ValidateSandboxWarmPoolStatusUpdate(pool, old *extensions.SandboxWarmPool) field.ErrorList {
	status := field.NewPath("status")
	errs := append(validateMetaUpdate(&pool.ObjectMeta, &old.ObjectMeta), agentsvalidation.CheckChange(poolStatusRules(status), pool, old)...)
	return append(errs, agentsvalidation.ValidateConditionsUpdate(pool.Status.Conditions, old.Status.Conditions, status.Child("conditions"))...)
}

func poolStatusRules(path *field.Path) []agentsvalidation.Rule[extensions.SandboxWarmPool] {
	return []agentsvalidation.Rule[extensions.SandboxWarmPool]{
		nonNegativeRule(path.Child("replicas"), func(p *extensions.SandboxWarmPool) int64 { return int64(p.Status.Replicas) }),
		nonNegativeRule(path.Child("readyReplicas"), func(p *extensions.SandboxWarmPool) int64 { return int64(p.Status.ReadyReplicas) }),
		nonNegativeRule(path.Child("observedGeneration"), func(p *extensions.SandboxWarmPool) int64 { return p.Status.ObservedGeneration }),
	}
}

// ValidateScale returns what is wrong with the Scale of a pool.
func ValidateScale(scale *autoscalingv1.Scale) field.ErrorList {
	return apimachineryvalidation.ValidateNonnegativeField(int64(scale.Spec.Replicas), field.NewPath("spec", "replicas"))
}

func poolRules() []agentsvalidation.Rule[extensions.SandboxWarmPool] {
	spec := field.NewPath("spec")
	return append(metaRules(func(p *extensions.SandboxWarmPool) *metav1.ObjectMeta { return &p.ObjectMeta }),
		nonNegativeRule(spec.Child("replicas"), func(p *extensions.SandboxWarmPool) int64 { return orZero(p.Spec.Replicas) }),
		nameRule(spec.Child("sandboxTemplateRef", "name"), func(p *extensions.SandboxWarmPool) string { return p.Spec.SandboxTemplateRef.Name }),
		enumRule(spec.Child("updateStrategy", "type"), updateStrategyType,
			extensions.RecreateSandboxWarmPoolUpdateStrategyType, extensions.OnReplenishSandboxWarmPoolUpdateStrategyType))
}

func updateStrategyType(pool *extensions.SandboxWarmPool) extensions.SandboxWarmPoolUpdateStrategyType {
	if pool.Spec.UpdateStrategy == nil {
		return extensions.OnReplenishSandboxWarmPoolUpdateStrategyType
	}
	return pool.Spec.UpdateStrategy.Type
}
