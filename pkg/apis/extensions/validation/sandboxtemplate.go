// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package validation holds the rules that objects of the extensions.agents.x-k8s.io API group must meet to be stored. What they say about
// parts of a Sandbox is said by the validation of Sandboxes.
package validation

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
