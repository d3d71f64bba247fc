// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package binder

import (
	"context"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/tools/cache"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
)

// readinessPeriod is how often it is asked, at start, whether a watch cache can be watched. Nothing tells when.
const readinessPeriod = 10 * time.Millisecond

// follower keeps a store in step with a resource, through the watch cache of this process: no request leaves it and nothing is encoded.
// The store is given objects of the external version, which are shared with the watch cache and not to be changed.
type follower struct {
	resource *resource
	// object is an example of what the store is given; newList makes an empty list of the internal version.
	object  runtime.Object
	newList func() runtime.Object
	scheme  *runtime.Scheme
	store   *syncedStore
}

// run follows until ctx ends.
func (f follower) run(ctx context.Context) {
	// A watch that is refused because the cache is still empty would be tried again after a second only.
	if err := wait.PollUntilContextCancel(ctx, readinessPeriod, true, func(context.Context) (bool, error) {
		return f.resource.storage.ReadinessCheck() == nil, nil
	}); err != nil {
		return
	}
	source := &cache.ListWatch{ListWithContextFunc: f.list, WatchFuncWithContext: f.watch}
	cache.NewReflectorWithOptions(source, f.object, f.store, cache.ReflectorOptions{
		Name: "claim binder " + f.resource.config.GroupResource.String(),
	}).RunWithContext(ctx)
}

func (f follower) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list := f.newList()
	if err := f.resource.storage.GetList(ctx, f.resource.prefix, listOptions(options), list); err != nil {
		return nil, err
	}
	return f.scheme.UnsafeConvertToVersion(list, f.resource.version)
}

func (f follower) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	events, err := f.resource.storage.Watch(ctx, f.resource.prefix, listOptions(options))
	if err != nil {
		return nil, err
	}
	return watch.Filter(events, func(event watch.Event) (watch.Event, bool) {
		if event.Type == watch.Error {
			return event, true
		}
		// What several watchers are about to encode comes wrapped.
		if shared, ok := event.Object.(runtime.CacheableObject); ok {
			event.Object = shared.GetObject()
		}
		object, err := f.scheme.UnsafeConvertToVersion(event.Object, f.resource.version)
		if err != nil {
			utilruntime.HandleErrorWithContext(ctx, err, "Cannot convert what is watched", "resource", f.resource.config.GroupResource)
			return event, false
		}
		event.Object = object
		return event, true
	}), nil
}

// listOptions is what the generic registry makes of the options of a request for everything there is.
func listOptions(options metav1.ListOptions) storage.ListOptions {
	predicate := storage.Everything
	predicate.Limit, predicate.Continue = options.Limit, options.Continue
	predicate.AllowWatchBookmarks = options.AllowWatchBookmarks
	return storage.ListOptions{
		ResourceVersion:      options.ResourceVersion,
		ResourceVersionMatch: options.ResourceVersionMatch,
		Predicate:            predicate,
		Recursive:            true,
		SendInitialEvents:    options.SendInitialEvents,
	}
}

// syncedStore is a store that knows whether it has been filled.
type syncedStore struct {
	cache.ReflectorStore
	filled chan struct{}
	once   sync.Once
}

func newSyncedStore(store cache.ReflectorStore) *syncedStore {
	return &syncedStore{ReflectorStore: store, filled: make(chan struct{})}
}

// Replace implements cache.ReflectorStore. A Reflector calls it first.
func (s *syncedStore) Replace(objects []any, resourceVersion string) error {
	if err := s.ReflectorStore.Replace(objects, resourceVersion); err != nil {
		return err
	}
	s.once.Do(func() { close(s.filled) })
	return nil
}

// synced says whether the store has been filled.
func (s *syncedStore) synced() bool {
	select {
	case <-s.filled:
		return true
	default:
		return false
	}
}

// candidateStore is how a Reflector tells candidates of Sandboxes.
type candidateStore struct{ *candidates }

var _ cache.ReflectorStore = candidateStore{}

// Add implements cache.ReflectorStore.
func (s candidateStore) Add(obj any) error { return s.observe(obj.(*agentsv1beta1.Sandbox)) }

// Update implements cache.ReflectorStore.
func (s candidateStore) Update(obj any) error { return s.observe(obj.(*agentsv1beta1.Sandbox)) }

// Delete implements cache.ReflectorStore.
func (s candidateStore) Delete(obj any) error { return s.forget(obj.(*agentsv1beta1.Sandbox)) }

// Replace implements cache.ReflectorStore.
func (s candidateStore) Replace(objects []any, resourceVersion string) error {
	revision, err := strconv.ParseInt(resourceVersion, 10, 64)
	if err != nil {
		return err
	}
	sandboxes := make([]*agentsv1beta1.Sandbox, len(objects))
	for i, obj := range objects {
		sandboxes[i] = obj.(*agentsv1beta1.Sandbox)
	}
	return s.replace(sandboxes, revision)
}

// Resync implements cache.ReflectorStore.
func (candidateStore) Resync() error { return nil }
