// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/informers/externalversions"
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

// unavailableRetryInterval is how often the server of Sandboxes is asked for a list while it does not answer. A reflector alone
// would ask less and less, and then notice up to a minute late that the server is back.
const unavailableRetryInterval = 2 * time.Second

// NewSandboxInformerFactory returns informers for Sandboxes, which keep what they have while the server of Sandboxes is away.
func NewSandboxInformerFactory(client versioned.Interface) externalversions.SharedInformerFactory {
	factory := externalversions.NewSharedInformerFactoryWithOptions(client, 0, externalversions.WithTransform(trim))
	// From here on the factory has this informer in the place of the default one.
	factory.InformerFor(&agentsv1beta1.Sandbox{}, newSandboxInformer)
	return factory
}

func newSandboxInformer(client versioned.Interface, resync time.Duration) cache.SharedIndexInformer {
	sandboxes := client.AgentsV1beta1().Sandboxes(metav1.NamespaceAll)
	return cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return listWhenAvailable(ctx, unavailableRetryInterval, func(ctx context.Context) (*agentsv1beta1.SandboxList, error) {
				return sandboxes.List(ctx, options)
			})
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return sandboxes.Watch(ctx, options)
		},
	}, client), &agentsv1beta1.Sandbox{}, resync, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
}

// listWhenAvailable repeats list for as long as the API is unavailable or not served, in which case kube-apiserver answers 404.
func listWhenAvailable[T any](ctx context.Context, interval time.Duration, list func(context.Context) (T, error)) (T, error) {
	for first := true; ; first = false {
		result, err := list(ctx)
		if !apierrors.IsServiceUnavailable(err) && !apierrors.IsNotFound(err) {
			return result, err
		}
		if first {
			klog.FromContext(ctx).Info("Waiting for the server of Sandboxes", "reason", err)
		}
		select {
		case <-ctx.Done():
			return result, err
		case <-time.After(wait.Jitter(interval, 0.5)):
		}
	}
}

// trim drops, in place, what the controller does not read of an object.
func trim(obj any) (any, error) {
	if object, err := meta.Accessor(obj); err == nil {
		object.SetManagedFields(nil)
	}
	switch object := obj.(type) {
	case *corev1.Pod:
		trimPod(object)
	case *corev1.PersistentVolumeClaim:
		object.Spec, object.Status = corev1.PersistentVolumeClaimSpec{}, corev1.PersistentVolumeClaimStatus{}
	}
	return obj, nil
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
