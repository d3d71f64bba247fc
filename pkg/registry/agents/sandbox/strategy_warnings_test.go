// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/strategy"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/sandboxpod"
)

func TestWarnings(t *testing.T) {
	type tweak = func(*agents.Sandbox)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	shutdown := func(after time.Duration) tweak {
		return func(s *agents.Sandbox) { s.Spec.ShutdownTime = &metav1.Time{Time: now.Add(after)} }
	}
	ports := func(ports ...corev1.ContainerPort) tweak {
		return func(s *agents.Sandbox) { s.Spec.PodTemplate.Spec.Containers[0].Ports = ports }
	}
	beside := func(containers ...corev1.Container) tweak {
		return func(s *agents.Sandbox) {
			s.Spec.PodTemplate.Spec.Containers = append(s.Spec.PodTemplate.Spec.Containers, containers...)
		}
	}
	metadata := func(labels, annotations map[string]string) tweak {
		return func(s *agents.Sandbox) {
			s.Spec.PodTemplate.Metadata = agents.PodMetadata{Labels: labels, Annotations: annotations}
		}
	}
	tcp := corev1.ContainerPort{ContainerPort: 3389, Protocol: corev1.ProtocolTCP}
	udp := corev1.ContainerPort{ContainerPort: 3389, Protocol: corev1.ProtocolUDP}
	onHost := corev1.ContainerPort{ContainerPort: 3389, Protocol: corev1.ProtocolTCP, HostPort: 3389}
	named := tcp
	named.Name = "rdp"
	const past = "spec.shutdownTime: has passed already, so the Sandbox expires at once"

	for _, test := range []struct {
		name string
		old  []tweak // nil for a create
		new  []tweak
		want []string
	}{
		{"nothing", nil, nil, nil},
		{"service without ports", nil, []tweak{func(s *agents.Sandbox) { s.Spec.Service = new(true) }}, nil},

		{"shutdown time ahead", nil, []tweak{shutdown(time.Second)}, nil},
		{"shutdown time now", nil, []tweak{shutdown(0)}, []string{past}},
		{"shutdown time past", nil, []tweak{shutdown(-time.Second)}, []string{past}},
		{"shutdown time moved into the past", []tweak{shutdown(time.Hour)}, []tweak{shutdown(-time.Second)}, []string{past}},
		{"shutdown time that has passed meanwhile", []tweak{shutdown(-time.Second)}, []tweak{shutdown(-time.Second), suspended}, nil},

		{"port on two protocols", nil, []tweak{ports(tcp, udp)}, nil},
		{"port on the host as well", nil, []tweak{ports(tcp, onHost)}, nil},
		{"port twice", nil, []tweak{ports(named, tcp)},
			[]string{"spec.podTemplate.spec.containers[0].ports[1]: duplicate port definition with spec.podTemplate.spec.containers[0].ports[0]"}},
		{"port in two containers", nil, []tweak{ports(udp, tcp), beside(corev1.Container{Name: "other", Ports: []corev1.ContainerPort{named}})},
			[]string{"spec.podTemplate.spec.containers[1].ports[0]: duplicate port definition with spec.podTemplate.spec.containers[0].ports[1]"}},

		{"metadata", nil, []tweak{metadata(map[string]string{"app": "web"}, map[string]string{"app": "web"})}, nil},
		{"reserved keys", nil,
			[]tweak{metadata(map[string]string{"agents.x-k8s.io/b": "", "agents.x-k8s.io/a": ""}, map[string]string{v1beta1.TraceContextAnnotation: "{}"})},
			[]string{
				"spec.podTemplate.metadata.labels[agents.x-k8s.io/a]: reserved, ignored",
				"spec.podTemplate.metadata.labels[agents.x-k8s.io/b]: reserved, ignored",
				"spec.podTemplate.metadata.annotations[opentelemetry.io/trace-context]: reserved, ignored",
			}},
		{"reserved key of a member of a pool", nil, []tweak{metadata(map[string]string{"agents.x-k8s.io/a": ""}, nil), func(s *agents.Sandbox) {
			s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "extensions.agents.x-k8s.io/v1beta1", Kind: sandboxpod.WarmPoolKind, Controller: new(true)}}
		}}, nil},
		{"reserved key that was there before", []tweak{metadata(map[string]string{"agents.x-k8s.io/a": ""}, nil)},
			[]tweak{metadata(map[string]string{"agents.x-k8s.io/a": "", "app": "web"}, nil)}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := strategy.NewMain(runtime.NewScheme(), kind(clocktesting.NewFakePassiveClock(now)))
			var got []string
			if test.old == nil {
				got = s.WarningsOnCreate(t.Context(), newSandbox(test.new...))
			} else {
				got = s.WarningsOnUpdate(t.Context(), newSandbox(test.new...), newSandbox(test.old...))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestIgnoredKeysAreThoseThatDoNotReachThePod holds what is said about reserved keys against what is done with them.
func TestIgnoredKeysAreThoseThatDoNotReachThePod(t *testing.T) {
	for _, key := range []string{
		"app", "x-k8s.io/a", "agents.x-k8s.io", "agents.x-k8s.io/", "agents.x-k8s.io/a", "extensions.agents.x-k8s.io/a", "api.agents.x-k8s.io/a",
		"Agents.x-k8s.io/a", v1beta1.SandboxNameHashLabel, v1beta1.PropagatedLabelsAnnotation, v1beta1.TraceContextAnnotation, "opentelemetry.io/other",
	} {
		sandbox := &v1beta1.Sandbox{}
		sandbox.Spec.PodTemplate.Metadata = v1beta1.PodMetadata{Labels: map[string]string{key: "asked"}, Annotations: map[string]string{key: "asked"}}
		pod := &corev1.Pod{}
		sandboxpod.SyncMetadata(sandbox, pod)
		reserved := v1beta1.IsReservedPodMetadataKey(key)
		if ignored := pod.Labels[key] != "asked"; ignored != reserved {
			t.Errorf("label %q: ignored is %t, reserved is %t", key, ignored, reserved)
		}
		if ignored := pod.Annotations[key] != "asked"; ignored != reserved {
			t.Errorf("annotation %q: ignored is %t, reserved is %t", key, ignored, reserved)
		}
	}
}
