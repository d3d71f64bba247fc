// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/sandboxpod"
)

// desiredPersistentVolumeClaim returns the claim that is made from a template. It is a starting point only: an existing claim
// is never changed to look like it.
func desiredPersistentVolumeClaim(sandbox *agentsv1beta1.Sandbox, template *agentsv1beta1.PersistentVolumeClaimTemplate) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name:            naming.PersistentVolumeClaim(template.Metadata.Name, sandbox.Name),
			Namespace:       sandbox.Namespace,
			Labels:          withLabel(maps.Clone(template.Metadata.Labels), agentsv1beta1.SandboxNameHashLabel, naming.Hash(sandbox.Name)),
			Annotations:     maps.Clone(template.Metadata.Annotations),
			OwnerReferences: []metav1.OwnerReference{sandboxpod.ControllerRef(sandbox)},
		},
		Spec: *template.Spec.DeepCopy(),
	}
}
