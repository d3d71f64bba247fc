// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	agentsvalidation "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/validation"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
)

// ValidateSandboxClaim returns what is wrong with a SandboxClaim that is about to be created, apart from what only its template and the
// cluster's operator can tell.
func ValidateSandboxClaim(claim *extensions.SandboxClaim) field.ErrorList {
	return append(validateMeta(&claim.ObjectMeta), agentsvalidation.Check(claimRules(), claim)...)
}

// ValidateSandboxClaimUpdate returns what is wrong with a change of a SandboxClaim. A claim that has a Sandbox, or for which one is being
// made, stays with the pool that it is from: another one could not take the Sandbox over.
func ValidateSandboxClaimUpdate(claim, old *extensions.SandboxClaim) field.ErrorList {
	errs := append(validateMetaUpdate(&claim.ObjectMeta, &old.ObjectMeta), agentsvalidation.CheckChange(claimRules(), claim, old)...)
	if (old.Status.Sandbox.Name != "" || v1beta1.StartedCold(old.Status.Conditions)) && claim.Spec.WarmPoolRef != old.Spec.WarmPoolRef {
		errs = append(errs, field.Invalid(field.NewPath("spec", "warmPoolRef"), field.OmitValueType{}, "is immutable once the claim has a Sandbox"))
	}
	return errs
}

// ValidateSandboxClaimStatusUpdate returns what is wrong with a change of a SandboxClaim's status.
func ValidateSandboxClaimStatusUpdate(claim, old *extensions.SandboxClaim) field.ErrorList {
	return append(validateMetaUpdate(&claim.ObjectMeta, &old.ObjectMeta),
		agentsvalidation.ValidateConditionsUpdate(claim.Status.Conditions, old.Status.Conditions, field.NewPath("status", "conditions"))...)
}

func claimRules() []agentsvalidation.Rule[extensions.SandboxClaim] {
	spec := field.NewPath("spec")
	rules := append(metaRules(func(c *extensions.SandboxClaim) *metav1.ObjectMeta { return &c.ObjectMeta }), lifecycleRules(spec.Child("lifecycle"))...)
	return append(rules,
		nameRule(spec.Child("warmPoolRef", "name"), func(c *extensions.SandboxClaim) string { return c.Spec.WarmPoolRef.Name }),
		agentsvalidation.Rule[extensions.SandboxClaim]{
			Subject: func(c *extensions.SandboxClaim) any { return c.Spec.Env },
			Check:   func(c *extensions.SandboxClaim) field.ErrorList { return validateEnv(c.Spec.Env, spec.Child("env")) },
		},
		agentsvalidation.Rule[extensions.SandboxClaim]{
			Subject: func(c *extensions.SandboxClaim) any { return c.Spec.VolumeClaimTemplates },
			// A claim with volumes is always started cold, and its Sandbox has its name.
			Check: func(c *extensions.SandboxClaim) field.ErrorList {
				return agentsvalidation.ValidateVolumeClaimTemplates(c.Spec.VolumeClaimTemplates, c.Name, spec.Child("volumeClaimTemplates"))
			},
		})
}

func lifecycleRules(path *field.Path) []agentsvalidation.Rule[extensions.SandboxClaim] {
	return []agentsvalidation.Rule[extensions.SandboxClaim]{{
		Subject: func(c *extensions.SandboxClaim) any { return lifecycle(c).ShutdownTime },
		Check: func(c *extensions.SandboxClaim) field.ErrorList {
			return agentsvalidation.ValidateTime(lifecycle(c).ShutdownTime, path.Child("shutdownTime"))
		},
	}, nonNegativeRule(path.Child("ttlSecondsAfterFinished"), func(c *extensions.SandboxClaim) int64 {
		return orZero(lifecycle(c).TTLSecondsAfterFinished)
	}), enumRule(path.Child("shutdownPolicy"), func(c *extensions.SandboxClaim) extensions.ClaimShutdownPolicy { return lifecycle(c).ShutdownPolicy },
		extensions.ClaimShutdownPolicyDelete, extensions.ClaimShutdownPolicyDeleteForeground, extensions.ClaimShutdownPolicyRetain)}
}

// lifecycle returns the lifecycle of a claim, or that which a claim without one has.
func lifecycle(claim *extensions.SandboxClaim) extensions.Lifecycle {
	if claim.Spec.Lifecycle == nil {
		return extensions.Lifecycle{ShutdownPolicy: extensions.ClaimShutdownPolicyRetain}
	}
	return *claim.Spec.Lifecycle
}

// validateEnv refuses variables that no container could have, and those that one container would have twice.
func validateEnv(env []extensions.EnvVar, path *field.Path) field.ErrorList {
	type key struct{ container, name string }
	var errs field.ErrorList
	seen := sets.New[key]()
	for i := range env {
		at := path.Index(i).Child("name")
		if env[i].Name == "" {
			errs = append(errs, field.Required(at, ""))
			continue
		}
		for _, msg := range validation.IsRelaxedEnvVarName(env[i].Name) {
			errs = append(errs, field.Invalid(at, env[i].Name, msg))
		}
		if k := (key{env[i].ContainerName, env[i].Name}); seen.Has(k) {
			errs = append(errs, field.Duplicate(at, env[i].Name))
		} else {
			seen.Insert(k)
		}
	}
	return errs
}
