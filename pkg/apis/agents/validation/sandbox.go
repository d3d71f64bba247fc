// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package validation holds the rules that objects of the agents.x-k8s.io API group must meet to be stored.
package validation

import (
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimachineryvalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
)

// ValidateSandbox returns what is wrong with a Sandbox that is about to be created.
func ValidateSandbox(sandbox *agents.Sandbox) field.ErrorList {
	errs := apimachineryvalidation.ValidateObjectMeta(&sandbox.ObjectMeta, true, apimachineryvalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	for _, rule := range rules() {
		errs = append(errs, rule.check(sandbox)...)
	}
	return append(errs, validateVolumeClaimTemplates(sandbox.Spec.VolumeClaimTemplates, sandbox.Name, field.NewPath("spec", "volumeClaimTemplates"))...)
}

// ValidateSandboxUpdate returns what is wrong with a change of a Sandbox. A rule is applied only to a change of what it is about:
// what a stored object came to break through a newer release never stands in the way of other writes.
func ValidateSandboxUpdate(sandbox, old *agents.Sandbox) field.ErrorList {
	errs := apimachineryvalidation.ValidateObjectMetaUpdate(&sandbox.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	for _, rule := range rules() {
		if !apiequality.Semantic.DeepEqual(rule.subject(sandbox), rule.subject(old)) {
			errs = append(errs, rule.check(sandbox)...)
		}
	}
	if !apiequality.Semantic.DeepEqual(sandbox.Spec.VolumeClaimTemplates, old.Spec.VolumeClaimTemplates) {
		errs = append(errs, field.Invalid(field.NewPath("spec", "volumeClaimTemplates"), field.OmitValueType{}, "volumeClaimTemplates is immutable"))
	}
	return errs
}

// ValidateSandboxStatusUpdate returns what is wrong with a change of a Sandbox's status.
func ValidateSandboxStatusUpdate(sandbox, old *agents.Sandbox) field.ErrorList {
	errs := apimachineryvalidation.ValidateObjectMetaUpdate(&sandbox.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	if apiequality.Semantic.DeepEqual(sandbox.Status.Conditions, old.Status.Conditions) {
		return errs
	}
	path := field.NewPath("status", "conditions")
	errs = append(errs, metav1validation.ValidateConditions(sandbox.Status.Conditions, path)...)
	for i := range sandbox.Status.Conditions {
		errs = append(errs, validateTime(&sandbox.Status.Conditions[i].LastTransitionTime, path.Index(i).Child("lastTransitionTime"))...)
	}
	return errs
}

// rule is a requirement of a Sandbox.
type rule struct {
	// subject returns the part of the Sandbox that the requirement is about.
	subject func(*agents.Sandbox) any
	check   func(*agents.Sandbox) field.ErrorList
}

func rules() []rule {
	spec := field.NewPath("spec")
	return append(podTemplateRules(spec.Child("podTemplate")), []rule{{
		subject: func(s *agents.Sandbox) any { return s.Spec.OperatingMode },
		check: func(s *agents.Sandbox) field.ErrorList {
			return validateOperatingMode(s.Spec.OperatingMode, spec.Child("operatingMode"))
		},
	}, {
		subject: func(s *agents.Sandbox) any { return s.Spec.ShutdownPolicy },
		check: func(s *agents.Sandbox) field.ErrorList {
			return validateShutdownPolicy(s.Spec.ShutdownPolicy, spec.Child("shutdownPolicy"))
		},
	}, {
		subject: func(s *agents.Sandbox) any { return s.Spec.ShutdownTime },
		check: func(s *agents.Sandbox) field.ErrorList {
			return validateTime(s.Spec.ShutdownTime, spec.Child("shutdownTime"))
		},
	}, {
		subject: func(s *agents.Sandbox) any { return wantsService(s) },
		check:   validateServiceName,
	}, {
		subject: func(s *agents.Sandbox) any { return unreadableTimes(s.ManagedFields) },
		check: func(s *agents.Sandbox) field.ErrorList {
			return validateManagedFields(s.ManagedFields, field.NewPath("metadata", "managedFields"))
		},
	}}...)
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
