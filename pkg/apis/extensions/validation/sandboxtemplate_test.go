// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
)

type templateTweak = func(*extensions.SandboxTemplate)

func validTemplate(tweaks ...templateTweak) *extensions.SandboxTemplate {
	template := &extensions.SandboxTemplate{
		ObjectMeta: validMeta(),
		Spec: extensions.SandboxTemplateSpec{
			SandboxBlueprint: agents.SandboxBlueprint{
				PodTemplate: agents.PodTemplate{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "image"}}}},
			},
			NetworkPolicyManagement:    extensions.NetworkPolicyManagementManaged,
			EnvVarsInjectionPolicy:     extensions.EnvVarsInjectionPolicyDisallowed,
			VolumeClaimTemplatesPolicy: extensions.VolumeClaimTemplatesPolicyDisallowed,
		},
	}
	for _, tweak := range tweaks {
		tweak(template)
	}
	return template
}

func validMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: "object", Namespace: "default", ResourceVersion: "1"}
}

// volume returns a template of a claim that can be made.
func volume(name string) agents.PersistentVolumeClaimTemplate {
	return agents.PersistentVolumeClaimTemplate{
		Metadata: agents.EmbeddedObjectMetadata{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

func templateVolumes(names ...string) templateTweak {
	return func(t *extensions.SandboxTemplate) {
		for _, name := range names {
			t.Spec.VolumeClaimTemplates = append(t.Spec.VolumeClaimTemplates, volume(name))
		}
	}
}

func templateNamed(name string) templateTweak {
	return func(t *extensions.SandboxTemplate) { t.Name = name }
}

func templateContainers(names ...string) templateTweak {
	return func(t *extensions.SandboxTemplate) {
		t.Spec.PodTemplate.Spec.Containers = nil
		for _, name := range names {
			t.Spec.PodTemplate.Spec.Containers = append(t.Spec.PodTemplate.Spec.Containers, corev1.Container{Name: name})
		}
	}
}

// lateInUTC is a time that is written with four digits for the year and read with five.
func lateInUTC() *metav1.Time {
	return &metav1.Time{Time: time.Date(9999, 12, 31, 23, 30, 0, 0, time.FixedZone("", -3600))}
}

func ownedSince(at *metav1.Time) []metav1.ManagedFieldsEntry {
	return []metav1.ManagedFieldsEntry{{Manager: "somebody", Operation: metav1.ManagedFieldsOperationUpdate, FieldsType: "FieldsV1", Time: at}}
}

// problems strips errors to what clients may rely on: the kind of error and the path.
func problems(errs field.ErrorList) []string {
	var got []string
	for _, err := range errs {
		got = append(got, string(err.Type)+" "+err.Field)
	}
	return got
}

// faultyTemplates is a fault of each kind, by what it is, with what is said of it.
var faultyTemplates = map[string]struct {
	fault templateTweak
	want  []string
}{
	"no containers":              {templateContainers(), []string{"FieldValueRequired spec.podTemplate.spec.containers"}},
	"two containers of one name": {templateContainers("a", "a"), []string{"FieldValueDuplicate spec.podTemplate.spec.containers[1].name"}},
	"Pod label that can be no one": {func(t *extensions.SandboxTemplate) {
		t.Spec.PodTemplate.Metadata.Labels = map[string]string{"a": "b c"}
	}, []string{"FieldValueInvalid spec.podTemplate.metadata.labels"}},
	"two volumes of one name": {templateVolumes("data", "data"), []string{"FieldValueDuplicate spec.volumeClaimTemplates[1].metadata.name"}},
	"volume without a name":   {templateVolumes(""), []string{"FieldValueRequired spec.volumeClaimTemplates[0].metadata.name"}},
	"volume without a size": {func(t *extensions.SandboxTemplate) {
		templateVolumes("data")(t)
		t.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests = nil
	}, []string{"FieldValueRequired spec.volumeClaimTemplates[0].spec.resources.requests[storage]"}},
	"unknown management of the NetworkPolicy": {func(t *extensions.SandboxTemplate) { t.Spec.NetworkPolicyManagement = "None" }, []string{"FieldValueNotSupported spec.networkPolicyManagement"}},
	"unknown policy for variables":            {func(t *extensions.SandboxTemplate) { t.Spec.EnvVarsInjectionPolicy = "allowed" }, []string{"FieldValueNotSupported spec.envVarsInjectionPolicy"}},
	"unknown policy for volumes":              {func(t *extensions.SandboxTemplate) { t.Spec.VolumeClaimTemplatesPolicy = "" }, []string{"FieldValueNotSupported spec.volumeClaimTemplatesPolicy"}},
	"unreadable time of an owner of fields":   {func(t *extensions.SandboxTemplate) { t.ManagedFields = ownedSince(lateInUTC()) }, []string{"FieldValueInvalid metadata.managedFields[0].time"}},
	"ingress from nowhere":                    {ingressFrom(peer{}), []string{"FieldValueRequired spec.networkPolicy.ingress[0].from[0]"}},
	"egress to nowhere":                       {egressTo(peer{}), []string{"FieldValueRequired spec.networkPolicy.egress[0].to[0]"}},
}

func TestValidateSandboxTemplate(t *testing.T) {
	for name, template := range map[string]*extensions.SandboxTemplate{
		"minimal":             validTemplate(),
		"name of a subdomain": validTemplate(templateNamed("a.b")),
		"volumes":             validTemplate(templateVolumes("data", "cache")),
		"every policy": validTemplate(func(t *extensions.SandboxTemplate) {
			t.Spec.NetworkPolicyManagement = extensions.NetworkPolicyManagementUnmanaged
			t.Spec.EnvVarsInjectionPolicy = extensions.EnvVarsInjectionPolicyOverrides
			t.Spec.VolumeClaimTemplatesPolicy = extensions.VolumeClaimTemplatesPolicyAllowed
		}),
		"NetworkPolicy that denies all": validTemplate(func(t *extensions.SandboxTemplate) { t.Spec.NetworkPolicy = &extensions.NetworkPolicySpec{} }),
	} {
		t.Run(name, func(t *testing.T) {
			if errs := ValidateSandboxTemplate(template); len(errs) > 0 {
				t.Errorf("refused: %v", errs)
			}
		})
	}
	for name, test := range faultyTemplates {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, problems(ValidateSandboxTemplate(validTemplate(test.fault)))); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("upper case in the name", func(t *testing.T) {
		if diff := cmp.Diff([]string{"FieldValueInvalid metadata.name"}, problems(ValidateSandboxTemplate(validTemplate(templateNamed("A"))))); diff != "" {
			t.Errorf("errors (-want +got):\n%s", diff)
		}
	})
}

// TestUnchangedFaultsOfATemplateBlockNothing stores what each rule forbids, as an older release may have, and then writes something else.
func TestUnchangedFaultsOfATemplateBlockNothing(t *testing.T) {
	label := func(t *extensions.SandboxTemplate) { t.Labels = map[string]string{"a": "b"} }
	service := func(t *extensions.SandboxTemplate) { t.Spec.Service = new(bool) }
	for name, test := range faultyTemplates {
		t.Run(name, func(t *testing.T) {
			stored := validTemplate(test.fault)
			if diff := cmp.Diff(test.want, problems(ValidateSandboxTemplateUpdate(stored, validTemplate()))); diff != "" {
				t.Errorf("introducing it: errors (-want +got):\n%s", diff)
			}
			for _, change := range []templateTweak{label, service} {
				if errs := ValidateSandboxTemplateUpdate(validTemplate(test.fault, change), stored); len(errs) > 0 {
					t.Errorf("then changing something else: %v", errs)
				}
			}
		})
	}
}

func TestVolumesOfATemplateMayChange(t *testing.T) {
	if errs := ValidateSandboxTemplateUpdate(validTemplate(templateVolumes("cache", "data")), validTemplate(templateVolumes("data"))); len(errs) > 0 {
		t.Errorf("refused: %v", errs)
	}
}
