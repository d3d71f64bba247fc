// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// creationTimeout is how long a created object is believed to exist without the informer having delivered it. Past it, an object
// that was deleted again while the watch was interrupted is no longer waited for.
const creationTimeout = 30 * time.Second

// recentWrites holds what the API server answered to writes that an informer has not delivered yet, so that a controller sees
// what it has just done. It is safe for concurrent use.
type recentWrites[T metav1.Object] struct {
	clock clock.PassiveClock

	mu     sync.Mutex
	byName map[cache.ObjectName]recentWrite[T]
}

type recentWrite[T metav1.Object] struct {
	object  T
	created bool
	at      time.Time
}

func newRecentWrites[T metav1.Object](clock clock.PassiveClock) *recentWrites[T] {
	return &recentWrites[T]{clock: clock, byName: map[cache.ObjectName]recentWrite[T]{}}
}

// created notes that the object was created.
func (w *recentWrites[T]) created(object T) { w.record(object, true) }

// updated notes that the object, which the informer has in some version, was changed.
func (w *recentWrites[T]) updated(object T) { w.record(object, false) }

func (w *recentWrites[T]) record(object T, created bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.byName[cache.MetaObjectToName(object)] = recentWrite[T]{object: object, created: created, at: w.clock.Now()}
}

// latest returns the newer of the written and the cached object of a name, given what the cache says about it.
func (w *recentWrites[T]) latest(name cache.ObjectName, cached T, found bool) (T, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	write, ok := w.byName[name]
	switch {
	case !ok:
		return cached, found
	case found && newer(write.object, cached), !found && write.created && w.clock.Since(write.at) < creationTimeout:
		return write.object, true
	default:
		delete(w.byName, name)
		return cached, found
	}
}

// delivered notes that the informer has the object in this version.
func (w *recentWrites[T]) delivered(object T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := cache.MetaObjectToName(object)
	if write, ok := w.byName[name]; ok && !newer(write.object, object) {
		delete(w.byName, name)
	}
}

// deleted notes that the informer saw the object go. A write to a later object of the same name is kept.
func (w *recentWrites[T]) deleted(object T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := cache.MetaObjectToName(object)
	if write, ok := w.byName[name]; ok && write.object.GetUID() == object.GetUID() {
		delete(w.byName, name)
	}
}

func newer(a, b metav1.Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order > 0
}
