// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxtemplate

import (
	"context"
	"errors"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	networkinglisters "k8s.io/client-go/listers/networking/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/informer"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/loop"
	controllermetrics "github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/metrics"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/namespace"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/recent"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/informers/externalversions"
	listers "github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/listers/extensions/v1beta1"
)

const (
	// Name is the name of the controller in events and as a field manager.
	Name = "sandboxtemplate-controller"

	// loopName is the name of the controller in logs and in the metrics about its queue and its passes.
	loopName = "sandboxtemplate"
)

// Config is what a Controller is made of.
type Config struct {
	// KubeClient reaches the cluster that NetworkPolicies are in.
	KubeClient kubernetes.Interface
	// SandboxClient reaches the server of templates, through the cluster or directly.
	SandboxClient versioned.Interface
	// PolicyInformers is made by NewPolicyInformerFactory, SandboxInformers by package informer. Both are to be started after New.
	PolicyInformers  informers.SharedInformerFactory
	SandboxInformers externalversions.SharedInformerFactory
	// Recorder takes the events about templates.
	Recorder events.EventRecorder
	// Passes counts and times the passes. Defaults to metrics that nobody reads.
	Passes *controllermetrics.Passes
	// Clock tells the time, and when a delay is over. Defaults to the real one.
	Clock clock.WithTicker
}

// NewPolicyInformerFactory returns informers for NetworkPolicies: all of them, for those of templates have no label of their own.
func NewPolicyInformerFactory(client kubernetes.Interface) informers.SharedInformerFactory {
	return informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(informer.DropManagedFields))
}

// Controller reconciles SandboxTemplates.
type Controller struct {
	config Config

	loop *loop.Loop

	templates listers.SandboxTemplateLister
	policies  networkinglisters.NetworkPolicyLister

	templateWrites *recent.Writes[*extensionsv1beta1.SandboxTemplate]
	policyWrites   *recent.Writes[*networkingv1.NetworkPolicy]
	terminating    *namespace.Terminating
}

// New returns a Controller that collects work from the informers at once and does it while Run runs.
func New(config Config) (*Controller, error) {
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	templates := config.SandboxInformers.Extensions().V1beta1().SandboxTemplates()
	policies := config.PolicyInformers.Networking().V1().NetworkPolicies()
	c := &Controller{
		config:         config,
		templates:      templates.Lister(),
		policies:       policies.Lister(),
		templateWrites: recent.NewWrites[*extensionsv1beta1.SandboxTemplate](config.Clock),
		policyWrites:   recent.NewWrites[*networkingv1.NetworkPolicy](config.Clock),
		terminating:    namespace.NewTerminating(config.Clock),
	}
	c.loop = loop.New(loop.Config{Name: loopName, Reconcile: c.reconcile, Passes: config.Passes, Clock: config.Clock})
	return c, errors.Join(
		c.loop.Watch(templates.Informer(), c.templateHandler()),
		c.loop.Watch(policies.Informer(), c.policyHandler()),
	)
}

// HasSynced says whether the controller has been told of all objects that existed when it started.
func (c *Controller) HasSynced() bool { return c.loop.HasSynced() }

// Run reconciles with the given number of workers until the context ends, and returns when the last of them has stopped. It waits
// as long as it takes for the API servers to be reachable.
func (c *Controller) Run(ctx context.Context, workers int) { c.loop.Run(ctx, workers) }

func (c *Controller) templateHandler() cache.ResourceEventHandler {
	enqueue := func(obj any) {
		if template, ok := obj.(*extensionsv1beta1.SandboxTemplate); ok {
			c.templateWrites.Delivered(template)
			c.loop.Queue.Add(cache.MetaObjectToName(template))
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, obj any) { enqueue(obj) },
		DeleteFunc: func(obj any) {
			if template, ok := informer.Untomb(obj).(*extensionsv1beta1.SandboxTemplate); ok {
				c.templateWrites.Deleted(template)
			}
		},
	}
}

func (c *Controller) policyHandler() cache.ResourceEventHandler {
	enqueue := func(obj any) {
		if policy, ok := obj.(*networkingv1.NetworkPolicy); ok {
			c.policyWrites.Delivered(policy)
			c.enqueueTemplateOf(policy)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue,
		UpdateFunc: func(before, after any) {
			enqueue(after)
			// One that was taken from its template concerns the template that lost it.
			if policy, ok := before.(*networkingv1.NetworkPolicy); ok {
				c.enqueueTemplateOf(policy)
			}
		},
		DeleteFunc: func(obj any) {
			if policy, ok := informer.Untomb(obj).(*networkingv1.NetworkPolicy); ok {
				c.policyWrites.Deleted(policy)
				c.enqueueTemplateOf(policy)
			}
		},
	}
}

// enqueueTemplateOf asks for a pass over the template that a change of the policy may concern: its owner, or else the one that would
// use a policy of this name and may be waiting for it to go.
func (c *Controller) enqueueTemplateOf(policy *networkingv1.NetworkPolicy) {
	if ref := metav1.GetControllerOfNoCopy(policy); ref != nil && isTemplateRef(ref) {
		c.loop.Queue.Add(cache.NewObjectName(policy.Namespace, ref.Name))
	} else if name, ok := strings.CutSuffix(policy.Name, policySuffix); ok {
		c.loop.Queue.Add(cache.NewObjectName(policy.Namespace, name))
	}
}
