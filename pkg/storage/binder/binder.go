// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package binder

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/labeldomains"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/storage/etcdclient"
)

// The resources that binding reads or writes.
var (
	claimResource    = extensions.Resource("sandboxclaims")
	poolResource     = extensions.Resource("sandboxwarmpools")
	templateResource = extensions.Resource("sandboxtemplates")
	sandboxResource  = agents.Resource("sandboxes")
)

// Config says what a Binder works with.
type Config struct {
	Scheme *runtime.Scheme
	// LabelDomains returns the domains that labels of claims may have.
	LabelDomains func() labeldomains.List
	// Etcd returns a client of the etcd that claims are stored in. Defaults to etcdclient.New.
	Etcd    func(storagebackend.TransportConfig) (*clientv3.Client, error)
	Clock   clock.WithTicker
	Metrics Registry
}

// Binder gives Sandboxes to claims. Decorate makes the storage of claims use it. It gives nothing before Run has told it what there is
// to give.
type Binder struct {
	scheme       *runtime.Scheme
	labelDomains func() labeldomains.List
	etcd         func(storagebackend.TransportConfig) (*clientv3.Client, error)
	clock        clock.PassiveClock
	metrics      *bindMetrics

	// resources are those that were decorated. They are complete before the first request.
	resources map[schema.GroupResource]*resource
	// kv makes the transactions.
	kv clientv3.KV
	// twoSteps says that transactions of claim and Sandbox are not possible.
	twoSteps atomic.Bool

	candidates *candidates
	pools      cache.Store
	templates  cache.Store
	followed   map[schema.GroupResource]*syncedStore

	announcements announcementQueue
	// creating is how many claims are being created and bound now.
	creating atomic.Int64

	// stop ends the work that requests left behind.
	background context.Context
	stop       context.CancelFunc
	working    sync.WaitGroup
}

var _ healthz.HealthChecker = &Binder{}

// New returns a Binder. It fails if the metrics cannot be registered.
func New(config Config) (*Binder, error) {
	if config.Etcd == nil {
		config.Etcd = etcdclient.New
	}
	candidates := newCandidates(rand.IntN)
	pools, templates := cache.NewStore(cache.MetaNamespaceKeyFunc), cache.NewStore(cache.MetaNamespaceKeyFunc)
	bindMetrics, err := newMetrics(config.Metrics, candidates.counts)
	if err != nil {
		return nil, err
	}
	background, stop := context.WithCancel(context.Background())
	return &Binder{
		scheme:       config.Scheme,
		labelDomains: config.LabelDomains,
		etcd:         config.Etcd,
		clock:        config.Clock,
		metrics:      bindMetrics,
		resources:    map[schema.GroupResource]*resource{},
		candidates:   candidates,
		pools:        pools,
		templates:    templates,
		followed: map[schema.GroupResource]*syncedStore{
			sandboxResource:  newSyncedStore(candidateStore{candidates}),
			poolResource:     newSyncedStore(pools),
			templateResource: newSyncedStore(templates),
		},
		announcements: newAnnouncementQueue(config.Clock),
		background:    background,
		stop:          stop,
	}, nil
}

// Decorate makes the storages that the options are for known to the Binder, and that of claims bind them. All four resources must get
// their options from what it returns.
func (b *Binder) Decorate(getter generic.RESTOptionsGetter) generic.RESTOptionsGetter {
	return decoratedOptions{getter, b}
}

type decoratedOptions struct {
	generic.RESTOptionsGetter
	binder *Binder
}

// GetRESTOptions implements generic.RESTOptionsGetter.
func (d decoratedOptions) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := d.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err != nil {
		return options, err
	}
	decorator := options.Decorator
	options.Decorator = func(config *storagebackend.ConfigForResource, prefix string, keyFunc func(runtime.Object) (string, error),
		newFunc, newListFunc func() runtime.Object, attrs storage.AttrFunc, triggers storage.IndexerFuncs, indexers *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		store, destroy, err := decorator(config, prefix, keyFunc, newFunc, newListFunc, attrs, triggers, indexers)
		if err != nil {
			return nil, nil, err
		}
		return d.binder.take(newResource(*config, prefix, store), destroy)
	}
	return options, nil
}

// take takes note of a resource. It returns the storage that requests are to use, and what ends its use.
func (b *Binder) take(r *resource, destroy factory.DestroyFunc) (storage.Interface, factory.DestroyFunc, error) {
	b.resources[r.config.GroupResource] = r
	if r.config.GroupResource != claimResource {
		return r.storage, destroy, nil
	}
	client, err := b.etcd(r.config.Transport)
	if err != nil {
		destroy()
		return nil, nil, err
	}
	b.kv = etcd3.NewETCDLatencyTracker(client.KV)
	var once sync.Once
	return &claimStorage{r.storage, b}, func() {
		once.Do(func() {
			b.stop()
			b.working.Wait()
			if err := client.Close(); err != nil && !errors.Is(err, context.Canceled) {
				utilruntime.HandleError(fmt.Errorf("closing the etcd client of the claim binder: %w", err))
			}
			destroy()
		})
	}, nil
}

// Run keeps the Binder informed of pools, templates and what there is to give, and announces what it gave, until ctx ends. It fails at once
// if a resource was not decorated.
func (b *Binder) Run(ctx context.Context) error {
	for _, needed := range []schema.GroupResource{claimResource, poolResource, templateResource, sandboxResource} {
		if b.resources[needed] == nil {
			return fmt.Errorf("claims cannot be bound: the storage of %s is not known", needed)
		}
	}
	if claims := b.resources[claimResource]; !sameServers(claims, b.resources[sandboxResource]) || !sameServers(claims, b.resources[poolResource]) {
		b.twoSteps.Store(true)
	}
	var following wait.Group
	for _, f := range []follower{
		{object: &agentsv1beta1.Sandbox{}, newList: func() runtime.Object { return &agents.SandboxList{} }, resource: b.resources[sandboxResource]},
		{object: &extensionsv1beta1.SandboxWarmPool{}, newList: func() runtime.Object { return &extensions.SandboxWarmPoolList{} }, resource: b.resources[poolResource]},
		{object: &extensionsv1beta1.SandboxTemplate{}, newList: func() runtime.Object { return &extensions.SandboxTemplateList{} }, resource: b.resources[templateResource]},
	} {
		f.scheme, f.store = b.scheme, b.followed[f.resource.config.GroupResource]
		following.StartWithContext(ctx, f.run)
	}
	following.StartWithContext(ctx, b.announceAll)
	following.Wait()
	return nil
}

// Name implements healthz.HealthChecker.
func (*Binder) Name() string { return "claim-binder" }

// Check implements healthz.HealthChecker: a server that does not know yet what there is to give would start every claim cold. It is for
// readyz alone.
func (b *Binder) Check(*http.Request) error {
	for of, store := range b.followed {
		if !store.synced() {
			return fmt.Errorf("%s are not known yet", of)
		}
	}
	return nil
}

// later does what a request could not finish, again and again until it succeeds or the server ends.
func (b *Binder) later(what func(context.Context) error) {
	backoff := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 10, Cap: 10 * time.Second}
	b.working.Go(func() {
		_ = backoff.DelayFunc().Until(b.background, true, true, func(ctx context.Context) (bool, error) {
			ctx, cancel := context.WithTimeout(ctx, settleTimeout)
			defer cancel()
			return what(ctx) == nil, nil
		})
	})
}
