// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	clients "github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned/typed/extensions/v1beta1"
)

// observer remembers when the one watch of all claims first told that a claim was ready after its creation.
type observer struct {
	mutex  sync.Mutex
	claims map[string]*sighting
	// ended is closed when the watch has ended; err, to be read after that, says why.
	ended chan struct{}
	err   error
}

// sighting is when a claim was first told to be ready. ready is closed then.
type sighting struct {
	ready chan struct{}
	at    time.Time
}

// startObserver starts the watch, from the moment of the call, until ctx ends.
func startObserver(ctx context.Context, client clients.SandboxClaimInterface) (*observer, error) {
	list, err := client.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, err
	}
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{WatchFuncWithContext: client.Watch})
	if err != nil {
		return nil, err
	}
	o := newObserver()
	go func() {
		defer close(o.ended)
		o.err = o.follow(watcher)
	}()
	return o, nil
}

func newObserver() *observer {
	return &observer{claims: map[string]*sighting{}, ended: make(chan struct{})}
}

// follow returns when the watch ends, which is an error.
func (o *observer) follow(watcher watch.Interface) error {
	for event := range watcher.ResultChan() {
		switch object := event.Object.(type) {
		case *extensionsv1beta1.SandboxClaim:
			// The creation itself does not count: whoever watches from the answer to it on is not told of it.
			if event.Type == watch.Modified {
				o.see(object, time.Now())
			}
		case *metav1.Status:
			return apierrors.FromObject(object)
		}
	}
	return errors.New("the watch of claims has ended")
}

// see takes note of what was told of a claim at a moment.
func (o *observer) see(claim *extensionsv1beta1.SandboxClaim, at time.Time) {
	if !ready(claim) {
		return
	}
	s := o.sighting(claim.Name)
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if s.at.IsZero() {
		s.at = at
		close(s.ready)
	}
}

// await returns when a claim was first told to be ready, as soon as it was.
func (o *observer) await(ctx context.Context, name string) (time.Time, error) {
	s := o.sighting(name)
	select {
	case <-s.ready:
		return s.at, nil
	case <-o.ended:
		return time.Time{}, o.err
	case <-ctx.Done():
		return time.Time{}, fmt.Errorf("no event tells that claim %s is ready: %w", name, context.Cause(ctx))
	}
}

func (o *observer) sighting(name string) *sighting {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	s := o.claims[name]
	if s == nil {
		s = &sighting{ready: make(chan struct{})}
		o.claims[name] = s
	}
	return s
}

// ready says whether a claim can be used: it has a Sandbox, which is ready.
func ready(claim *extensionsv1beta1.SandboxClaim) bool {
	return claim.Status.Sandbox.Name != "" && meta.IsStatusConditionTrue(claim.Status.Conditions, extensionsv1beta1.ClaimConditionReady)
}
