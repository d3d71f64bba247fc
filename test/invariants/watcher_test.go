// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/invariants/history"
)

const (
	// A server ends each watch after so many seconds, so that many of them are resumed.
	shortestWatch, longestWatch = 5, 15
	// retryInterval is how long a client waits after a failure.
	retryInterval = 100 * time.Millisecond
	// requestTimeout is when a client gives up.
	requestTimeout = 15 * time.Second
)

// watcher lists and watches a resource in all namespaces, as an informer does. It begins at one server, and resumes at any.
type watcher struct {
	resource string
	servers  []*server
	home     int
	random   *rand.Rand

	mu sync.Mutex
	// watches are what was seen, each from a list on. There is more than one if a server no longer knew where the one before was.
	watches []*history.Watch
}

// run watches until ctx ends.
func (w *watcher) run(ctx context.Context) {
	at := w.servers[w.home]
	expired := true
	for ctx.Err() == nil {
		var err error
		if expired {
			err = w.list(ctx, at)
			expired = err != nil
		}
		if err == nil {
			err = w.watch(ctx, at)
			expired = apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
		}
		if at = w.servers[w.home]; w.random.IntN(3) == 0 {
			at = w.servers[w.random.IntN(len(w.servers))]
		}
		if err != nil {
			pause(ctx, retryInterval)
		}
	}
}

// list begins another watch.
func (w *watcher) list(ctx context.Context, at *server) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	seen, err := list(ctx, at, w.resource, "")
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watches = append(w.watches, seen)
	return nil
}

// list returns what a server says is there, at least as new as a resourceVersion, or the newest if that is empty.
func list(ctx context.Context, at *server, resource, resourceVersion string) (*history.Watch, error) {
	options := metav1.ListOptions{ResourceVersion: resourceVersion}
	var objects runtime.Object
	var err error
	switch resource {
	case history.Claims:
		objects, err = at.Agents.ExtensionsV1beta1().SandboxClaims("").List(ctx, options)
	case history.Sandboxes:
		objects, err = at.Agents.AgentsV1beta1().Sandboxes("").List(ctx, options)
	}
	if err != nil {
		return nil, err
	}
	listed, err := meta.ListAccessor(objects)
	if err != nil {
		return nil, err
	}
	seen := &history.Watch{Who: at.name, Resource: resource, List: map[history.Key]history.Version{}}
	if seen.From, err = strconv.ParseInt(listed.GetResourceVersion(), 10, 64); err != nil {
		return nil, err
	}
	seen.To = seen.From
	return seen, meta.EachListItem(objects, func(object runtime.Object) error {
		key, revision, err := identify(resource, object)
		seen.List[key] = history.Version{Revision: revision, Object: history.Describe(object)}
		return err
	})
}

func identify(resource string, object runtime.Object) (history.Key, int64, error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return history.Key{}, 0, err
	}
	revision, err := strconv.ParseInt(accessor.GetResourceVersion(), 10, 64)
	return history.Key{Resource: resource, Namespace: accessor.GetNamespace(), Name: accessor.GetName()}, revision, err
}

// watch goes on where the present watch is.
func (w *watcher) watch(ctx context.Context, at *server) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seen := w.watches[len(w.watches)-1]
	seconds := int64(shortestWatch + w.random.IntN(longestWatch-shortestWatch))
	options := metav1.ListOptions{
		ResourceVersion: strconv.FormatInt(seen.To, 10), AllowWatchBookmarks: true, TimeoutSeconds: &seconds,
	}
	var events watch.Interface
	var err error
	switch w.resource {
	case history.Claims:
		events, err = at.Agents.ExtensionsV1beta1().SandboxClaims("").Watch(ctx, options)
	case history.Sandboxes:
		events, err = at.Agents.AgentsV1beta1().Sandboxes("").Watch(ctx, options)
	}
	if err != nil {
		return err
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		if event.Type == watch.Error {
			return apierrors.FromObject(event.Object)
		}
		if err := w.add(seen, at, event); err != nil {
			return err
		}
	}
	return nil
}

func (w *watcher) add(seen *history.Watch, at *server, event watch.Event) error {
	key, revision, err := identify(w.resource, event.Object)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	seen.To = max(seen.To, revision)
	if event.Type == watch.Bookmark {
		return nil
	}
	added := history.Event{Type: event.Type, Key: key, Revision: revision, Server: at.name}
	if event.Type != watch.Deleted {
		added.Object = history.Describe(event.Object)
	}
	seen.Events = append(seen.Events, added)
	return nil
}

// caughtUp returns an error unless the watch has come to a revision.
func (w *watcher) caughtUp(revision int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.watches) == 0 {
		return errors.New("nothing was listed")
	}
	if last := w.watches[len(w.watches)-1]; last.To < revision {
		return fmt.Errorf("watch of %s by %s has come to %d of %d", w.resource, last.Who, last.To, revision)
	}
	return nil
}

// pause waits for a while, or until ctx ends.
func pause(ctx context.Context, while time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(while):
	}
}
