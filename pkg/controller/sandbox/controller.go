// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	controllermetrics "github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/metrics"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/informers/externalversions"
	listers "github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/listers/agents/v1beta1"
)

const (
	// Name is the name of the controller in events and as a field manager.
	Name = "sandbox-controller"

	// queueName is the name of the controller in the metrics about its queue and its passes.
	queueName = "sandbox"

	// Failed passes are repeated after minBackoff, doubling up to maxBackoff. What is worth waiting for usually comes with an
	// event; the maximum only bounds how late a change is noticed that the controller cannot watch, such as a raised quota.
	minBackoff = 5 * time.Millisecond
	maxBackoff = 2 * time.Minute

	// terminatingNamespaceDelay is how long a Sandbox rests whose namespace refuses new objects. It is going away with it.
	terminatingNamespaceDelay = 30 * time.Second

	// foreignPodDelay is how long a suspended Sandbox rests whose name is held by somebody else's Pod.
	foreignPodDelay = maxBackoff
)

// Config is what a Controller is made of.
type Config struct {
	// KubeClient reaches the cluster that Pods, Services and PersistentVolumeClaims are in.
	KubeClient kubernetes.Interface
	// SandboxClient reaches the server of Sandboxes, through the cluster or directly.
	SandboxClient versioned.Interface
	// ChildInformers is made by NewChildInformerFactory, SandboxInformers by NewSandboxInformerFactory. Both are to be started
	// after New.
	ChildInformers   informers.SharedInformerFactory
	SandboxInformers externalversions.SharedInformerFactory
	// Recorder takes the events about Sandboxes.
	Recorder events.EventRecorder
	// DisableEvents suppresses all events but those that tell of a fault which only a person can mend.
	DisableEvents bool
	// ClusterDomain is the DNS domain of the cluster, as in <service>.<namespace>.svc.<domain>.
	ClusterDomain string
	// CreationLatency is made by NewCreationLatency.
	CreationLatency *metrics.HistogramVec
	// Passes counts and times the passes. Defaults to metrics that nobody reads.
	Passes *controllermetrics.Passes
	// Clock tells the time, and when a delay is over. Defaults to the real one.
	Clock clock.WithTicker
}

// Controller reconciles Sandboxes.
type Controller struct {
	config Config

	queue workqueue.TypedRateLimitingInterface[cache.ObjectName]

	sandboxes listers.SandboxLister
	pods      corelisters.PodLister
	podIndex  cache.Indexer
	services  corelisters.ServiceLister
	claims    corelisters.PersistentVolumeClaimLister
	synced    []cache.InformerSynced

	sandboxWrites *recentWrites[*agentsv1beta1.Sandbox]
	podWrites     *recentWrites[*corev1.Pod]
	serviceWrites *recentWrites[*corev1.Service]
	claimWrites   *recentWrites[*corev1.PersistentVolumeClaim]
	progress      *progress
}

// New returns a Controller that collects work from the informers at once and does it while Run runs.
func New(config Config) (*Controller, error) {
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	if config.Passes == nil {
		config.Passes = controllermetrics.NewPasses()
	}
	sandboxes := config.SandboxInformers.Agents().V1beta1().Sandboxes()
	core := config.ChildInformers.Core().V1()
	c := &Controller{
		config: config,
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](minBackoff, maxBackoff),
			workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: queueName, Clock: config.Clock},
		),
		sandboxes:     sandboxes.Lister(),
		pods:          core.Pods().Lister(),
		podIndex:      core.Pods().Informer().GetIndexer(),
		services:      core.Services().Lister(),
		claims:        core.PersistentVolumeClaims().Lister(),
		sandboxWrites: newRecentWrites[*agentsv1beta1.Sandbox](config.Clock),
		podWrites:     newRecentWrites[*corev1.Pod](config.Clock),
		serviceWrites: newRecentWrites[*corev1.Service](config.Clock),
		claimWrites:   newRecentWrites[*corev1.PersistentVolumeClaim](config.Clock),
		progress:      newProgress(),
	}
	if err := core.Pods().Informer().AddIndexers(controllerIndexers()); err != nil {
		return nil, fmt.Errorf("adding the index of Pods by controller: %w", err)
	}
	return c, errors.Join(
		c.watch(sandboxes.Informer(), c.sandboxHandler()),
		c.watch(core.Pods().Informer(), childHandler(c, c.podWrites)),
		c.watch(core.Services().Informer(), childHandler(c, c.serviceWrites)),
		c.watch(core.PersistentVolumeClaims().Informer(), childHandler(c, c.claimWrites)),
	)
}

func (c *Controller) watch(informer cache.SharedIndexInformer, handler cache.ResourceEventHandler) error {
	registration, err := informer.AddEventHandler(handler)
	if err != nil {
		return fmt.Errorf("adding an event handler: %w", err)
	}
	c.synced = append(c.synced, registration.HasSynced)
	return nil
}

// HasSynced says whether the controller has been told of all objects that existed when it started.
func (c *Controller) HasSynced() bool {
	for _, synced := range c.synced {
		if !synced() {
			return false
		}
	}
	return true
}

// Run reconciles with the given number of workers until the context ends, and returns when the last of them has stopped. It waits
// as long as it takes for the API servers to be reachable.
func (c *Controller) Run(ctx context.Context, workers int) {
	logger := klog.FromContext(ctx)
	defer c.queue.ShutDown()

	logger.Info("Waiting for caches", "controller", Name)
	if !cache.WaitForCacheSync(ctx.Done(), c.synced...) {
		return
	}
	logger.Info("Starting workers", "controller", Name, "workers", workers)
	c.config.Passes.SetWorkers(queueName, workers)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for c.processNext(ctx) {
			}
		})
	}
	<-ctx.Done()
	c.queue.ShutDown()
	wg.Wait()
	logger.Info("Stopped workers", "controller", Name)
}

func (c *Controller) processNext(ctx context.Context) bool {
	name, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(name)

	logger := klog.FromContext(ctx).WithValues("sandbox", klog.KRef(name.Namespace, name.Name))
	done := c.config.Passes.Begin(queueName)
	after, err := c.reconcile(klog.NewContext(ctx, logger), name)
	done(result(after, err))
	if after > 0 {
		c.queue.AddAfter(name, after)
	}
	switch {
	case err == nil:
		c.queue.Forget(name)
		return true
	case outdated(err):
		logger.V(4).Info("Reconciling again on newer data", "reason", err)
	case ctx.Err() == nil:
		logger.Error(err, "Reconciling failed, will retry")
	}
	c.queue.AddRateLimited(name)
	return true
}

// result classifies a pass for the metrics. One that met old data is no failure.
func result(after time.Duration, err error) controllermetrics.Result {
	switch {
	case err != nil && outdated(err):
		return controllermetrics.Requeue
	case err != nil:
		return controllermetrics.Error
	case after > 0:
		return controllermetrics.RequeueAfter
	default:
		return controllermetrics.Success
	}
}

func (c *Controller) sandboxHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if sandbox, ok := obj.(*agentsv1beta1.Sandbox); ok {
				c.sandboxWrites.delivered(sandbox)
				c.queue.Add(cache.MetaObjectToName(sandbox))
			}
		},
		UpdateFunc: func(oldObj, newObj any) {
			before, _ := oldObj.(*agentsv1beta1.Sandbox)
			after, ok := newObj.(*agentsv1beta1.Sandbox)
			if !ok {
				return
			}
			c.sandboxWrites.delivered(after)
			if before != nil && before.UID != after.UID {
				c.progress.forget(before.UID)
			}
			if sandboxChanged(before, after) {
				c.queue.Add(cache.MetaObjectToName(after))
			}
		},
		DeleteFunc: func(obj any) {
			if sandbox, ok := untomb(obj).(*agentsv1beta1.Sandbox); ok {
				c.sandboxWrites.deleted(sandbox)
				c.progress.forget(sandbox.UID)
			}
		},
	}
}

// sandboxChanged says whether a change of a Sandbox can ask for anything. Its status cannot: the controller is the only one who
// writes it, and a pass for each of its own writes would undo that terminal errors are not retried.
func sandboxChanged(before, after *agentsv1beta1.Sandbox) bool {
	return before == nil ||
		before.UID != after.UID ||
		before.Generation != after.Generation ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		!maps.Equal(before.Labels, after.Labels) ||
		!maps.Equal(before.Annotations, after.Annotations) ||
		!equality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences)
}

func childHandler[T metav1.Object](c *Controller, writes *recentWrites[T]) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if child, ok := obj.(T); ok {
				writes.delivered(child)
				c.queue.Add(sandboxOf(child))
			}
		},
		UpdateFunc: func(oldObj, newObj any) {
			if child, ok := newObj.(T); ok {
				writes.delivered(child)
				c.queue.Add(sandboxOf(child))
			}
			// A child that was taken from its Sandbox concerns the Sandbox that lost it.
			if child, ok := oldObj.(T); ok {
				c.queue.Add(sandboxOf(child))
			}
		},
		DeleteFunc: func(obj any) {
			if child, ok := untomb(obj).(T); ok {
				writes.deleted(child)
				c.queue.Add(sandboxOf(child))
			}
		},
	}
}

// sandboxOf names the Sandbox that a change of the object may concern: its owner, or else the one that would use an object of
// this name and may be waiting for it to go.
func sandboxOf(object metav1.Object) cache.ObjectName {
	if ref := metav1.GetControllerOfNoCopy(object); ref != nil && isSandboxRef(ref) {
		return cache.NewObjectName(object.GetNamespace(), ref.Name)
	}
	return cache.MetaObjectToName(object)
}

func untomb(obj any) any {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		return tombstone.Obj
	}
	return obj
}
