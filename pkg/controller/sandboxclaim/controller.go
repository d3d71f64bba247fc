// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxclaim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/loop"
	controllermetrics "github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/metrics"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/namespace"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/recent"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/rush"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/informers/externalversions"
	agentslisters "github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/listers/agents/v1beta1"
	listers "github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/listers/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/labeldomains"
)

const (
	// Name is the name of the controller in events and as a field manager.
	Name = "sandboxclaim-controller"

	// loopName is the name of the controller in logs and in the metrics about its queue and its passes.
	loopName = "sandboxclaim"
)

// Config is what a Controller is made of.
type Config struct {
	// SandboxClient reaches the server of claims, through the cluster or directly.
	SandboxClient versioned.Interface
	// SandboxInformers is made by package informer. It is to be started after New.
	SandboxInformers externalversions.SharedInformerFactory
	// Recorder takes the events about claims.
	Recorder events.EventRecorder
	// DisableEvents suppresses all events.
	DisableEvents bool
	// AllowedLabelDomains are the prefixes that labels for Pods may have. Whoever makes it runs it.
	AllowedLabelDomains *labeldomains.File
	// WarmCandidateGracePeriod is how long a claim waits for members of its pool that are about to become ready before a Sandbox is made
	// for it. 0 means that it does not wait.
	WarmCandidateGracePeriod time.Duration
	// Rush tells when claims come so fast that what is told of those which are ready waits. The controller notes claims in it. Defaults to
	// one of its own.
	Rush *rush.Meter
	// Metrics are what the controller measures. Defaults to metrics that nobody reads.
	Metrics *Metrics
	// Passes counts and times the passes. Defaults to metrics that nobody reads.
	Passes *controllermetrics.Passes
	// Clock tells the time, and when a delay is over. Defaults to the real one.
	Clock clock.WithTicker
}

// Controller reconciles SandboxClaims.
type Controller struct {
	config Config

	loop *loop.Loop

	claims       listers.SandboxClaimLister
	pools        listers.SandboxWarmPoolLister
	templates    listers.SandboxTemplateLister
	sandboxes    agentslisters.SandboxLister
	claimIndex   cache.Indexer
	poolIndex    cache.Indexer
	sandboxIndex cache.Indexer

	claimWrites   *recent.Writes[*extensionsv1beta1.SandboxClaim]
	sandboxWrites *recent.Writes[*agentsv1beta1.Sandbox]
	terminating   *namespace.Terminating
	firstSeen     *firstSeen
	waiting       *waiting
	coldStarts    *coldStarts
}

// New returns a Controller that collects work from the informers at once and does it while Run runs.
func New(config Config) (*Controller, error) {
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	if config.Rush == nil {
		config.Rush = rush.NewMeter(config.Clock)
	}
	if config.Metrics == nil {
		config.Metrics = NewMetrics()
	}
	extensions := config.SandboxInformers.Extensions().V1beta1()
	claims, pools, templates := extensions.SandboxClaims(), extensions.SandboxWarmPools(), extensions.SandboxTemplates()
	sandboxes := config.SandboxInformers.Agents().V1beta1().Sandboxes()
	c := &Controller{
		config:        config,
		claims:        claims.Lister(),
		pools:         pools.Lister(),
		templates:     templates.Lister(),
		sandboxes:     sandboxes.Lister(),
		claimIndex:    claims.Informer().GetIndexer(),
		poolIndex:     pools.Informer().GetIndexer(),
		sandboxIndex:  sandboxes.Informer().GetIndexer(),
		claimWrites:   recent.NewWrites[*extensionsv1beta1.SandboxClaim](config.Clock),
		sandboxWrites: recent.NewWrites[*agentsv1beta1.Sandbox](config.Clock),
		terminating:   namespace.NewTerminating(config.Clock),
		firstSeen:     newFirstSeen(),
		waiting:       newWaiting(),
		coldStarts:    newColdStarts(),
	}
	c.loop = loop.New(loop.Config{Name: loopName, Reconcile: c.reconcile, Passes: config.Passes, Clock: config.Clock})
	config.AllowedLabelDomains.OnChange(c.enqueueInvalidMetadata)
	for informer, indexers := range map[cache.SharedIndexInformer]cache.Indexers{
		claims.Informer():    {poolIndex: indexClaimByPool},
		pools.Informer():     {templateIndex: indexPoolByTemplate},
		sandboxes.Informer(): {ownerIndex: indexSandboxByOwner},
	} {
		if err := informer.AddIndexers(indexers); err != nil {
			return nil, fmt.Errorf("adding an index: %w", err)
		}
	}
	return c, errors.Join(
		c.loop.Watch(claims.Informer(), c.claimHandler()),
		c.loop.Watch(sandboxes.Informer(), c.sandboxHandler()),
		c.loop.Watch(pools.Informer(), c.poolHandler()),
		c.loop.Watch(templates.Informer(), c.templateHandler()),
	)
}

// HasSynced says whether the controller has been told of all objects that existed when it started.
func (c *Controller) HasSynced() bool { return c.loop.HasSynced() }

// Run reconciles with the given number of workers until the context ends, and returns when the last of them has stopped. It waits
// as long as it takes for the API servers to be reachable.
func (c *Controller) Run(ctx context.Context, workers int) {
	// Whoever led before has told of them.
	c.forgetStarted()
	c.loop.Run(ctx, workers)
}

// forgetStarted forgets when claims were first seen that say since when they are ready.
func (c *Controller) forgetStarted() {
	claims, err := c.claims.List(labels.Everything())
	utilruntime.HandleError(err)
	for _, claim := range claims {
		if claim.Annotations[extensionsv1beta1.ClaimFirstReadyAtAnnotation] != "" {
			c.firstSeen.forget(claim.UID)
		}
	}
}
