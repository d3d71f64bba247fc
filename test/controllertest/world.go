// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package controllertest has what the tests of all controllers start from: a World of fake servers and of caches that lag behind them as
// each test says.
package controllertest

import (
	"context"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"

	sandboxfake "github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned/fake"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/informers/externalversions"
)

// Namespace is the one that everything is in.
const Namespace = "tenant"

// maxEvents is more than any test waits to look at.
const maxEvents = 1000

// World is what is around a controller: servers, and caches that hold only what a test puts there. Nothing flows from one to the other, so
// each test says how far the caches lag. F is the type that embeds the World; methods that put something somewhere return it.
type World[F any] struct {
	T    testing.TB
	self F

	// Server is that of the kinds of this project.
	Server *sandboxfake.Clientset
	// Informers have the caches of Server.
	Informers externalversions.SharedInformerFactory
	// Kube is the server of all other kinds. It is nil for a controller that has to do with none.
	Kube *fake.Clientset
	// KubeInformers have the caches of Kube.
	KubeInformers informers.SharedInformerFactory

	Recorder *events.FakeRecorder
	// Reconcile is a pass of the controller over an object.
	Reconcile func(ctx context.Context, name cache.ObjectName) (requeueAfter time.Duration, err error)
	// Name is that of the object that Pass is about.
	Name string
}

// NewWorld returns a World of empty servers, embedded in self. The informers, Reconcile and Name are the test's to set.
func NewWorld[F any](t testing.TB, self F) *World[F] {
	return &World[F]{T: t, self: self, Server: sandboxfake.NewSimpleClientset(), Recorder: events.NewFakeRecorder(maxEvents)}
}

// servers returns those that there are.
func (w *World[F]) servers() []*ktesting.Fake {
	if w.Kube == nil {
		return []*ktesting.Fake{&w.Server.Fake}
	}
	return []*ktesting.Fake{&w.Kube.Fake, &w.Server.Fake}
}

// Pass has the controller pass over the object.
func (w *World[F]) Pass() (requeueAfter time.Duration, err error) {
	w.T.Helper()
	return w.Reconcile(context.Background(), cache.NewObjectName(Namespace, w.Name))
}

// MustPass is Pass that must succeed.
func (w *World[F]) MustPass() (requeueAfter time.Duration) {
	w.T.Helper()
	after, err := w.Pass()
	if err != nil {
		w.T.Fatalf("unexpected error: %v", err)
	}
	return after
}

// Start starts the informers, so that the caches follow the servers, and the controller. The test must call stop.
func (w *World[F]) Start(run func(ctx context.Context, workers int), workers int) (stop func()) {
	ctx, cancel := context.WithCancel(w.T.Context())
	w.Informers.StartWithContext(ctx)
	if w.Kube != nil {
		w.KubeInformers.StartWithContext(ctx)
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		run(ctx, workers)
	}()
	return func() {
		cancel()
		<-stopped
		w.Informers.Shutdown()
		if w.Kube != nil {
			w.KubeInformers.Shutdown()
		}
	}
}

// AwaitCaches waits, after Start, until hasSynced says that the caches are filled, and until they follow the servers. What changed in between
// would never come to a cache: a fake server tells a watch of what happens after it began, and of nothing before.
func (w *World[F]) AwaitCaches(hasSynced func() bool) {
	w.T.Helper()
	w.Eventually("the caches are filled and follow", func() bool {
		return hasSynced() && !slices.ContainsFunc(w.servers(), func(server *ktesting.Fake) bool { return !watched(server) })
	})
}

// watched says whether all that was listed of a server is watched too.
func watched(server *ktesting.Fake) bool {
	unwatched := map[string]bool{}
	for _, action := range server.Actions() {
		switch resource := action.GetResource().Resource; action.GetVerb() {
		case "list":
			unwatched[resource] = true
		case "watch":
			delete(unwatched, resource)
		}
	}
	return len(unwatched) == 0
}

// Eventually waits until a condition holds.
func (w *World[F]) Eventually(what string, condition func() bool) {
	w.T.Helper()
	err := wait.PollUntilContextTimeout(w.T.Context(), 5*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) { return condition(), nil })
	if err != nil {
		w.T.Fatalf("%s: %v", what, err)
	}
}
