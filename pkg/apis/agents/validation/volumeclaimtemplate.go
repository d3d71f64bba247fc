// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	corev1 "k8s.io/api/core/v1"
	apimachineryvalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
)

// ValidateVolumeClaimTemplates refuses templates that could never become a PersistentVolumeClaim and a volume of the Pod.
func ValidateVolumeClaimTemplates(templates []agents.PersistentVolumeClaimTemplate, sandbox string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i := range templates {
		template := &templates[i]
		errs = append(errs, validateVolumeClaimTemplateName(template.Metadata.Name, sandbox, seen, path.Index(i).Child("metadata", "name"))...)
		errs = append(errs, validateVolumeClaimTemplateMetadata(&template.Metadata, path.Index(i).Child("metadata"))...)
		errs = append(errs, validateVolumeClaimSpec(&template.Spec, path.Index(i).Child("spec"))...)
	}
	return errs
}

func validateVolumeClaimTemplateName(name, sandbox string, seen sets.Set[string], path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "it names the volume and the PersistentVolumeClaim")}
	}
	if seen.Has(name) {
		return field.ErrorList{field.Duplicate(path, name)}
	}
	seen.Insert(name)
	var errs field.ErrorList
	for _, msg := range validation.IsDNS1123Label(name) {
		errs = append(errs, field.Invalid(path, name, msg))
	}
	if claim := naming.PersistentVolumeClaim(name, sandbox); len(claim) > validation.DNS1123SubdomainMaxLength {
		errs = append(errs, field.TooLong(path, claim, validation.DNS1123SubdomainMaxLength))
	}
	return errs
}

// validateVolumeClaimTemplateMetadata says nothing about the one label whose value is replaced in the claim.
func validateVolumeClaimTemplateMetadata(metadata *agents.EmbeddedObjectMetadata, path *field.Path) field.ErrorList {
	labels := withoutKeys(metadata.Labels, func(key string) bool { return key == v1beta1.SandboxNameHashLabel })
	errs := metav1validation.ValidateLabels(labels, path.Child("labels"))
	return append(errs, apimachineryvalidation.ValidateAnnotations(metadata.Annotations, path.Child("annotations"))...)
}

// validateVolumeClaimSpec repeats those rules of kube-apiserver for PersistentVolumeClaims that hold in every release and under every
// configuration. There is no dry run for claims as there is for the Pod: the rules are few, and each request would have to be
// made once for every template. References to data sources are not looked at; what becomes of those that are wrong has changed over time.
func validateVolumeClaimSpec(spec *corev1.PersistentVolumeClaimSpec, path *field.Path) field.ErrorList {
	errs := validateAccessModes(spec.AccessModes, path.Child("accessModes"))
	if spec.Selector != nil {
		errs = append(errs, metav1validation.ValidateLabelSelector(spec.Selector, metav1validation.LabelSelectorValidationOptions{}, path.Child("selector"))...)
	}
	storagePath := path.Child("resources", "requests").Key(string(corev1.ResourceStorage))
	if storage, ok := spec.Resources.Requests[corev1.ResourceStorage]; !ok {
		errs = append(errs, field.Required(storagePath, ""))
	} else if storage.Sign() <= 0 {
		errs = append(errs, field.Invalid(storagePath, storage.String(), "must be greater than zero"))
	}
	if class := spec.StorageClassName; class != nil && *class != "" {
		for _, msg := range apimachineryvalidation.NameIsDNSSubdomain(*class, false) {
			errs = append(errs, field.Invalid(path.Child("storageClassName"), *class, msg))
		}
	}
	supported := sets.New(corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem)
	if mode := spec.VolumeMode; mode != nil && !supported.Has(*mode) {
		errs = append(errs, field.NotSupported(path.Child("volumeMode"), *mode, sets.List(supported)))
	}
	return errs
}

func validateAccessModes(modes []corev1.PersistentVolumeAccessMode, path *field.Path) field.ErrorList {
	if len(modes) == 0 {
		return field.ErrorList{field.Required(path, "at least one access mode is required")}
	}
	var errs field.ErrorList
	supported := sets.New(corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOncePod)
	used := sets.New(modes...)
	for i, mode := range modes {
		if !supported.Has(mode) {
			errs = append(errs, field.NotSupported(path.Index(i), mode, sets.List(supported)))
		}
	}
	if used.Has(corev1.ReadWriteOncePod) && used.HasAny(corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany) {
		errs = append(errs, field.Forbidden(path, "may not use ReadWriteOncePod with other access modes"))
	}
	return errs
}
