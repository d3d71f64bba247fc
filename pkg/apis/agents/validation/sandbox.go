// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package validation holds the rules that objects of the agents.x-k8s.io API group must meet to be stored.
package validation

import (
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimachineryvalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
)

var (
	operatingModes   = sets.New(agents.SandboxOperatingModeRunning, agents.SandboxOperatingModeSuspended)
	shutdownPolicies = sets.New(agents.ShutdownPolicyDelete, agents.ShutdownPolicyRetain)
)

// ValidateSandbox returns what is wrong with a Sandbox that is about to be created.
func ValidateSandbox(sandbox *agents.Sandbox) field.ErrorList {
	specPath := field.NewPath("spec")
	errs := apimachineryvalidation.ValidateObjectMeta(&sandbox.ObjectMeta, true, apimachineryvalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	errs = append(errs, validateSpec(&sandbox.Spec, specPath)...)
	errs = append(errs, validateVolumeClaimTemplates(sandbox.Spec.VolumeClaimTemplates, sandbox.Name, specPath.Child("volumeClaimTemplates"))...)
	if wantsService(sandbox) {
		errs = append(errs, validateServiceName(sandbox.Name)...)
	}
	return errs
}

// ValidateSandboxUpdate returns what is wrong with a change of a Sandbox. A rule that a stored object came to break through a
// newer release is applied only to a change of what it is about, so that finalizers and metadata can always be written.
func ValidateSandboxUpdate(sandbox, old *agents.Sandbox) field.ErrorList {
	specPath := field.NewPath("spec")
	errs := apimachineryvalidation.ValidateObjectMetaUpdate(&sandbox.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, validateSpec(&sandbox.Spec, specPath)...)
	if !apiequality.Semantic.DeepEqual(sandbox.Spec.VolumeClaimTemplates, old.Spec.VolumeClaimTemplates) {
		errs = append(errs, field.Invalid(specPath.Child("volumeClaimTemplates"), field.OmitValueType{}, "volumeClaimTemplates is immutable"))
	}
	if wantsService(sandbox) && !wantsService(old) {
		errs = append(errs, validateServiceName(sandbox.Name)...)
	}
	return errs
}

// ValidateSandboxStatusUpdate returns what is wrong with a change of a Sandbox's status.
func ValidateSandboxStatusUpdate(sandbox, old *agents.Sandbox) field.ErrorList {
	errs := apimachineryvalidation.ValidateObjectMetaUpdate(&sandbox.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, metav1validation.ValidateConditions(sandbox.Status.Conditions, field.NewPath("status", "conditions"))...)
}

func validateSpec(spec *agents.SandboxSpec, path *field.Path) field.ErrorList {
	errs := validatePodTemplate(&spec.PodTemplate, path.Child("podTemplate"))
	if !operatingModes.Has(spec.OperatingMode) {
		errs = append(errs, field.NotSupported(path.Child("operatingMode"), spec.OperatingMode, sets.List(operatingModes)))
	}
	if policy := spec.ShutdownPolicy; policy != nil && !shutdownPolicies.Has(*policy) {
		errs = append(errs, field.NotSupported(path.Child("shutdownPolicy"), *policy, sets.List(shutdownPolicies)))
	}
	return errs
}

// validatePodTemplate checks only what makes the list of containers one that can be merged by key. Whether the template can become
// a Pod is for kube-apiserver to say.
func validatePodTemplate(template *agents.PodTemplate, path *field.Path) field.ErrorList {
	specPath := path.Child("spec")
	if len(template.Spec.Containers) == 0 {
		return field.ErrorList{field.Required(specPath.Child("containers"), "a Sandbox needs at least one container")}
	}
	errs := validateContainerNames(template.Spec.Containers, specPath.Child("containers"))
	return append(errs, validateContainerNames(template.Spec.InitContainers, specPath.Child("initContainers"))...)
}

func validateContainerNames(containers []corev1.Container, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, container := range containers {
		namePath := path.Index(i).Child("name")
		switch {
		case container.Name == "":
			errs = append(errs, field.Required(namePath, ""))
		case seen.Has(container.Name):
			errs = append(errs, field.Duplicate(namePath, container.Name))
		}
		seen.Insert(container.Name)
	}
	return errs
}

// validateVolumeClaimTemplates refuses templates that could never become a PersistentVolumeClaim and a volume of the Pod.
func validateVolumeClaimTemplates(templates []agents.PersistentVolumeClaimTemplate, sandbox string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, template := range templates {
		name, namePath := template.Metadata.Name, path.Index(i).Child("metadata", "name")
		if name == "" {
			errs = append(errs, field.Required(namePath, "it names the volume and the PersistentVolumeClaim"))
			continue
		}
		if seen.Has(name) {
			errs = append(errs, field.Duplicate(namePath, name))
			continue
		}
		seen.Insert(name)
		for _, msg := range validation.IsDNS1123Label(name) {
			errs = append(errs, field.Invalid(namePath, name, msg))
		}
		if claim := naming.PersistentVolumeClaim(name, sandbox); len(claim) > validation.DNS1123SubdomainMaxLength {
			errs = append(errs, field.TooLong(namePath, claim, validation.DNS1123SubdomainMaxLength))
		}
	}
	return errs
}

func wantsService(sandbox *agents.Sandbox) bool {
	return sandbox.Spec.Service != nil && *sandbox.Spec.Service
}

// validateServiceName checks that the Service can have the name of its Sandbox, which may be longer and have dots.
func validateServiceName(name string) field.ErrorList {
	var errs field.ErrorList
	for _, msg := range validation.IsDNS1123Label(naming.Service(name)) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), name, "with spec.service true it also names the Service: "+msg))
	}
	return errs
}
