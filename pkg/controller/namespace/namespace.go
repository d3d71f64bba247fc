// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package namespace keeps controllers from asking a namespace that is going away for new objects: it refuses each of them, and goes
// with everything that the objects would be for.
package namespace

import (
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/failure"
)

// TerminatingDelay is how long an object rests whose namespace refuses new objects.
const TerminatingDelay = 30 * time.Second

// errTerminating is returned instead of a request that the API server would refuse.
var errTerminating = errors.New("the namespace is being terminated")

// IsTerminating says that an error means that the namespace is going away.
func IsTerminating(err error) bool {
	return errors.Is(err, errTerminating) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// Terminating remembers which namespaces refused a new object, for TerminatingDelay. It may be lost without harm. It is safe for
// concurrent use.
type Terminating struct {
	clock clock.PassiveClock

	mu sync.Mutex
	// refused holds when a namespace last refused a new object because it is going away.
	refused map[string]time.Time
}

// NewTerminating returns a Terminating that knows of no namespace.
func NewTerminating(clock clock.PassiveClock) *Terminating {
	return &Terminating{clock: clock, refused: map[string]time.Time{}}
}

// note notes that the namespace refuses new objects because it is going away.
func (t *Terminating) note(namespace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	for namespace, at := range t.refused {
		if now.Sub(at) >= TerminatingDelay {
			delete(t.refused, namespace)
		}
	}
	t.refused[namespace] = now
}

// Holds says whether the object is in a namespace that refuses new objects. An object that was created later than the refusal proves
// that there is a new namespace of that name.
func (t *Terminating) Holds(object metav1.Object) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, ok := t.refused[object.GetNamespace()]
	return ok && !object.GetCreationTimestamp().Time.After(at) && t.clock.Since(at) < TerminatingDelay
}

// Create creates an object for an owner in the same namespace by calling create. It does not ask a namespace that is known to be going
// away.
func Create[T metav1.Object](t *Terminating, owner metav1.Object, create func() (T, error)) (T, error) {
	if t.Holds(owner) {
		var none T
		return none, errTerminating
	}
	object, err := create()
	if IsTerminating(err) {
		t.note(owner.GetNamespace())
	}
	return object, err
}

// CreateOrGet creates an object for an owner as Create does, or gets the one that has its name already. A refusal leads to the get
// too: quota and admission come before the check of the name, so they may refuse an object that exists already and which the cache
// does not show yet.
func CreateOrGet[T metav1.Object](t *Terminating, owner metav1.Object, create, get func() (T, error)) (object T, created bool, err error) {
	object, err = Create(t, owner, create)
	switch {
	case err == nil:
		return object, true, nil
	case IsTerminating(err), !apierrors.IsAlreadyExists(err) && !apierrors.IsForbidden(err):
		return object, false, err
	}
	existing, getErr := get()
	switch {
	case getErr == nil:
		return existing, false, nil
	case failure.ObjectNotFound(getErr):
		return object, false, err
	default:
		return object, false, getErr
	}
}
