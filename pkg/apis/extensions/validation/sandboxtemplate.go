// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package validation holds the rules that objects of the extensions.agents.x-k8s.io API group must meet to be stored. What they say about
// parts of a Sandbox is said by the validation of Sandboxes.
package validation

import (
	apimachineryvalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	agentsvalidation "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/validation"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
)

// ValidateSandboxTemplate returns what is wrong with a SandboxTemplate that is about to be created.
func ValidateSandboxTemplate(template *extensions.SandboxTemplate) field.ErrorList {
	return append(validateMeta(&template.ObjectMeta), agentsvalidation.Check(templateRules(), template)...)
}

// ValidateSandboxTemplateUpdate returns what is wrong with a change of a SandboxTemplate.
func ValidateSandboxTemplateUpdate(template, old *extensions.SandboxTemplate) field.ErrorList {
	return append(validateMetaUpdate(&template.ObjectMeta, &old.ObjectMeta), agentsvalidation.CheckChange(templateRules(), template, old)...)
}

func templateRules() []agentsvalidation.Rule[extensions.SandboxTemplate] {
	spec := field.NewPath("spec")
	rules := metaRules(func(t *extensions.SandboxTemplate) *metav1.ObjectMeta { return &t.ObjectMeta })
	rules = append(rules, agentsvalidation.RulesOf(
		func(t *extensions.SandboxTemplate) *agents.PodTemplate { return &t.Spec.PodTemplate },
		agentsvalidation.PodTemplateRules(spec.Child("podTemplate")))...)
	rules = append(rules, agentsvalidation.Rule[extensions.SandboxTemplate]{
		Subject: func(t *extensions.SandboxTemplate) any { return t.Spec.VolumeClaimTemplates },
		// The names of the Sandboxes are not known yet.
		Check: func(t *extensions.SandboxTemplate) field.ErrorList {
			return agentsvalidation.ValidateVolumeClaimTemplates(t.Spec.VolumeClaimTemplates, "", spec.Child("volumeClaimTemplates"))
		},
	})
	rules = append(rules, networkPolicyRules(spec.Child("networkPolicy"))...)
	return append(rules,
		enumRule(spec.Child("networkPolicyManagement"),
			func(t *extensions.SandboxTemplate) extensions.NetworkPolicyManagement {
				return t.Spec.NetworkPolicyManagement
			},
			extensions.NetworkPolicyManagementManaged, extensions.NetworkPolicyManagementUnmanaged),
		enumRule(spec.Child("envVarsInjectionPolicy"),
			func(t *extensions.SandboxTemplate) extensions.EnvVarsInjectionPolicy {
				return t.Spec.EnvVarsInjectionPolicy
			},
			extensions.EnvVarsInjectionPolicyAllowed, extensions.EnvVarsInjectionPolicyOverrides, extensions.EnvVarsInjectionPolicyDisallowed),
		enumRule(spec.Child("volumeClaimTemplatesPolicy"),
			func(t *extensions.SandboxTemplate) extensions.VolumeClaimTemplatesPolicy {
				return t.Spec.VolumeClaimTemplatesPolicy
			},
			extensions.VolumeClaimTemplatesPolicyAllowed, extensions.VolumeClaimTemplatesPolicyOverrides, extensions.VolumeClaimTemplatesPolicyDisallowed))
}

// validateMeta returns what is wrong with the metadata of an object that is about to be created, be it of whatever kind.
func validateMeta(meta *metav1.ObjectMeta) field.ErrorList {
	return apimachineryvalidation.ValidateObjectMeta(meta, true, apimachineryvalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
}

func validateMetaUpdate(meta, old *metav1.ObjectMeta) field.ErrorList {
	return apimachineryvalidation.ValidateObjectMetaUpdate(meta, old, field.NewPath("metadata"))
}

func metaRules[T any](meta func(*T) *metav1.ObjectMeta) []agentsvalidation.Rule[T] {
	return agentsvalidation.RulesOf(meta, agentsvalidation.ManagedFieldsRules())
}

// enumRule is the rule that a field has one of the given values.
func enumRule[T any, E ~string](path *field.Path, value func(*T) E, supported ...E) agentsvalidation.Rule[T] {
	return agentsvalidation.Rule[T]{
		Subject: func(obj *T) any { return value(obj) },
		Check: func(obj *T) field.ErrorList {
			if known := sets.New(supported...); !known.Has(value(obj)) {
				return field.ErrorList{field.NotSupported(path, value(obj), sets.List(known))}
			}
			return nil
		},
	}
}

// nameRule is the rule that a field names an object.
func nameRule[T any](path *field.Path, name func(*T) string) agentsvalidation.Rule[T] {
	return agentsvalidation.Rule[T]{
		Subject: func(obj *T) any { return name(obj) },
		Check: func(obj *T) field.ErrorList {
			if name(obj) == "" {
				return field.ErrorList{field.Required(path, "")}
			}
			var errs field.ErrorList
			for _, msg := range apimachineryvalidation.NameIsDNSSubdomain(name(obj), false) {
				errs = append(errs, field.Invalid(path, name(obj), msg))
			}
			return errs
		},
	}
}
