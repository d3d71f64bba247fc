// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
)

// Image is the image of sandboxes, which a real local cluster has loaded. A light one runs nothing and needs none.
const Image = "sandbox.local/busybox:1"

// PodSpec returns a Pod that runs until it is deleted, and ends as soon as it is told to.
func PodSpec(image string) corev1.PodSpec {
	return corev1.PodSpec{
		// The grace period is that of a process which, as the first of its container, would ignore signals.
		TerminationGracePeriodSeconds: new(int64(0)),
		Containers: []corev1.Container{{
			Name:    "main",
			Image:   image,
			Command: []string{"sleep", "infinity"},
		}},
	}
}

// NewSandbox returns a Sandbox of one container, changed by options.
func NewSandbox(name string, options ...func(*v1beta1.Sandbox)) *v1beta1.Sandbox {
	sandbox := &v1beta1.Sandbox{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1beta1.SandboxSpec{
			SandboxBlueprint: v1beta1.SandboxBlueprint{PodTemplate: v1beta1.PodTemplate{Spec: PodSpec(Image)}},
		},
	}
	for _, option := range options {
		option(sandbox)
	}
	return sandbox
}

// Manifest returns a Sandbox as users write it, followed by more lines of its spec.
func Manifest(name string, specLines ...string) string {
	const head = `apiVersion: agents.x-k8s.io/v1beta1
kind: Sandbox
metadata:
  name: %s
spec:
  podTemplate:
    spec:
      containers:
      - name: main
        image: %s
        command: [sleep, infinity]
`
	lines := fmt.Sprintf(head, name, Image)
	for _, line := range specLines {
		lines += "  " + line + "\n"
	}
	return lines
}

// Suspended is an option of NewSandbox: no Pod is made until the Sandbox is resumed.
func Suspended(sandbox *v1beta1.Sandbox) {
	sandbox.Spec.OperatingMode = v1beta1.SandboxOperatingModeSuspended
}

// WithService is an option of NewSandbox: the Sandbox has a headless Service.
func WithService(sandbox *v1beta1.Sandbox) {
	sandbox.Spec.Service = new(true)
}

// WithVolume returns an option of NewSandbox: the Sandbox has a volume of the given name, mounted at /<name>.
func WithVolume(name string) func(*v1beta1.Sandbox) {
	return func(sandbox *v1beta1.Sandbox) {
		sandbox.Spec.VolumeClaimTemplates = append(sandbox.Spec.VolumeClaimTemplates, v1beta1.PersistentVolumeClaimTemplate{
			Metadata: v1beta1.EmbeddedObjectMetadata{Name: name},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources: corev1.VolumeResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("16Mi")},
				},
			},
		})
		container := &sandbox.Spec.PodTemplate.Spec.Containers[0]
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/" + name})
	}
}
