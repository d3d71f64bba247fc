// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// PodWatch counts, at every moment, the Pods of each Sandbox in a namespace.
type PodWatch struct {
	watcher watch.Interface
	// stopping is closed when the watch is about to be stopped: an error is to be expected then.
	stopping, ended chan struct{}
	// live has the Pods of each Sandbox, by UID. It and errs belong to the watching goroutine until ended is closed.
	live map[types.UID]map[types.UID]bool
	errs []error
}

// WatchPods begins to watch the Pods of a namespace, which all belong to Sandboxes.
func WatchPods(t T, client kubernetes.Interface, namespace string) *PodWatch {
	t.Helper()
	pods := client.CoreV1().Pods(namespace)
	list, err := pods.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatalf("listing Pods: %v", err)
	}
	// kube-apiserver may end a watch at any time; this one then goes on where it was.
	watcher, err := watchtools.NewRetryWatcherWithContext(t.Context(), list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: pods.Watch,
	})
	if err != nil {
		t.Fatalf("watching Pods: %v", err)
	}
	w := newPodWatch(watcher)
	for i := range list.Items {
		w.count(watch.Event{Type: watch.Added, Object: &list.Items[i]})
	}
	go w.run()
	return w
}

func newPodWatch(watcher watch.Interface) *PodWatch {
	return &PodWatch{watcher: watcher, stopping: make(chan struct{}), ended: make(chan struct{}), live: map[types.UID]map[types.UID]bool{}}
}

func (w *PodWatch) run() {
	defer close(w.ended)
	for event := range w.watcher.ResultChan() {
		w.count(event)
	}
}

func (w *PodWatch) count(event watch.Event) {
	pod, ok := event.Object.(*corev1.Pod)
	if !ok {
		select {
		case <-w.stopping:
		default:
			w.errs = append(w.errs, fmt.Errorf("watching Pods: %s %+v", event.Type, event.Object))
		}
		return
	}
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		w.errs = append(w.errs, fmt.Errorf("the Pod %s has no controller", pod.Name))
		return
	}
	if w.live[owner.UID] == nil {
		w.live[owner.UID] = map[types.UID]bool{}
	}
	if event.Type == watch.Deleted {
		delete(w.live[owner.UID], pod.UID)
		return
	}
	w.live[owner.UID][pod.UID] = true
	if n := len(w.live[owner.UID]); n > 1 {
		w.errs = append(w.errs, fmt.Errorf("the Sandbox %s has %d Pods at once", owner.Name, n))
	}
}

// Stop ends the watch. It returns an error if a Sandbox had two Pods at once, if a Pod was nobody's, or if the watch cannot tell: it broke,
// or saw no Pod at all.
func (w *PodWatch) Stop() error {
	select {
	case <-w.ended:
		w.errs = append(w.errs, errors.New("the watch of Pods ended before the test"))
	default:
	}
	close(w.stopping)
	w.watcher.Stop()
	<-w.ended
	if len(w.live) == 0 {
		w.errs = append(w.errs, errors.New("the watch saw no Pod"))
	}
	return errors.Join(w.errs...)
}
