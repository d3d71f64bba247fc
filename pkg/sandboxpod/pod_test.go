// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxpod

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
)

const (
	testNamespace = "default"
	testName      = "s1"
)

func claimVolume(name, claim string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}
}

func TestNew(t *testing.T) {
	scratch := corev1.Volume{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
	shadowed := corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
	sandbox := &agentsv1beta1.Sandbox{ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: testName, UID: "uid-1"}}
	sandbox.Spec.PodTemplate = agentsv1beta1.PodTemplate{
		Metadata: agentsv1beta1.PodMetadata{Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main", Image: "example"}},
			Volumes:    []corev1.Volume{shadowed, scratch},
		},
	}
	sandbox.Spec.VolumeClaimTemplates = []agentsv1beta1.PersistentVolumeClaimTemplate{{Metadata: agentsv1beta1.EmbeddedObjectMetadata{Name: "data"}}}
	before := sandbox.DeepCopy()
	want := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: testNamespace, Name: testName, OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "agents.x-k8s.io/v1beta1", Kind: "Sandbox", Name: testName, UID: "uid-1", Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
			}},
			Labels:      map[string]string{"app": "web", agentsv1beta1.SandboxNameHashLabel: "0851b8c9"},
			Annotations: map[string]string{agentsv1beta1.PropagatedLabelsAnnotation: "app"},
		},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main", Image: "example"}},
			Volumes:    []corev1.Volume{scratch, claimVolume("data", "data-s1")},
		},
	}
	got := New(sandbox)
	if hash := got.Annotations[PodTemplateSpecHashAnnotation]; len(hash) != 16 {
		t.Errorf("the hash of the template is %q", hash)
	}
	delete(got.Annotations, PodTemplateSpecHashAnnotation)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Pod differs (-want +got):\n%s", diff)
	}
	got.Spec.Containers[0].Image = "changed"
	got.Labels["app"] = "changed"
	if diff := cmp.Diff(before, sandbox); diff != "" {
		t.Errorf("the Pod shares memory with the Sandbox:\n%s", diff)
	}
}
