// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
)

func TestListKeysAreUnique(t *testing.T) {
	pod := func(change func(*corev1.PodSpec)) *agents.Sandbox {
		return validSandbox(func(s *agents.Sandbox) { change(&s.Spec.PodTemplate.Spec) })
	}
	container := func(change func(*corev1.Container)) *agents.Sandbox {
		return pod(func(p *corev1.PodSpec) { change(&p.Containers[0]) })
	}
	const spec, main = "spec.podTemplate.spec.", "spec.podTemplate.spec.containers[0]."
	for _, test := range []struct {
		name    string
		sandbox *agents.Sandbox
		want    []string
	}{
		{"pull secrets", pod(func(p *corev1.PodSpec) { p.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "a"}, {Name: "a"}} }),
			[]string{spec + "imagePullSecrets[1].name"}},
		{"resource claims", pod(func(p *corev1.PodSpec) { p.ResourceClaims = []corev1.PodResourceClaim{{Name: "a"}, {Name: "a"}} }),
			[]string{spec + "resourceClaims[1].name"}},
		{"scheduling gates", pod(func(p *corev1.PodSpec) { p.SchedulingGates = []corev1.PodSchedulingGate{{Name: "a"}, {Name: "a"}} }),
			[]string{spec + "schedulingGates[1].name"}},
		{"host aliases", pod(func(p *corev1.PodSpec) { p.HostAliases = []corev1.HostAlias{{IP: "10.0.0.1"}, {IP: "10.0.0.1"}} }),
			[]string{spec + "hostAliases[1]"}},
		{"spread constraints", pod(func(p *corev1.PodSpec) {
			p.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{TopologyKey: "a", WhenUnsatisfiable: "b"}, {TopologyKey: "a", WhenUnsatisfiable: "b"}}
		}), []string{spec + "topologySpreadConstraints[1]"}},
		{"spread constraints that differ in the action", pod(func(p *corev1.PodSpec) {
			p.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{TopologyKey: "a", WhenUnsatisfiable: "b"}, {TopologyKey: "a", WhenUnsatisfiable: "c"}}
		}), nil},
		{"ports", container(func(c *corev1.Container) {
			c.Ports = []corev1.ContainerPort{{ContainerPort: 80, Protocol: "TCP", Name: "a"}, {ContainerPort: 80, Protocol: "TCP", Name: "b"}}
		}), []string{main + "ports[1]"}},
		{"ports of two protocols", container(func(c *corev1.Container) {
			c.Ports = []corev1.ContainerPort{{ContainerPort: 3389, Protocol: "TCP"}, {ContainerPort: 3389, Protocol: "UDP"}}
		}), nil},
		{"mounts", container(func(c *corev1.Container) {
			c.VolumeMounts = []corev1.VolumeMount{{Name: "a", MountPath: "/a"}, {Name: "b", MountPath: "/a"}}
		}), []string{main + "volumeMounts[1]"}},
		{"one volume mounted twice", container(func(c *corev1.Container) {
			c.VolumeMounts = []corev1.VolumeMount{{Name: "a", MountPath: "/a"}, {Name: "a", MountPath: "/b"}}
		}), nil},
		{"devices", container(func(c *corev1.Container) {
			c.VolumeDevices = []corev1.VolumeDevice{{Name: "a", DevicePath: "/a"}, {Name: "b", DevicePath: "/a"}}
		}), []string{main + "volumeDevices[1]"}},
		{"resource claims of a container", container(func(c *corev1.Container) { c.Resources.Claims = []corev1.ResourceClaim{{Name: "a"}, {Name: "a"}} }),
			[]string{main + "resources.claims[1].name"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var want []string
			for _, path := range test.want {
				want = append(want, "FieldValueDuplicate "+path)
			}
			if diff := cmp.Diff(want, problems(ValidateSandbox(test.sandbox))); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			stored := test.sandbox.DeepCopy()
			stored.ResourceVersion = "1"
			change := stored.DeepCopy()
			change.Labels = map[string]string{"a": "b"}
			if errs := ValidateSandboxUpdate(change, stored); len(errs) != 0 {
				t.Errorf("a label on a Sandbox stored like that is refused: %v", errs)
			}
		})
	}
}
