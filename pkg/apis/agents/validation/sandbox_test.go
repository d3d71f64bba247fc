// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
)

func validSandbox(tweaks ...func(*agents.Sandbox)) *agents.Sandbox {
	sandbox := &agents.Sandbox{
		ObjectMeta: metav1.ObjectMeta{Name: "sandbox", Namespace: "default", ResourceVersion: "1"},
		Spec: agents.SandboxSpec{
			SandboxBlueprint: agents.SandboxBlueprint{
				PodTemplate: agents.PodTemplate{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "image"}}}},
			},
			OperatingMode:  agents.SandboxOperatingModeRunning,
			ShutdownPolicy: ptr.To(agents.ShutdownPolicyRetain),
		},
	}
	for _, tweak := range tweaks {
		tweak(sandbox)
	}
	return sandbox
}

func name(name string) func(*agents.Sandbox) {
	return func(s *agents.Sandbox) { s.Name = name }
}

func service(service bool) func(*agents.Sandbox) {
	return func(s *agents.Sandbox) { s.Spec.Service = &service }
}

func claims(names ...string) func(*agents.Sandbox) {
	return func(s *agents.Sandbox) {
		for _, name := range names {
			s.Spec.VolumeClaimTemplates = append(s.Spec.VolumeClaimTemplates,
				agents.PersistentVolumeClaimTemplate{Metadata: agents.EmbeddedObjectMetadata{Name: name}})
		}
	}
}

// problems strips errors to what clients may rely on: the kind of error and the path.
func problems(errs field.ErrorList) []string {
	var got []string
	for _, err := range errs {
		got = append(got, string(err.Type)+" "+err.Field)
	}
	return got
}

func TestValidateSandbox(t *testing.T) {
	for _, test := range []struct {
		name    string
		sandbox *agents.Sandbox
		want    []string
	}{
		{"minimal", validSandbox(), nil},
		{"suspended from the start", validSandbox(func(s *agents.Sandbox) { s.Spec.OperatingMode = agents.SandboxOperatingModeSuspended }), nil},
		{"name of a subdomain", validSandbox(name("a.b")), nil},
		{"longest name", validSandbox(name(strings.Repeat("a", 253))), nil},
		{"too long a name", validSandbox(name(strings.Repeat("a", 254))), []string{"FieldValueInvalid metadata.name"}},
		{"upper case in the name", validSandbox(name("A")), []string{"FieldValueInvalid metadata.name"}},
		{"no containers", validSandbox(func(s *agents.Sandbox) { s.Spec.PodTemplate.Spec.Containers = nil }),
			[]string{"FieldValueRequired spec.podTemplate.spec.containers"}},
		{"container without a name", validSandbox(func(s *agents.Sandbox) { s.Spec.PodTemplate.Spec.Containers[0].Name = "" }),
			[]string{"FieldValueRequired spec.podTemplate.spec.containers[0].name"}},
		{"two containers of one name", validSandbox(func(s *agents.Sandbox) {
			s.Spec.PodTemplate.Spec.Containers = append(s.Spec.PodTemplate.Spec.Containers, corev1.Container{Name: "main"})
		}), []string{"FieldValueDuplicate spec.podTemplate.spec.containers[1].name"}},
		{"two init containers of one name", validSandbox(func(s *agents.Sandbox) {
			s.Spec.PodTemplate.Spec.InitContainers = []corev1.Container{{Name: "init"}, {Name: "init"}}
		}), []string{"FieldValueDuplicate spec.podTemplate.spec.initContainers[1].name"}},
		{"unknown operating mode", validSandbox(func(s *agents.Sandbox) { s.Spec.OperatingMode = "Paused" }),
			[]string{"FieldValueNotSupported spec.operatingMode"}},
		{"unknown shutdown policy", validSandbox(func(s *agents.Sandbox) { s.Spec.ShutdownPolicy = ptr.To(agents.ShutdownPolicy("Keep")) }),
			[]string{"FieldValueNotSupported spec.shutdownPolicy"}},
		{"claims", validSandbox(claims("data", "cache")), nil},
		{"claim without a name", validSandbox(claims("")), []string{"FieldValueRequired spec.volumeClaimTemplates[0].metadata.name"}},
		{"two claims of one name", validSandbox(claims("data", "data")), []string{"FieldValueDuplicate spec.volumeClaimTemplates[1].metadata.name"}},
		{"claim whose name no volume can have", validSandbox(claims("a.b")), []string{"FieldValueInvalid spec.volumeClaimTemplates[0].metadata.name"}},
		{"claim whose name is too long with the sandbox's", validSandbox(name(strings.Repeat("a", 250)), claims("data")),
			[]string{"FieldValueTooLong spec.volumeClaimTemplates[0].metadata.name"}},
		{"service", validSandbox(service(true)), nil},
		{"service of 63 characters", validSandbox(name(strings.Repeat("a", 63)), service(true)), nil},
		{"service of 64 characters", validSandbox(name(strings.Repeat("a", 64)), service(true)), []string{"FieldValueInvalid metadata.name"}},
		{"service with a dot", validSandbox(name("a.b"), service(true)), []string{"FieldValueInvalid metadata.name"}},
		{"long name and no service", validSandbox(name(strings.Repeat("a", 64)), service(false)), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, problems(ValidateSandbox(test.sandbox))); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestValidateSandboxUpdate(t *testing.T) {
	long := name(strings.Repeat("a", 64))
	for _, test := range []struct {
		name     string
		old, new *agents.Sandbox
		want     []string
	}{
		{"no change", validSandbox(), validSandbox(), nil},
		{"pod template", validSandbox(), validSandbox(func(s *agents.Sandbox) { s.Spec.PodTemplate.Spec.Containers[0].Image = "other" }), nil},
		{"claims added", validSandbox(), validSandbox(claims("data")), []string{"FieldValueInvalid spec.volumeClaimTemplates"}},
		{"claims removed", validSandbox(claims("data")), validSandbox(), []string{"FieldValueInvalid spec.volumeClaimTemplates"}},
		{"claims reordered", validSandbox(claims("a", "b")), validSandbox(claims("b", "a")), []string{"FieldValueInvalid spec.volumeClaimTemplates"}},
		{"claim relabelled", validSandbox(claims("data")), validSandbox(claims("data"), func(s *agents.Sandbox) {
			s.Spec.VolumeClaimTemplates[0].Metadata.Labels = map[string]string{"a": "b"}
		}), []string{"FieldValueInvalid spec.volumeClaimTemplates"}},
		{"absent claims become empty", validSandbox(), validSandbox(func(s *agents.Sandbox) {
			s.Spec.VolumeClaimTemplates = []agents.PersistentVolumeClaimTemplate{}
		}), nil},
		{"unknown operating mode", validSandbox(), validSandbox(func(s *agents.Sandbox) { s.Spec.OperatingMode = "" }),
			[]string{"FieldValueNotSupported spec.operatingMode"}},
		{"service switched on under a long name", validSandbox(long), validSandbox(long, service(true)), []string{"FieldValueInvalid metadata.name"}},
		{"finalizer on an object stored before the rule on service names", validSandbox(long, service(true)),
			validSandbox(long, service(true), func(s *agents.Sandbox) { s.Finalizers = []string{"example.com/a"} }), nil},
		{"label on an object stored before the rule on claim names", validSandbox(claims("")),
			validSandbox(claims(""), func(s *agents.Sandbox) { s.Labels = map[string]string{"a": "b"} }), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, problems(ValidateSandboxUpdate(test.new, test.old))); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestValidateSandboxStatusUpdate(t *testing.T) {
	condition := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "DependenciesReady", LastTransitionTime: metav1.Now()}
	conditions := func(conditions ...metav1.Condition) *agents.Sandbox {
		return validSandbox(func(s *agents.Sandbox) { s.Status.Conditions = conditions })
	}
	bad := condition
	bad.Status, bad.Reason = "Maybe", "not a reason"
	for _, test := range []struct {
		name string
		new  *agents.Sandbox
		want []string
	}{
		{"empty", validSandbox(), nil},
		{"condition", conditions(condition), nil},
		{"malformed condition", conditions(bad), []string{"FieldValueNotSupported status.conditions[0].status", "FieldValueInvalid status.conditions[0].reason"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, problems(ValidateSandboxStatusUpdate(test.new, validSandbox()))); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}
