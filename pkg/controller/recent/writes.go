// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package recent bridges the time between a write and its arrival in the cache of an informer.
package recent

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// CreationTimeout is how long a created object is believed to exist without the informer having delivered it. Past it, an object
// that was deleted again while the watch was interrupted is no longer waited for.
const CreationTimeout = 30 * time.Second

// Writes holds what the API server answered to writes that an informer has not delivered yet, so that a controller sees
// what it has just done. It is safe for concurrent use.
type Writes[T metav1.Object] struct {
	clock clock.PassiveClock

	mu     sync.Mutex
	byName map[cache.ObjectName]entry[T]
}

type entry[T metav1.Object] struct {
	object  T
	created bool
	at      time.Time
}

// NewWrites returns Writes of nothing.
func NewWrites[T metav1.Object](clock clock.PassiveClock) *Writes[T] {
	return &Writes[T]{clock: clock, byName: map[cache.ObjectName]entry[T]{}}
}

// Created notes that the object was created.
func (w *Writes[T]) Created(object T) { w.record(object, true) }

// Updated notes that the object, which the informer has in some version, was changed.
func (w *Writes[T]) Updated(object T) { w.record(object, false) }

func (w *Writes[T]) record(object T, created bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.byName[cache.MetaObjectToName(object)] = entry[T]{object: object, created: created, at: w.clock.Now()}
}

// Latest returns the newer of the written and the cached object of a name, given what the cache says about it.
func (w *Writes[T]) Latest(name cache.ObjectName, cached T, found bool) (T, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	write, ok := w.byName[name]
	switch {
	case !ok:
		return cached, found
	case found && newer(write.object, cached), !found && write.created && w.clock.Since(write.at) < CreationTimeout:
		return write.object, true
	default:
		delete(w.byName, name)
		return cached, found
	}
}

// Delivered notes that the informer has the object in this version.
func (w *Writes[T]) Delivered(object T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := cache.MetaObjectToName(object)
	if write, ok := w.byName[name]; ok && !newer(write.object, object) {
		delete(w.byName, name)
	}
}

// Deleted notes that the informer saw the object go. A write to a later object of the same name is kept.
func (w *Writes[T]) Deleted(object T) {
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
