// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package claimtest holds what tests of claims start from that need API servers over a real etcd, and no HTTP in front of them.
package claimtest

import (
	"context"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/component-base/metrics"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	agentsinstall "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/install"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	extensionsinstall "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/install"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/labeldomains"
	sandboxstorage "github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/agents/sandbox/storage"
	claimstorage "github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/extensions/sandboxclaim/storage"
	templatestorage "github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/extensions/sandboxtemplate/storage"
	poolstorage "github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/extensions/sandboxwarmpool/storage"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/status"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/storage/binder"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/storage/factory"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/registrytest"
)

// patience is how long anything is waited for.
const patience = 30 * time.Second

// Server has the endpoints of one API server. They store as those of a real one do, watch caches included.
type Server struct {
	testing.TB
	Binder   *binder.Binder
	Registry metrics.KubeRegistry
	// Clock is that of the Binder. It stands still, so that nothing is announced unless a test moves it.
	Clock *clocktesting.FakeClock

	Sandboxes   *sandboxstorage.REST
	Templates   *templatestorage.REST
	Pools       *poolstorage.REST
	Claims      *claimstorage.REST
	ClaimStatus *status.REST
	ClaimBind   *claimstorage.BindREST
}

// Start starts a server of the etcd, and waits until it knows what there is to give. configure may change how it stores.
func Start(t testing.TB, etcd string, configure ...func(*genericoptions.EtcdOptions)) *Server {
	t.Helper()
	s := New(t, etcd, configure...)
	s.Run()
	return s
}

// New returns a server of the etcd that knows nothing yet of what there is to give.
func New(t testing.TB, etcd string, configure ...func(*genericoptions.EtcdOptions)) *Server {
	t.Helper()
	s := &Server{TB: t, Registry: metrics.NewKubeRegistry(), Clock: clocktesting.NewFakeClock(time.Now())}
	scheme := runtime.NewScheme()
	agentsinstall.Install(scheme)
	extensionsinstall.Install(scheme)
	var err error
	s.Binder, err = binder.New(binder.Config{
		Scheme:       scheme,
		LabelDomains: labelDomains,
		Clock:        s.Clock,
		Metrics:      binder.Registry{Register: s.Registry.Register, RegisterCollector: s.Registry.CustomRegister},
	})
	s.must(err)
	s.addEndpoints(scheme, s.Binder.Decorate(s.storageOptions(scheme, etcd, configure...)))
	return s
}

func labelDomains() labeldomains.List { return labeldomains.Default }

func (s *Server) storageOptions(scheme *runtime.Scheme, etcd string, configure ...func(*genericoptions.EtcdOptions)) generic.RESTOptionsGetter {
	s.Helper()
	codecs := serializer.NewCodecFactory(scheme)
	options := genericoptions.NewEtcdOptions(storagebackend.NewDefaultConfig(factory.EtcdPrefix, nil))
	options.StorageConfig.Transport.ServerList = []string{etcd}
	options.DefaultStorageMediaType = runtime.ContentTypeProtobuf
	for _, change := range configure {
		change(options)
	}
	storageFactory, err := factory.New(options, scheme, codecs)
	s.must(err)
	config := genericapiserver.NewConfig(codecs)
	s.must(options.ApplyWithStorageFactoryTo(storageFactory, config))
	return config.RESTOptionsGetter
}

func (s *Server) addEndpoints(scheme *runtime.Scheme, options generic.RESTOptionsGetter) {
	s.Helper()
	var err error
	s.Sandboxes, _, err = sandboxstorage.NewREST(scheme, options)
	s.must(err)
	s.Cleanup(s.Sandboxes.Destroy)
	s.Templates, err = templatestorage.NewREST(scheme, options)
	s.must(err)
	s.Cleanup(s.Templates.Destroy)
	s.Pools, _, err = poolstorage.NewREST(scheme, options)
	s.must(err)
	s.Cleanup(s.Pools.Destroy)
	s.Claims, s.ClaimStatus, s.ClaimBind, err = claimstorage.NewREST(scheme, options, s.Binder, labelDomains)
	s.must(err)
	s.Cleanup(s.Claims.Destroy)
}

// Run lets the server learn what there is to give, and waits until it knows.
func (s *Server) Run() {
	s.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Binder.Run(ctx) }()
	s.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			s.Error(err)
		}
	})
	s.Eventually("the binder is ready", func() bool { return s.Binder.Check(&http.Request{}) == nil })
}

// Eventually waits until something holds.
func (s *Server) Eventually(what string, holds func() bool) {
	s.Helper()
	if err := wait.PollUntilContextTimeout(context.Background(), time.Millisecond, patience, true, func(context.Context) (bool, error) {
		return holds(), nil
	}); err != nil {
		s.Fatalf("waiting until %s: %v", what, err)
	}
}

func (s *Server) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// Context returns a context of requests for the namespace that everything is in.
func Context(parent context.Context) context.Context { return registrytest.Context(parent) }

func (s *Server) context() context.Context { return Context(context.Background()) }

// Create creates a claim.
func (s *Server) Create(ctx context.Context, claim *extensions.SandboxClaim, options *metav1.CreateOptions) (*extensions.SandboxClaim, error) {
	obj, err := s.Claims.Create(Context(ctx), claim, rest.ValidateAllObjectFunc, options)
	if err != nil {
		return nil, err
	}
	return obj.(*extensions.SandboxClaim), nil
}

// MustCreate creates a claim.
func (s *Server) MustCreate(claim *extensions.SandboxClaim) *extensions.SandboxClaim {
	s.Helper()
	created, err := s.Create(context.Background(), claim, &metav1.CreateOptions{})
	s.must(err)
	return created
}

// Bind calls the bind subresource of a claim.
func (s *Server) Bind(name string, body *extensions.SandboxClaimBind, options *metav1.CreateOptions) (*extensions.SandboxClaim, error) {
	obj, err := s.ClaimBind.Create(s.context(), name, body, rest.ValidateAllObjectFunc, options)
	if err != nil {
		return nil, err
	}
	return obj.(*extensions.SandboxClaim), nil
}

// Claim reads a claim.
func (s *Server) Claim(name string) *extensions.SandboxClaim {
	s.Helper()
	obj, err := s.Claims.Get(s.context(), name, &metav1.GetOptions{})
	s.must(err)
	return obj.(*extensions.SandboxClaim)
}

// UpdateClaim changes a claim.
func (s *Server) UpdateClaim(claim *extensions.SandboxClaim) *extensions.SandboxClaim {
	s.Helper()
	return s.updated(s.Claims, claim.Name, claim).(*extensions.SandboxClaim)
}

// UpdateClaimStatus changes the status of a claim.
func (s *Server) UpdateClaimStatus(claim *extensions.SandboxClaim) *extensions.SandboxClaim {
	s.Helper()
	return s.updated(s.ClaimStatus, claim.Name, claim).(*extensions.SandboxClaim)
}

// Sandbox reads a Sandbox.
func (s *Server) Sandbox(name string) *agents.Sandbox {
	s.Helper()
	obj, err := s.Sandboxes.Get(s.context(), name, &metav1.GetOptions{})
	s.must(err)
	return obj.(*agents.Sandbox)
}

// UpdateSandbox changes a Sandbox.
func (s *Server) UpdateSandbox(sandbox *agents.Sandbox) *agents.Sandbox {
	s.Helper()
	return s.updated(s.Sandboxes, sandbox.Name, sandbox).(*agents.Sandbox)
}

// UpdateTemplate changes a template.
func (s *Server) UpdateTemplate(template *extensions.SandboxTemplate) *extensions.SandboxTemplate {
	s.Helper()
	return s.updated(s.Templates, template.Name, template).(*extensions.SandboxTemplate)
}

func (s *Server) updated(endpoint rest.Updater, name string, obj runtime.Object) runtime.Object {
	s.Helper()
	updated, _, err := endpoint.Update(s.context(), name, rest.DefaultUpdatedObjectInfo(obj), rest.ValidateAllObjectFunc,
		rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	s.must(err)
	return updated
}

// Delete deletes an object at once.
func (s *Server) Delete(endpoint rest.GracefulDeleter, name string) {
	s.Helper()
	_, _, err := endpoint.Delete(s.context(), name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{})
	s.must(err)
}

// Candidates returns the number of members of a pool that the server could give away now.
func (s *Server) Candidates(pool string) int {
	s.Helper()
	families, err := s.Registry.Gather()
	s.must(err)
	for _, family := range families {
		if family.GetName() != "sandbox_apiserver_claim_candidates" {
			continue
		}
		for _, metric := range family.GetMetric() {
			labels := metric.GetLabel()
			if labels[0].GetValue() == registrytest.Namespace && labels[1].GetValue() == pool {
				return int(metric.GetGauge().GetValue())
			}
		}
	}
	return 0
}
