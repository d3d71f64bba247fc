// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package informer holds what all controllers have in common about the objects that they are told of.
package informer

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/failure"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/informers/externalversions"
)

// unavailableRetryInterval is how often the server of Sandboxes is asked for a list or a watch while it does not answer. A reflector alone
// would ask less and less, and then notice up to a minute late that the server is back; and it forgets only after two quiet minutes
// that requests have failed.
const unavailableRetryInterval = 2 * time.Second

// NewSandboxFactory returns informers for Sandboxes, which keep what they have while the server of Sandboxes is away.
func NewSandboxFactory(client versioned.Interface) externalversions.SharedInformerFactory {
	factory := externalversions.NewSharedInformerFactoryWithOptions(client, 0, externalversions.WithTransform(DropManagedFields))
	keepWhileAway(factory, &agentsv1beta1.Sandbox{}, client.AgentsV1beta1().Sandboxes(metav1.NamespaceAll))
	return factory
}

// NewFactory returns informers for Sandboxes, templates, warm pools and claims, which keep what they have while the server of them is
// away. All of them run once the factory is started.
func NewFactory(client versioned.Interface) externalversions.SharedInformerFactory {
	factory := NewSandboxFactory(client)
	extensions := client.ExtensionsV1beta1()
	keepWhileAway(factory, &extensionsv1beta1.SandboxTemplate{}, extensions.SandboxTemplates(metav1.NamespaceAll))
	keepWhileAway(factory, &extensionsv1beta1.SandboxWarmPool{}, extensions.SandboxWarmPools(metav1.NamespaceAll))
	keepWhileAway(factory, &extensionsv1beta1.SandboxClaim{}, extensions.SandboxClaims(metav1.NamespaceAll))
	return factory
}

// listWatcher is what an informer needs of the client of a resource, with L for its lists.
type listWatcher[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// keepWhileAway gives the factory an informer for a type in the place of the default one.
func keepWhileAway[L runtime.Object](factory externalversions.SharedInformerFactory, object runtime.Object, resource listWatcher[L]) {
	factory.InformerFor(object, func(client versioned.Interface, resync time.Duration) cache.SharedIndexInformer {
		return cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				return whenAvailable(ctx, unavailableRetryInterval, func(ctx context.Context) (L, error) { return resource.List(ctx, options) })
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				return whenAvailable(ctx, unavailableRetryInterval, func(ctx context.Context) (watch.Interface, error) {
					return resource.Watch(ctx, options)
				})
			},
		}, client), object, resync, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	})
}

// whenAvailable repeats a request for as long as the API is unavailable: kube-apiserver does not reach its server or does not know of it, or
// is away itself.
func whenAvailable[T any](ctx context.Context, interval time.Duration, request func(context.Context) (T, error)) (T, error) {
	for first := true; ; first = false {
		result, err := request(ctx)
		if !failure.Unavailable(err) {
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

// DropManagedFields drops, in place, what no controller reads of any object.
func DropManagedFields(obj any) (any, error) {
	if object, err := meta.Accessor(obj); err == nil {
		object.SetManagedFields(nil)
	}
	return obj, nil
}

// Untomb returns the object that an informer says is gone, in the last version that it had.
func Untomb(obj any) any {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		return tombstone.Obj
	}
	return obj
}
