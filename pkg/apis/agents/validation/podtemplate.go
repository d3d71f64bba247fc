// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"encoding/json"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apimachineryvalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
)

// PodTemplateRules are about what has to hold even where nobody asks kube-apiserver about the Pod: lists can be merged by key, and
// the template can be written in every format. Whether it can become a Pod is for kube-apiserver to say.
func PodTemplateRules(path *field.Path) []Rule[agents.PodTemplate] {
	return append(
		RulesOf(func(t *agents.PodTemplate) *corev1.PodSpec { return &t.Spec }, podSpecRules(path.Child("spec"))),
		RulesOf(func(t *agents.PodTemplate) *agents.PodMetadata { return &t.Metadata }, podMetadataRules(path.Child("metadata")))...)
}

func podSpecRules(path *field.Path) []Rule[corev1.PodSpec] {
	return append(podListKeyRules(path), []Rule[corev1.PodSpec]{{
		Subject: func(s *corev1.PodSpec) any { return s.Containers },
		Check: func(s *corev1.PodSpec) field.ErrorList {
			if len(s.Containers) == 0 {
				return field.ErrorList{field.Required(path.Child("containers"), "a Sandbox needs at least one container")}
			}
			return validateContainers(s.Containers, path.Child("containers"))
		},
	}, {
		Subject: func(s *corev1.PodSpec) any { return s.InitContainers },
		Check: func(s *corev1.PodSpec) field.ErrorList {
			return validateContainers(s.InitContainers, path.Child("initContainers"))
		},
	}, {
		Subject: func(s *corev1.PodSpec) any { return *s },
		Check:   func(s *corev1.PodSpec) field.ErrorList { return validateJSONForm(s, path) },
	}}...)
}

// podMetadataRules say nothing about reserved keys, which are ignored.
func podMetadataRules(path *field.Path) []Rule[agents.PodMetadata] {
	return []Rule[agents.PodMetadata]{{
		Subject: func(m *agents.PodMetadata) any { return m.Labels },
		Check: func(m *agents.PodMetadata) field.ErrorList {
			return metav1validation.ValidateLabels(withoutKeys(m.Labels, v1beta1.IsReservedPodMetadataKey), path.Child("labels"))
		},
	}, {
		Subject: func(m *agents.PodMetadata) any { return m.Annotations },
		Check: func(m *agents.PodMetadata) field.ErrorList {
			return apimachineryvalidation.ValidateAnnotations(withoutKeys(m.Annotations, v1beta1.IsReservedPodMetadataKey), path.Child("annotations"))
		},
	}}
}

func withoutKeys(m map[string]string, drop func(key string) bool) map[string]string {
	kept := maps.Clone(m)
	maps.DeleteFunc(kept, func(key, _ string) bool { return drop(key) })
	return kept
}

func validateContainers(containers []corev1.Container, path *field.Path) field.ErrorList {
	errs := duplicateNames(containers, path, func(c *corev1.Container) string { return c.Name })
	for i := range containers {
		if containers[i].Name == "" {
			errs = append(errs, field.Required(path.Index(i).Child("name"), ""))
		}
		errs = append(errs, validateEnv(containers[i].Env, path.Index(i).Child("env"))...)
		errs = append(errs, validateContainerListKeys(&containers[i], path.Index(i))...)
	}
	return errs
}

// validateEnv refuses a variable with two sources, which is what a merge of a literal into a variable from a Secret leaves behind.
func validateEnv(env []corev1.EnvVar, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range env {
		if env[i].Value != "" && env[i].ValueFrom != nil {
			errs = append(errs, field.Invalid(path.Index(i).Child("valueFrom"), field.OmitValueType{}, "may not be specified when `value` is not empty"))
		}
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
