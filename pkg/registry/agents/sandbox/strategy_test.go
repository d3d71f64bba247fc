// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
)

func newSandbox(tweaks ...func(*agents.Sandbox)) *agents.Sandbox {
	sandbox := &agents.Sandbox{
		ObjectMeta: metav1.ObjectMeta{Name: "sandbox", Namespace: "default", Generation: 1},
		Spec: agents.SandboxSpec{
			SandboxBlueprint: agents.SandboxBlueprint{
				PodTemplate: agents.PodTemplate{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "image"}}}},
			},
			OperatingMode: agents.SandboxOperatingModeRunning,
		},
		Status: agents.SandboxStatus{NodeName: "node"},
	}
	for _, tweak := range tweaks {
		tweak(sandbox)
	}
	return sandbox
}

func suspended(s *agents.Sandbox)     { s.Spec.OperatingMode = agents.SandboxOperatingModeSuspended }
func labelled(s *agents.Sandbox)      { s.Labels = map[string]string{"a": "b"} }
func withoutStatus(s *agents.Sandbox) { s.Status = agents.SandboxStatus{} }

func TestMatchSandbox(t *testing.T) {
	for _, test := range []struct {
		name, label, field string
		want               bool
	}{
		{"everything", "", "", true},
		{"name", "", "metadata.name=sandbox", true},
		{"other name", "", "metadata.name=other", false},
		{"namespace", "", "metadata.namespace=default", true},
		{"label", "a=b", "", true},
		{"other label", "a=c", "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			label, err := labels.Parse(test.label)
			if err != nil {
				t.Fatal(err)
			}
			predicate := MatchSandbox(label, fields.ParseSelectorOrDie(test.field))
			got, err := predicate.Matches(newSandbox(labelled))
			if err != nil {
				t.Fatal(err)
			}
			if got != test.want {
				t.Errorf("matches = %v, want %v", got, test.want)
			}
		})
	}
}
