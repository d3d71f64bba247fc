// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package loop is the work loop that all controllers have in common: a queue of the names of objects that are due for a pass, and
// workers that make the passes, count and time them, and repeat those that failed.
package loop

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/failure"
	controllermetrics "github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/metrics"
)

// Failed passes are repeated after MinBackoff, doubling up to MaxBackoff. What is worth waiting for usually comes with an event, or is the
// return of a server, which the loop notices by itself; the maximum only bounds how late a change is noticed that a controller cannot
// watch, such as a raised quota.
const (
	MinBackoff = 5 * time.Millisecond
	MaxBackoff = 2 * time.Minute
)

// Reconcile makes one pass over the object of a name. It returns after which time another pass is due even if nothing happens, or 0,
// and the error that calls for a pass sooner.
type Reconcile func(ctx context.Context, name cache.ObjectName) (time.Duration, error)

// Config is what a Loop is made of.
type Config struct {
	// Name is the name of the controller in logs and in the metrics about its queue and its passes, and the key of its objects in logs.
	Name string
	// Reconcile makes a pass.
	Reconcile Reconcile
	// MaxBackoff is the longest delay before a failed pass is repeated. Defaults to the constant of that name.
	MaxBackoff time.Duration
	// Passes counts and times the passes. Defaults to metrics that nobody reads.
	Passes *controllermetrics.Passes
	// Clock tells when a delay is over. Defaults to the real one.
	Clock clock.WithTicker
}

// Loop makes passes over the objects whose names are put into its queue.
type Loop struct {
	// Queue holds the names of the objects that are due for a pass. It takes them from the start; they are worked on while Run runs.
	Queue workqueue.TypedRateLimitingInterface[cache.ObjectName]

	config Config
	synced []cache.InformerSynced
	outage *outage
}

// New returns a Loop that does nothing yet.
func New(config Config) *Loop {
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	if config.Passes == nil {
		config.Passes = controllermetrics.NewPasses()
	}
	if config.MaxBackoff == 0 {
		config.MaxBackoff = MaxBackoff
	}
	return &Loop{
		Queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](MinBackoff, config.MaxBackoff),
			workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: config.Name, Clock: config.Clock},
		),
		config: config,
		outage: newOutage(),
	}
}

// Watch lets the handler hear of the objects of an informer, all of which Run waits for. It is to be called before the informer is
// started.
func (l *Loop) Watch(informer cache.SharedInformer, handler cache.ResourceEventHandler) error {
	registration, err := informer.AddEventHandler(handler)
	if err != nil {
		return fmt.Errorf("adding an event handler: %w", err)
	}
	l.synced = append(l.synced, registration.HasSynced)
	return nil
}

// HasSynced says whether the handlers have been told of all objects that existed when their informers started.
func (l *Loop) HasSynced() bool {
	for _, synced := range l.synced {
		if !synced() {
			return false
		}
	}
	return true
}

// Run makes passes with the given number of workers until the context ends, and returns when the last of them has stopped. It waits
// as long as it takes for the API servers to be reachable.
func (l *Loop) Run(ctx context.Context, workers int) {
	logger := klog.FromContext(ctx).WithValues("controller", l.config.Name)
	defer l.Queue.ShutDown()

	logger.Info("Waiting for caches")
	if !cache.WaitForCacheSync(ctx.Done(), l.synced...) {
		return
	}
	logger.Info("Starting workers", "workers", workers)
	l.config.Passes.SetWorkers(l.config.Name, workers)
	var wg sync.WaitGroup
	wg.Go(func() { l.probe(ctx) })
	for range workers {
		wg.Go(func() {
			for l.processNext(ctx) {
			}
		})
	}
	<-ctx.Done()
	l.Queue.ShutDown()
	wg.Wait()
	logger.Info("Stopped workers")
}

func (l *Loop) processNext(ctx context.Context) bool {
	name, shutdown := l.Queue.Get()
	if shutdown {
		return false
	}
	defer l.Queue.Done(name)

	logger := klog.FromContext(ctx).WithValues(l.config.Name, klog.KRef(name.Namespace, name.Name))
	done := l.config.Passes.Begin(l.config.Name)
	after, err := l.config.Reconcile(klog.NewContext(ctx, logger), name)
	done(result(after, err))
	l.noteAvailability(ctx, name, err)
	if after > 0 {
		l.Queue.AddAfter(name, after)
	}
	switch {
	case err == nil:
		l.Queue.Forget(name)
		return true
	case failure.Outdated(err):
		logger.V(4).Info("Reconciling again on newer data", "reason", err)
	case ctx.Err() == nil:
		logger.Error(err, "Reconciling failed, will retry")
	}
	l.Queue.AddRateLimited(name)
	return true
}

// noteAvailability notes whether a pass failed because a server was away, and asks for passes over all that waited for it if it is back.
func (l *Loop) noteAvailability(ctx context.Context, name cache.ObjectName, err error) {
	if failure.Unavailable(err) {
		l.outage.failed(name)
		return
	}
	others := l.outage.ended(name)
	if len(others) > 0 {
		klog.FromContext(ctx).V(2).Info("A server answers again", "waiting", len(others))
	}
	for _, other := range others {
		l.Queue.Add(other)
	}
}

// probe tries, until the context ends, one after the other of the objects that wait for a server.
func (l *Loop) probe(ctx context.Context) {
	ticker := l.config.Clock.NewTicker(probeInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		if name, ok := l.outage.probe(); ok {
			l.Queue.Add(name)
		}
	}
}

// result classifies a pass for the metrics. One that met old data is no failure.
func result(after time.Duration, err error) controllermetrics.Result {
	switch {
	case err != nil && failure.Outdated(err):
		return controllermetrics.Requeue
	case err != nil:
		return controllermetrics.Error
	case after > 0:
		return controllermetrics.RequeueAfter
	default:
		return controllermetrics.Success
	}
}

// Soonest returns the smallest of the durations that are not 0, or 0.
func Soonest(durations ...time.Duration) time.Duration {
	var first time.Duration
	for _, d := range durations {
		if d > 0 && (first == 0 || d < first) {
			first = d
		}
	}
	return first
}
