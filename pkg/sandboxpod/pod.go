// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package sandboxpod says what the Pod of a Sandbox looks like. The controller makes that Pod, and the API server asks kube-apiserver
// beforehand whether it could.
package sandboxpod

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
)

// New returns the Pod that a running Sandbox without one should get.
func New(sandbox *agentsv1beta1.Sandbox) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:            naming.Pod(sandbox.Name),
			Namespace:       sandbox.Namespace,
			OwnerReferences: []metav1.OwnerReference{ControllerRef(sandbox)},
		},
		Spec: *sandbox.Spec.PodTemplate.Spec.DeepCopy(),
	}
	pod.Spec.Volumes = podVolumes(sandbox)
	SyncMetadata(sandbox, pod)
	// A Pod without the mark is as good; it only cannot be told to be out of date.
	if hash, err := templateSpecHash(&sandbox.Spec.PodTemplate.Spec); err == nil {
		pod.Annotations[PodTemplateSpecHashAnnotation] = hash
	}
	return pod
}

// podVolumes returns the volumes of the template and one for each claim. Like in a StatefulSet, a claim replaces a volume of
// the template that has its name: two volumes of one name would make the Pod invalid.
func podVolumes(sandbox *agentsv1beta1.Sandbox) []corev1.Volume {
	templates := sandbox.Spec.VolumeClaimTemplates
	claims := make(map[string]bool, len(templates))
	for i := range templates {
		claims[templates[i].Metadata.Name] = true
	}
	var volumes []corev1.Volume
	for i := range sandbox.Spec.PodTemplate.Spec.Volumes {
		if volume := &sandbox.Spec.PodTemplate.Spec.Volumes[i]; !claims[volume.Name] {
			volumes = append(volumes, *volume.DeepCopy())
		}
	}
	for i := range templates {
		name := templates[i].Metadata.Name
		volumes = append(volumes, corev1.Volume{
			Name: name,
			VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
				ClaimName: naming.PersistentVolumeClaim(name, sandbox.Name),
			}},
		})
	}
	return volumes
}

// ControllerRef returns the reference that makes a Sandbox the controller of an object.
func ControllerRef(sandbox *agentsv1beta1.Sandbox) metav1.OwnerReference {
	return *metav1.NewControllerRef(sandbox, agentsv1beta1.SchemeGroupVersion.WithKind("Sandbox"))
}
