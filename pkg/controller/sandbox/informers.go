// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/informer"
)

// NewChildInformerFactory returns informers for Pods, Services and PersistentVolumeClaims that hold what the controller needs
// and no more: objects with the name hash label, without the fields that it does not read. A cluster may have many times more
// Pods than Sandboxes. Objects of a Sandbox that lost the label are found by their names when it matters, and get it back.
func NewChildInformerFactory(client kubernetes.Interface) informers.SharedInformerFactory {
	return informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = agentsv1beta1.SandboxNameHashLabel }),
		informers.WithTransform(trim),
	)
}

// trim drops, in place, what the controller does not read of an object.
func trim(obj any) (any, error) {
	switch object := obj.(type) {
	case *corev1.Pod:
		trimPod(object)
	case *corev1.PersistentVolumeClaim:
		object.Spec, object.Status = corev1.PersistentVolumeClaimSpec{}, corev1.PersistentVolumeClaimStatus{}
	}
	return informer.DropManagedFields(obj)
}

func trimPod(pod *corev1.Pod) *corev1.Pod {
	pod.ManagedFields = nil
	pod.Spec = corev1.PodSpec{NodeName: pod.Spec.NodeName}
	pod.Status = corev1.PodStatus{
		Phase:   pod.Status.Phase,
		Reason:  pod.Status.Reason,
		Message: pod.Status.Message,
		PodIPs:  pod.Status.PodIPs,
		Conditions: slices.DeleteFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
			return condition.Type != corev1.PodReady && condition.Type != corev1.PodScheduled && condition.Type != corev1.DisruptionTarget
		}),
		InitContainerStatuses: trimContainerStatuses(pod.Status.InitContainerStatuses),
		ContainerStatuses:     trimContainerStatuses(pod.Status.ContainerStatuses),
	}
	return pod
}
