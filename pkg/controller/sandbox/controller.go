// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/informer"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/loop"
	controllermetrics "github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/metrics"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/namespace"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/recent"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/rush"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/informers/externalversions"
	listers "github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/listers/agents/v1beta1"
)

const (
	// Name is the name of the controller in events and as a field manager.
	Name = "sandbox-controller"

	// loopName is the name of the controller in logs and in the metrics about its queue and its passes.
	loopName = "sandbox"

	// foreignPodDelay is how long a suspended Sandbox rests whose name is held by somebody else's Pod.
	foreignPodDelay = loop.MaxBackoff
)

// Config is what a Controller is made of.
type Config struct {
	// KubeClient reaches the cluster that Pods, Services and PersistentVolumeClaims are in.
	KubeClient kubernetes.Interface
	// SandboxClient reaches the server of Sandboxes, through the cluster or directly.
	SandboxClient versioned.Interface
	// ChildInformers is made by NewChildInformerFactory, SandboxInformers by package informer. Both are to be started after New.
	ChildInformers   informers.SharedInformerFactory
	SandboxInformers externalversions.SharedInformerFactory
	// Recorder takes the events about Sandboxes.
	Recorder events.EventRecorder
	// DisableEvents suppresses all events but those that tell of a fault which only a person can mend.
	DisableEvents bool
	// ClusterDomain is the DNS domain of the cluster, as in <service>.<namespace>.svc.<domain>.
	ClusterDomain string
	// Rush tells when claims come so fast that what is written of Sandboxes which they take waits. Defaults to one that tells of no rush.
	Rush *rush.Meter
	// Passes counts and times the passes. Defaults to metrics that nobody reads.
	Passes *controllermetrics.Passes
	// Clock tells the time, and when a delay is over. Defaults to the real one.
	Clock clock.WithTicker
}

// Controller reconciles Sandboxes.
type Controller struct {
	config Config

	loop *loop.Loop

	sandboxes listers.SandboxLister
	pods      corelisters.PodLister
	podIndex  cache.Indexer
	services  corelisters.ServiceLister
	claims    corelisters.PersistentVolumeClaimLister

	sandboxWrites *recent.Writes[*agentsv1beta1.Sandbox]
	podWrites     *recent.Writes[*corev1.Pod]
	serviceWrites *recent.Writes[*corev1.Service]
	claimWrites   *recent.Writes[*corev1.PersistentVolumeClaim]
	terminating   *namespace.Terminating
	progress      *progress
}

// New returns a Controller that collects work from the informers at once and does it while Run runs.
func New(config Config) (*Controller, error) {
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	if config.Rush == nil {
		config.Rush = rush.NewMeter(config.Clock)
	}
	sandboxes := config.SandboxInformers.Agents().V1beta1().Sandboxes()
	core := config.ChildInformers.Core().V1()
	c := &Controller{
		config:        config,
		sandboxes:     sandboxes.Lister(),
		pods:          core.Pods().Lister(),
		podIndex:      core.Pods().Informer().GetIndexer(),
		services:      core.Services().Lister(),
		claims:        core.PersistentVolumeClaims().Lister(),
		sandboxWrites: recent.NewWrites[*agentsv1beta1.Sandbox](config.Clock),
		podWrites:     recent.NewWrites[*corev1.Pod](config.Clock),
		serviceWrites: recent.NewWrites[*corev1.Service](config.Clock),
		claimWrites:   recent.NewWrites[*corev1.PersistentVolumeClaim](config.Clock),
		terminating:   namespace.NewTerminating(config.Clock),
		progress:      newProgress(),
	}
	c.loop = loop.New(loop.Config{Name: loopName, Reconcile: c.reconcile, Passes: config.Passes, Clock: config.Clock})
	if err := core.Pods().Informer().AddIndexers(controllerIndexers()); err != nil {
		return nil, fmt.Errorf("adding the index of Pods by controller: %w", err)
	}
	return c, errors.Join(
		c.loop.Watch(sandboxes.Informer(), c.sandboxHandler()),
		c.loop.Watch(core.Pods().Informer(), childHandler(c, c.podWrites)),
		c.loop.Watch(core.Services().Informer(), childHandler(c, c.serviceWrites)),
		c.loop.Watch(core.PersistentVolumeClaims().Informer(), childHandler(c, c.claimWrites)),
	)
}

// HasSynced says whether the controller has been told of all objects that existed when it started.
func (c *Controller) HasSynced() bool { return c.loop.HasSynced() }

// Run reconciles with the given number of workers until the context ends, and returns when the last of them has stopped. It waits
// as long as it takes for the API servers to be reachable.
func (c *Controller) Run(ctx context.Context, workers int) { c.loop.Run(ctx, workers) }

func (c *Controller) sandboxHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if sandbox, ok := obj.(*agentsv1beta1.Sandbox); ok {
				c.sandboxWrites.Delivered(sandbox)
				c.loop.Queue.Add(cache.MetaObjectToName(sandbox))
			}
		},
		UpdateFunc: func(oldObj, newObj any) {
			before, _ := oldObj.(*agentsv1beta1.Sandbox)
			after, ok := newObj.(*agentsv1beta1.Sandbox)
			if !ok {
				return
			}
			c.sandboxWrites.Delivered(after)
			if before != nil && before.UID != after.UID {
				c.progress.forget(before.UID)
			}
			switch {
			case taken(before, after):
				c.loop.Queue.AddAfter(cache.MetaObjectToName(after), c.config.Rush.Delay())
			case sandboxChanged(before, after):
				c.loop.Queue.Add(cache.MetaObjectToName(after))
			}
		},
		DeleteFunc: func(obj any) {
			if sandbox, ok := informer.Untomb(obj).(*agentsv1beta1.Sandbox); ok {
				c.sandboxWrites.Deleted(sandbox)
				c.progress.forget(sandbox.UID)
			}
		},
	}
}

// taken says whether a claim has taken the Sandbox. It goes on running; that its Pod is marked accordingly is not urgent.
func taken(before, after *agentsv1beta1.Sandbox) bool {
	return before != nil && before.UID == after.UID && after.DeletionTimestamp == nil && !claimed(before) && claimed(after)
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

func childHandler[T metav1.Object](c *Controller, writes *recent.Writes[T]) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if child, ok := obj.(T); ok {
				writes.Delivered(child)
				c.loop.Queue.Add(sandboxOf(child))
			}
		},
		UpdateFunc: func(oldObj, newObj any) {
			if child, ok := newObj.(T); ok {
				writes.Delivered(child)
				c.loop.Queue.Add(sandboxOf(child))
			}
			// A child that was taken from its Sandbox concerns the Sandbox that lost it.
			if child, ok := oldObj.(T); ok {
				c.loop.Queue.Add(sandboxOf(child))
			}
		},
		DeleteFunc: func(obj any) {
			if child, ok := informer.Untomb(obj).(T); ok {
				writes.Deleted(child)
				c.loop.Queue.Add(sandboxOf(child))
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
