// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"encoding/json"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apimachineryvalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
)

// podTemplateRules are about what has to hold even where nobody asks kube-apiserver about the Pod: lists can be merged by key, and
// the template can be written in every format. Whether it can become a Pod is for kube-apiserver to say.
func podTemplateRules(path *field.Path) []rule {
	spec, metadata := path.Child("spec"), path.Child("metadata")
	return []rule{{
		subject: func(s *agents.Sandbox) any { return s.Spec.PodTemplate.Spec.Containers },
		check: func(s *agents.Sandbox) field.ErrorList {
			if len(s.Spec.PodTemplate.Spec.Containers) == 0 {
				return field.ErrorList{field.Required(spec.Child("containers"), "a Sandbox needs at least one container")}
			}
			return validateContainers(s.Spec.PodTemplate.Spec.Containers, spec.Child("containers"))
		},
	}, {
		subject: func(s *agents.Sandbox) any { return s.Spec.PodTemplate.Spec.InitContainers },
		check: func(s *agents.Sandbox) field.ErrorList {
			return validateContainers(s.Spec.PodTemplate.Spec.InitContainers, spec.Child("initContainers"))
		},
	}, {
		subject: func(s *agents.Sandbox) any { return s.Spec.PodTemplate.Spec.Volumes },
		check: func(s *agents.Sandbox) field.ErrorList {
			return validateVolumeNames(s.Spec.PodTemplate.Spec.Volumes, spec.Child("volumes"))
		},
	}, {
		subject: func(s *agents.Sandbox) any { return s.Spec.PodTemplate.Spec },
		check:   func(s *agents.Sandbox) field.ErrorList { return validateJSONForm(&s.Spec.PodTemplate.Spec, spec) },
	}, {
		subject: func(s *agents.Sandbox) any { return s.Spec.PodTemplate.Metadata.Labels },
		check: func(s *agents.Sandbox) field.ErrorList {
			return metav1validation.ValidateLabels(withoutKeys(s.Spec.PodTemplate.Metadata.Labels, v1beta1.IsReservedPodMetadataKey), metadata.Child("labels"))
		},
	}, {
		subject: func(s *agents.Sandbox) any { return s.Spec.PodTemplate.Metadata.Annotations },
		check: func(s *agents.Sandbox) field.ErrorList {
			return apimachineryvalidation.ValidateAnnotations(withoutKeys(s.Spec.PodTemplate.Metadata.Annotations, v1beta1.IsReservedPodMetadataKey), metadata.Child("annotations"))
		},
	}}
}

func withoutKeys(m map[string]string, drop func(key string) bool) map[string]string {
	kept := maps.Clone(m)
	maps.DeleteFunc(kept, func(key, _ string) bool { return drop(key) })
	return kept
}

func validateContainers(containers []corev1.Container, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i := range containers {
		name, namePath := containers[i].Name, path.Index(i).Child("name")
		switch {
		case name == "":
			errs = append(errs, field.Required(namePath, ""))
		case seen.Has(name):
			errs = append(errs, field.Duplicate(namePath, name))
		}
		seen.Insert(name)
		errs = append(errs, validateEnv(containers[i].Env, path.Index(i).Child("env"))...)
	}
	return errs
}

// validateEnv refuses a variable with two sources, which is what a merge of a literal into a variable from a Secret leaves behind, and
// one that is there twice, as a schema with map keys does: a client-side apply that takes one of them away takes both.
func validateEnv(env []corev1.EnvVar, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i := range env {
		if seen.Has(env[i].Name) {
			errs = append(errs, field.Duplicate(path.Index(i).Child("name"), env[i].Name))
		}
		seen.Insert(env[i].Name)
		if env[i].Value != "" && env[i].ValueFrom != nil {
			errs = append(errs, field.Invalid(path.Index(i).Child("valueFrom"), field.OmitValueType{}, "may not be specified when `value` is not empty"))
		}
	}
	return errs
}

func validateVolumeNames(volumes []corev1.Volume, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i := range volumes {
		if seen.Has(volumes[i].Name) {
			errs = append(errs, field.Duplicate(path.Index(i).Child("name"), volumes[i].Name))
		}
		seen.Insert(volumes[i].Name)
	}
	return errs
}

// validateJSONForm refuses what protobuf can carry and JSON cannot, such as a port that is neither a number nor a name. Stored, it
// would make every list that holds it fail for clients that ask for JSON.
func validateJSONForm(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	encoded, err := json.Marshal(spec)
	if err == nil {
		err = json.Unmarshal(encoded, &corev1.PodSpec{})
	}
	if err != nil {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, "has no form in JSON: "+err.Error())}
	}
	return nil
}
