// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	kubernetesscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/metrics"
	"k8s.io/utils/clock"

	"github.com/sandbox-apiserver/sandbox-apiserver/cmd/sandbox-controller/app/options"
	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/informer"
	controllermetrics "github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/metrics"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/rush"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/sandbox"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/sandboxclaim"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/sandboxtemplate"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/sandboxwarmpool"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/informers/externalversions"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/labeldomains"
)

// controllers are all controllers of the process, and what they have in common.
type controllers struct {
	kubeClient    kubernetes.Interface
	sandboxClient versioned.Interface
	recorder      func(controller string) events.EventRecorder
	passes        *controllermetrics.Passes
	rush          *rush.Meter

	// sandboxInformers are shared by all controllers. The informers for other kinds are of one controller each.
	sandboxInformers externalversions.SharedInformerFactory
	childInformers   []informers.SharedInformerFactory

	// background is what runs on every replica, leading or not.
	background []func(context.Context)
	workers    []worker
	metrics    []metrics.Registerable
	collectors []metrics.StableCollector
}

// worker is a controller and the number of passes that it makes at the same time.
type worker struct {
	controller interface {
		HasSynced() bool
		Run(ctx context.Context, workers int)
	}
	count int
}

func newControllers(kubeClient kubernetes.Interface, sandboxClient versioned.Interface, broadcaster events.EventBroadcaster, o *options.Options) (*controllers, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(agentsv1beta1.AddToScheme(scheme), extensionsv1beta1.AddToScheme(scheme), kubernetesscheme.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("registering the types that events are about: %w", err)
	}
	c := &controllers{
		kubeClient:       kubeClient,
		sandboxClient:    sandboxClient,
		recorder:         func(controller string) events.EventRecorder { return broadcaster.NewRecorder(scheme, controller) },
		passes:           controllermetrics.NewPasses(),
		rush:             rush.NewMeter(clock.RealClock{}),
		sandboxInformers: informer.NewSandboxFactory(sandboxClient),
	}
	if o.Extensions.Enabled {
		c.sandboxInformers = informer.NewFactory(sandboxClient)
	}
	if err := c.addSandbox(o); err != nil {
		return nil, fmt.Errorf("setting up the controller of Sandboxes: %w", err)
	}
	if !o.Extensions.Enabled {
		return c, nil
	}
	if err := c.addTemplate(o.Extensions); err != nil {
		return nil, fmt.Errorf("setting up the controller of SandboxTemplates: %w", err)
	}
	if err := c.addWarmPool(o.Extensions); err != nil {
		return nil, fmt.Errorf("setting up the controller of SandboxWarmPools: %w", err)
	}
	if err := c.addClaim(o.Extensions); err != nil {
		return nil, fmt.Errorf("setting up the controller of SandboxClaims: %w", err)
	}
	return c, nil
}

func (c *controllers) addSandbox(o *options.Options) error {
	children := sandbox.NewChildInformerFactory(c.kubeClient)
	controller, err := sandbox.New(sandbox.Config{
		KubeClient:       c.kubeClient,
		SandboxClient:    c.sandboxClient,
		ChildInformers:   children,
		SandboxInformers: c.sandboxInformers,
		Recorder:         c.recorder(sandbox.Name),
		DisableEvents:    o.DisableSandboxEvents,
		ClusterDomain:    o.ClusterDomain,
		Rush:             c.rush,
		Passes:           c.passes,
	})
	if err != nil {
		return err
	}
	c.childInformers = append(c.childInformers, children)
	c.workers = append(c.workers, worker{controller, o.SandboxConcurrentWorkers})
	c.collectors = append(c.collectors, sandbox.NewCollector(c.sandboxInformers.Agents().V1beta1().Sandboxes().Lister()))
	return nil
}

func (c *controllers) addTemplate(o *options.ExtensionsOptions) error {
	policies := sandboxtemplate.NewPolicyInformerFactory(c.kubeClient)
	controller, err := sandboxtemplate.New(sandboxtemplate.Config{
		KubeClient:       c.kubeClient,
		SandboxClient:    c.sandboxClient,
		PolicyInformers:  policies,
		SandboxInformers: c.sandboxInformers,
		Recorder:         c.recorder(sandboxtemplate.Name),
		Passes:           c.passes,
	})
	if err != nil {
		return err
	}
	c.childInformers = append(c.childInformers, policies)
	c.workers = append(c.workers, worker{controller, o.TemplateConcurrentWorkers})
	return nil
}

func (c *controllers) addWarmPool(o *options.ExtensionsOptions) error {
	controller, err := sandboxwarmpool.New(sandboxwarmpool.Config{
		SandboxClient:    c.sandboxClient,
		SandboxInformers: c.sandboxInformers,
		Recorder:         c.recorder(sandboxwarmpool.Name),
		Limits: sandboxwarmpool.Limits{
			MaxBatchSize:   o.WarmPoolMaxBatchSize,
			ReplenishDelay: o.WarmPoolReplenishDelay,
			MaxRefillRate:  o.WarmPoolMaxRefillRate,
		},
		ReadinessGracePeriod:         o.WarmPoolReadinessGracePeriod,
		UnschedulableRecheckInterval: o.WarmPoolUnschedulableRecheckInterval,
		Evictable:                    o.EnableWarmPoolEviction,
		Passes:                       c.passes,
	})
	if err != nil {
		return err
	}
	c.workers = append(c.workers, worker{controller, o.WarmPoolConcurrentWorkers})
	c.collectors = append(c.collectors, controller.NewCollector())
	return nil
}

func (c *controllers) addClaim(o *options.ExtensionsOptions) error {
	domains, err := labeldomains.NewFile(o.AllowedLabelDomainsFile)
	if err != nil {
		return fmt.Errorf("reading the allowed label domains: %w", err)
	}
	claimMetrics := sandboxclaim.NewMetrics()
	controller, err := sandboxclaim.New(sandboxclaim.Config{
		SandboxClient:            c.sandboxClient,
		SandboxInformers:         c.sandboxInformers,
		Recorder:                 c.recorder(sandboxclaim.Name),
		DisableEvents:            o.DisableClaimEvents,
		AllowedLabelDomains:      domains,
		WarmCandidateGracePeriod: o.ClaimWarmCandidateGracePeriod,
		Rush:                     c.rush,
		Metrics:                  claimMetrics,
		Passes:                   c.passes,
	})
	if err != nil {
		return err
	}
	c.background = append(c.background, domains.Run)
	c.workers = append(c.workers, worker{controller, o.ClaimConcurrentWorkers})
	claimMetrics.Register(func(all ...metrics.Registerable) { c.metrics = append(c.metrics, all...) })
	return nil
}

// register registers all that the controllers measure.
func (c *controllers) register(register func(...metrics.Registerable), registerCollectors func(...metrics.StableCollector)) {
	c.passes.Register(register)
	register(c.metrics...)
	registerCollectors(c.collectors...)
}

// start starts the informers and what else runs on every replica, so that one that takes over has its caches at hand.
func (c *controllers) start(ctx context.Context) {
	for _, background := range c.background {
		go background(ctx)
	}
	for _, children := range c.childInformers {
		children.StartWithContext(ctx)
	}
	c.sandboxInformers.StartWithContext(ctx)
}

// hasSynced says whether all controllers have been told of all objects that existed when they started.
func (c *controllers) hasSynced() bool {
	for _, worker := range c.workers {
		if !worker.controller.HasSynced() {
			return false
		}
	}
	return true
}

// run lets the controllers work until ctx ends, and returns when the last of them has stopped.
func (c *controllers) run(ctx context.Context) {
	var wg sync.WaitGroup
	for _, worker := range c.workers {
		wg.Go(func() { worker.controller.Run(ctx, worker.count) })
	}
	wg.Wait()
}
