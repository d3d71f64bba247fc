// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

const (
	// Patience is how long something may take that takes a second on an idle machine.
	Patience = time.Minute
	// PollInterval is how often is looked at what cannot be watched.
	PollInterval = 50 * time.Millisecond
)

// T is what the functions of this package need of a test. *testing.T has it.
type T interface {
	Helper()
	Context() context.Context
	Cleanup(f func())
	Failed() bool
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Eventually waits until check returns nil, and fails the test with its last error if it does not within the timeout. It may also be called
// in a cleanup, when the context of the test has ended.
func Eventually(t T, timeout time.Duration, what string, check func(ctx context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(context.WithoutCancel(t.Context()), PollInterval, timeout, true, func(ctx context.Context) (bool, error) {
		err := check(ctx)
		// That time was up during the check says less than the answer before.
		if err == nil || ctx.Err() == nil {
			last = err
		}
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: not within %v: %v", what, timeout, last)
	}
}

// Consistently fails the test as soon as check returns an error within a while.
func Consistently(t T, while time.Duration, what string, check func(ctx context.Context) error) {
	t.Helper()
	var failure error
	err := wait.PollUntilContextTimeout(t.Context(), PollInterval, while, true, func(ctx context.Context) (bool, error) {
		err := check(ctx)
		if err != nil && ctx.Err() == nil {
			failure = err
		}
		return failure != nil, nil
	})
	if failure != nil || !wait.Interrupted(err) {
		t.Fatalf("%s: %v", what, errors.Join(failure, err))
	}
}

// AwaitGone waits until get finds no object of a name.
func AwaitGone[O any](t T, what string, get func(ctx context.Context, name string, options metav1.GetOptions) (O, error), name string) {
	t.Helper()
	Eventually(t, Patience, what+" "+name+" is gone", func(ctx context.Context) error {
		_, err := get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		return errors.New("it is still there")
	})
}

// NextEvent returns the next event of a watch, and fails the test if there is none.
func NextEvent(t T, watcher watch.Interface) watch.Event {
	t.Helper()
	select {
	case event, open := <-watcher.ResultChan():
		if open {
			return event
		}
		t.Fatalf("the watch ended where an event was expected")
	case <-time.After(Patience):
		t.Fatalf("no event within %v", Patience)
	}
	return watch.Event{}
}

// NewNamespace makes a namespace in which Pods can be created, and deletes it at the end of the test. The name begins with a prefix.
// If the test failed, describe is called before.
func NewNamespace(t T, client kubernetes.Interface, prefix string, describe func(ctx context.Context, namespace string)) string {
	t.Helper()
	namespaces := client.CoreV1().Namespaces()
	namespace, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating a namespace: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), Patience)
		defer cancel()
		if t.Failed() {
			describe(ctx, namespace.Name)
		}
		if err := namespaces.Delete(ctx, namespace.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("deleting namespace %s: %v", namespace.Name, err)
		}
	})
	// Without it the first Pod would be refused, and made a backoff later.
	Eventually(t, Patience, "default ServiceAccount of a new namespace", func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts(namespace.Name).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	return namespace.Name
}
