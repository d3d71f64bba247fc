// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

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
func onOtherNode(s *agents.Sandbox)   { s.Status.NodeName = "other" }
func generation2(s *agents.Sandbox)   { s.Generation = 2 }
func withoutStatus(s *agents.Sandbox) { s.Status = agents.SandboxStatus{} }

func TestPrepareForCreate(t *testing.T) {
	got := newSandbox(generation2)
	NewStrategy(runtime.NewScheme()).PrepareForCreate(t.Context(), got)
	if diff := cmp.Diff(newSandbox(withoutStatus), got); diff != "" {
		t.Errorf("prepared (-want +got):\n%s", diff)
	}
}

func TestPrepareForUpdate(t *testing.T) {
	main, status := NewStrategy(runtime.NewScheme()), NewStatusStrategy(runtime.NewScheme())
	for _, test := range []struct {
		name     string
		strategy interface {
			PrepareForUpdate(ctx context.Context, obj, old runtime.Object)
		}
		new, want *agents.Sandbox
	}{
		{"sandboxes: nothing", main, newSandbox(), newSandbox()},
		{"sandboxes: spec", main, newSandbox(suspended), newSandbox(suspended, generation2)},
		{"sandboxes: metadata", main, newSandbox(labelled), newSandbox(labelled)},
		{"sandboxes: status", main, newSandbox(onOtherNode), newSandbox()},
		{"status: status", status, newSandbox(onOtherNode), newSandbox(onOtherNode)},
		{"status: spec", status, newSandbox(suspended, onOtherNode), newSandbox(onOtherNode)},
		{"status: metadata", status, newSandbox(labelled, onOtherNode), newSandbox(onOtherNode)},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.strategy.PrepareForUpdate(t.Context(), test.new, newSandbox())
			if diff := cmp.Diff(test.want, test.new); diff != "" {
				t.Errorf("prepared (-want +got):\n%s", diff)
			}
		})
	}
}

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
