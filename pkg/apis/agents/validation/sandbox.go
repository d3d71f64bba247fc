// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package validation holds the rules that objects of the agents.x-k8s.io API group must meet to be stored.
package validation

import (
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimachineryvalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
)

// ValidateSandbox returns what is wrong with a Sandbox that is about to be created.
func ValidateSandbox(sandbox *agents.Sandbox) field.ErrorList {
	errs := apimachineryvalidation.ValidateObjectMeta(&sandbox.ObjectMeta, true, apimachineryvalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	errs = append(errs, Check(rules(), sandbox)...)
	return append(errs, ValidateVolumeClaimTemplates(sandbox.Spec.VolumeClaimTemplates, sandbox.Name, field.NewPath("spec", "volumeClaimTemplates"))...)
}

// ValidateSandboxUpdate returns what is wrong with a change of a Sandbox.
func ValidateSandboxUpdate(sandbox, old *agents.Sandbox) field.ErrorList {
	errs := apimachineryvalidation.ValidateObjectMetaUpdate(&sandbox.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, CheckChange(rules(), sandbox, old)...)
	if !apiequality.Semantic.DeepEqual(sandbox.Spec.VolumeClaimTemplates, old.Spec.VolumeClaimTemplates) {
		errs = append(errs, field.Invalid(field.NewPath("spec", "volumeClaimTemplates"), field.OmitValueType{}, "volumeClaimTemplates is immutable"))
	}
	return errs
}

// ValidateSandboxStatusUpdate returns what is wrong with a change of a Sandbox's status.
func ValidateSandboxStatusUpdate(sandbox, old *agents.Sandbox) field.ErrorList {
	errs := apimachineryvalidation.ValidateObjectMetaUpdate(&sandbox.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, ValidateConditionsUpdate(sandbox.Status.Conditions, old.Status.Conditions, field.NewPath("status", "conditions"))...)
}

func rules() []Rule[agents.Sandbox] {
	spec := field.NewPath("spec")
	rules := RulesOf(func(s *agents.Sandbox) *agents.PodTemplate { return &s.Spec.PodTemplate }, PodTemplateRules(spec.Child("podTemplate")))
	rules = append(rules, []Rule[agents.Sandbox]{{
		Subject: func(s *agents.Sandbox) any { return s.Spec.OperatingMode },
		Check: func(s *agents.Sandbox) field.ErrorList {
			return validateOperatingMode(s.Spec.OperatingMode, spec.Child("operatingMode"))
		},
	}, {
		Subject: func(s *agents.Sandbox) any { return s.Spec.ShutdownPolicy },
		Check: func(s *agents.Sandbox) field.ErrorList {
			return validateShutdownPolicy(s.Spec.ShutdownPolicy, spec.Child("shutdownPolicy"))
		},
	}, {
		Subject: func(s *agents.Sandbox) any { return s.Spec.ShutdownTime },
		Check: func(s *agents.Sandbox) field.ErrorList {
			return ValidateTime(s.Spec.ShutdownTime, spec.Child("shutdownTime"))
		},
	}, {
		Subject: func(s *agents.Sandbox) any { return wantsService(s) },
		Check:   validateServiceName,
	}}...)
	return append(rules, RulesOf(func(s *agents.Sandbox) *metav1.ObjectMeta { return &s.ObjectMeta }, ManagedFieldsRules())...)
}

func validateOperatingMode(mode agents.SandboxOperatingMode, path *field.Path) field.ErrorList {
	supported := sets.New(agents.SandboxOperatingModeRunning, agents.SandboxOperatingModeSuspended)
	if supported.Has(mode) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, mode, sets.List(supported))}
}

func validateShutdownPolicy(policy *agents.ShutdownPolicy, path *field.Path) field.ErrorList {
	supported := sets.New(agents.ShutdownPolicyDelete, agents.ShutdownPolicyRetain)
	if policy == nil || supported.Has(*policy) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, *policy, sets.List(supported))}
}

func wantsService(sandbox *agents.Sandbox) bool {
	return sandbox.Spec.Service != nil && *sandbox.Spec.Service
}

// validateServiceName checks that the Service, if there is to be one, can have the name of its Sandbox, which may be longer and
// have dots.
func validateServiceName(sandbox *agents.Sandbox) field.ErrorList {
	if !wantsService(sandbox) {
		return nil
	}
	var errs field.ErrorList
	for _, msg := range validation.IsDNS1123Label(naming.Service(sandbox.Name)) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), sandbox.Name, "with spec.service true it also names the Service: "+msg))
	}
	return errs
}
