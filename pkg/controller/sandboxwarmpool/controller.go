// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxwarmpool

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/informer"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/loop"
	controllermetrics "github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/metrics"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/namespace"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/recent"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/informers/externalversions"
	agentslisters "github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/listers/agents/v1beta1"
	listers "github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/listers/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
)

const (
	// Name is the name of the controller in events and as a field manager.
	Name = "sandboxwarmpool-controller"

	// loopName is the name of the controller in logs and in the metrics about its queue and its passes.
	loopName = "sandboxwarmpool"

	// templateIndex finds pools by the namespace and the name of their template.
	templateIndex = "template"

	// settling is how long the changes of members are collected before the pool has a pass for all of them: a pass goes through all
	// members, and they change many at a time.
	settling = 100 * time.Millisecond
)

// Config is what a Controller is made of.
type Config struct {
	// SandboxClient reaches the server of Sandboxes and pools, through the cluster or directly.
	SandboxClient versioned.Interface
	// SandboxInformers is made by package informer, and to be started after New.
	SandboxInformers externalversions.SharedInformerFactory
	// Recorder takes the events about pools.
	Recorder events.EventRecorder
	// Limits bound the making of members.
	Limits Limits
	// ReadinessGracePeriod is how long a member may take to become ready, or to become ready again, before it is replaced.
	ReadinessGracePeriod time.Duration
	// UnschedulableRecheckInterval is how often the members are looked at that are kept past the grace period.
	UnschedulableRecheckInterval time.Duration
	// Evictable lets the cluster autoscaler remove the Pods of members, unless their template says otherwise.
	Evictable bool
	// Passes counts and times the passes. Defaults to metrics that nobody reads.
	Passes *controllermetrics.Passes
	// Clock tells the time, and when a delay is over. Defaults to the real one.
	Clock clock.WithTicker
}

// Controller reconciles SandboxWarmPools.
type Controller struct {
	config Config

	loop *loop.Loop

	pools     listers.SandboxWarmPoolLister
	poolIndex cache.Indexer
	templates listers.SandboxTemplateLister
	sandboxes agentslisters.SandboxLister
	members   cache.Indexer

	poolWrites    *recent.Writes[*extensionsv1beta1.SandboxWarmPool]
	sandboxWrites *recent.Writes[*agentsv1beta1.Sandbox]
	terminating   *namespace.Terminating
	ledger        *ledger

	mu       sync.Mutex
	memories map[types.UID]*memory
}

// memory is what is remembered of a pool between passes. There is one pass over a pool at a time, so it needs no lock.
type memory struct {
	refill refill
	// members are the names of the Sandboxes that were members after the last pass.
	members map[string]bool
	// notes are what is remembered of single members.
	notes notes
	// spare are names that were thought of for members and are not in use.
	spare []cache.ObjectName
	// inputs identifies the pool and the template that the last pass went by.
	inputs string
	// confirmed says that the members in the cache have been compared with those on the server since this process started.
	confirmed bool
	// writtenAt is when the status was last written.
	writtenAt time.Time
}

// New returns a Controller that collects work from the informers at once and does it while Run runs.
func New(config Config) (*Controller, error) {
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	extensions := config.SandboxInformers.Extensions().V1beta1()
	pools, templates := extensions.SandboxWarmPools(), extensions.SandboxTemplates()
	sandboxes := config.SandboxInformers.Agents().V1beta1().Sandboxes()
	c := &Controller{
		config:        config,
		pools:         pools.Lister(),
		poolIndex:     pools.Informer().GetIndexer(),
		templates:     templates.Lister(),
		sandboxes:     sandboxes.Lister(),
		members:       sandboxes.Informer().GetIndexer(),
		poolWrites:    recent.NewWrites[*extensionsv1beta1.SandboxWarmPool](config.Clock),
		sandboxWrites: recent.NewWrites[*agentsv1beta1.Sandbox](config.Clock),
		terminating:   namespace.NewTerminating(config.Clock),
		ledger:        newLedger(config.Clock),
		memories:      map[types.UID]*memory{},
	}
	c.loop = loop.New(loop.Config{Name: loopName, Reconcile: c.reconcile, Passes: config.Passes, Clock: config.Clock})
	if err := errors.Join(
		sandboxes.Informer().AddIndexers(memberIndexers()),
		pools.Informer().AddIndexers(cache.Indexers{templateIndex: templateIndexKeys}),
	); err != nil {
		return nil, fmt.Errorf("adding indexes: %w", err)
	}
	return c, errors.Join(
		c.loop.Watch(pools.Informer(), c.poolHandler()),
		c.loop.Watch(templates.Informer(), c.templateHandler()),
		c.loop.Watch(sandboxes.Informer(), c.sandboxHandler()),
	)
}

// HasSynced says whether the controller has been told of all objects that existed when it started.
func (c *Controller) HasSynced() bool { return c.loop.HasSynced() }

// Run reconciles with the given number of workers until the context ends, and returns when the last of them has stopped. It waits
// as long as it takes for the API server to be reachable.
func (c *Controller) Run(ctx context.Context, workers int) { c.loop.Run(ctx, workers) }

func (c *Controller) memoryOf(uid types.UID) *memory {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, ok := c.memories[uid]
	if !ok {
		m = &memory{refill: refill{limits: c.config.Limits}, notes: notes{}}
		c.memories[uid] = m
	}
	return m
}

func (c *Controller) forget(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.memories, uid)
	c.ledger.forget(uid)
}

func templateIndexKeys(obj any) ([]string, error) {
	pool, ok := obj.(*extensionsv1beta1.SandboxWarmPool)
	if !ok {
		return nil, fmt.Errorf("object of type %T is no SandboxWarmPool", obj)
	}
	return []string{cache.NewObjectName(pool.Namespace, pool.Spec.SandboxTemplateRef.Name).String()}, nil
}

func (c *Controller) poolHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if pool, ok := obj.(*extensionsv1beta1.SandboxWarmPool); ok {
				c.poolWrites.Delivered(pool)
				c.loop.Queue.Add(cache.MetaObjectToName(pool))
			}
		},
		UpdateFunc: func(oldObj, newObj any) {
			before, _ := oldObj.(*extensionsv1beta1.SandboxWarmPool)
			after, ok := newObj.(*extensionsv1beta1.SandboxWarmPool)
			if !ok {
				return
			}
			c.poolWrites.Delivered(after)
			if before == nil || before.UID != after.UID || before.Generation != after.Generation {
				c.loop.Queue.Add(cache.MetaObjectToName(after))
			}
			if before != nil && before.UID != after.UID {
				c.forget(before.UID)
			}
		},
		DeleteFunc: func(obj any) {
			if pool, ok := informer.Untomb(obj).(*extensionsv1beta1.SandboxWarmPool); ok {
				c.poolWrites.Deleted(pool)
				c.forget(pool.UID)
			}
		},
	}
}

// templateHandler asks for passes over the pools of a template that comes, goes or is changed.
func (c *Controller) templateHandler() cache.ResourceEventHandler {
	enqueue := func(obj any) {
		template, ok := informer.Untomb(obj).(*extensionsv1beta1.SandboxTemplate)
		if !ok {
			return
		}
		pools, err := c.poolIndex.ByIndex(templateIndex, cache.MetaObjectToName(template).String())
		if err != nil {
			return // The index was added in New.
		}
		for _, pool := range pools {
			if pool, ok := pool.(*extensionsv1beta1.SandboxWarmPool); ok {
				c.loop.Queue.Add(cache.MetaObjectToName(pool))
			}
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue,
		UpdateFunc: func(oldObj, newObj any) {
			before, _ := oldObj.(*extensionsv1beta1.SandboxTemplate)
			after, _ := newObj.(*extensionsv1beta1.SandboxTemplate)
			if before == nil || after == nil || before.UID != after.UID || before.Generation != after.Generation {
				enqueue(newObj)
			}
		},
		DeleteFunc: enqueue,
	}
}

func (c *Controller) sandboxHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if sandbox, ok := obj.(*agentsv1beta1.Sandbox); ok {
				c.ledger.delivered(sandbox)
				c.sandboxWrites.Delivered(sandbox)
				c.enqueuePoolOf(sandbox)
			}
		},
		UpdateFunc: func(oldObj, newObj any) {
			if sandbox, ok := newObj.(*agentsv1beta1.Sandbox); ok {
				c.ledger.delivered(sandbox)
				c.sandboxWrites.Delivered(sandbox)
				c.enqueuePoolOf(sandbox)
			}
			// A member that was taken concerns the pool that lost it.
			if sandbox, ok := oldObj.(*agentsv1beta1.Sandbox); ok {
				c.enqueuePoolOf(sandbox)
			}
		},
		DeleteFunc: func(obj any) {
			if sandbox, ok := informer.Untomb(obj).(*agentsv1beta1.Sandbox); ok {
				c.ledger.delivered(sandbox)
				c.sandboxWrites.Deleted(sandbox)
				c.enqueuePoolOf(sandbox)
			}
		},
	}
}

// enqueuePoolOf asks for a pass, some time soon, over the pool that a change of the Sandbox may concern: its owner, or else those that
// may want to own it.
func (c *Controller) enqueuePoolOf(sandbox *agentsv1beta1.Sandbox) {
	if owner := poolOwner(sandbox); owner != nil {
		c.loop.Queue.AddAfter(cache.NewObjectName(sandbox.Namespace, owner.Name), settling)
		return
	}
	hash := sandbox.Labels[agentsv1beta1.WarmPoolSandboxLabel]
	if hash == "" || metav1.GetControllerOfNoCopy(sandbox) != nil {
		return
	}
	pools, err := c.pools.SandboxWarmPools(sandbox.Namespace).List(labels.Everything())
	if err != nil {
		return // The cache of an informer does not fail.
	}
	for _, pool := range pools {
		if naming.Hash(pool.Name) == hash {
			c.loop.Queue.AddAfter(cache.MetaObjectToName(pool), settling)
		}
	}
}
