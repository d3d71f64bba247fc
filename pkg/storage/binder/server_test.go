// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package binder_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/component-base/metrics"
	"k8s.io/kube-openapi/pkg/builder3"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	agentsinstall "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/install"
	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	extensionsinstall "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/install"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	generatedopenapi "github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/openapi"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/labeldomains"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
	sandboxstorage "github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/agents/sandbox/storage"
	claimstorage "github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/extensions/sandboxclaim/storage"
	templatestorage "github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/extensions/sandboxtemplate/storage"
	poolstorage "github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/extensions/sandboxwarmpool/storage"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/status"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/storage/binder"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/storage/embedded"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/storage/factory"
)

const (
	namespace = "test"
	patience  = 30 * time.Second
)

// server has the endpoints of one API server, as it stores with the options of a real one, without HTTP in front of them.
type server struct {
	t         testing.TB
	scheme    *runtime.Scheme
	binder    *binder.Binder
	registry  metrics.KubeRegistry
	sandboxes *sandboxstorage.REST
	states    *status.REST
	templates *templatestorage.REST
	pools     *poolstorage.REST
	claims    *claimstorage.REST
	bindings  *claimstorage.BindREST
}

// startEtcd returns the endpoint of an etcd that lives as long as the test.
func startEtcd(t testing.TB) string {
	t.Helper()
	// The path of a unix socket has room for 108 bytes, which t.TempDir would use up with the name of the test.
	dir, err := os.MkdirTemp("", "binder")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	etcd, err := embedded.Start(t.Context(), embedded.Config{DataDir: dir, UnsafeNoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(etcd.Stop)
	return etcd.Endpoint()
}

// startServer starts a server of the etcd and waits until it knows what there is to give. configure may change how it stores.
func startServer(t testing.TB, etcd string, configure ...func(*genericoptions.EtcdOptions)) *server {
	t.Helper()
	s := newServer(t, etcd, configure...)
	s.run()
	return s
}

func newServer(t testing.TB, etcd string, configure ...func(*genericoptions.EtcdOptions)) *server {
	t.Helper()
	s := &server{t: t, scheme: runtime.NewScheme(), registry: metrics.NewKubeRegistry()}
	agentsinstall.Install(s.scheme)
	extensionsinstall.Install(s.scheme)
	allowed := func() labeldomains.List { return labeldomains.Default }
	var err error
	s.binder, err = binder.New(binder.Config{
		Scheme:       s.scheme,
		Types:        newTypeConverter(t, s.scheme),
		LabelDomains: allowed,
		Clock:        clock.RealClock{},
		Metrics:      binder.Registry{Register: s.registry.Register, RegisterCollector: s.registry.CustomRegister},
	})
	must(t, err)
	options := s.binder.Decorate(s.storageOptions(etcd, configure...).RESTOptionsGetter)
	s.sandboxes, s.states, err = sandboxstorage.NewREST(s.scheme, options)
	must(t, err)
	t.Cleanup(s.sandboxes.Destroy)
	s.templates, err = templatestorage.NewREST(s.scheme, options)
	must(t, err)
	t.Cleanup(s.templates.Destroy)
	s.pools, _, err = poolstorage.NewREST(s.scheme, options)
	must(t, err)
	t.Cleanup(s.pools.Destroy)
	s.claims, _, s.bindings, err = claimstorage.NewREST(s.scheme, options, s.binder, allowed)
	must(t, err)
	t.Cleanup(s.claims.Destroy)
	return s
}

func (s *server) storageOptions(etcd string, configure ...func(*genericoptions.EtcdOptions)) *genericapiserver.Config {
	codecs := serializer.NewCodecFactory(s.scheme)
	options := genericoptions.NewEtcdOptions(storagebackend.NewDefaultConfig(factory.EtcdPrefix, nil))
	options.StorageConfig.Transport.ServerList = []string{etcd}
	options.DefaultStorageMediaType = runtime.ContentTypeProtobuf
	for _, change := range configure {
		change(options)
	}
	config := genericapiserver.NewConfig(codecs)
	must(s.t, options.ApplyWithStorageFactoryTo(
		factory.New(options.StorageConfig, options.DefaultStorageMediaType, s.scheme, codecs), config))
	return config
}

// run starts the binder and waits until it is ready.
func (s *server) run() {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.binder.Run(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
	})
	s.eventually("the binder is ready", func() bool { return s.binder.Check(nil) == nil })
}

func newTypeConverter(t testing.TB, scheme *runtime.Scheme) managedfields.TypeConverter {
	t.Helper()
	config := genericapiserver.DefaultOpenAPIV3Config(generatedopenapi.GetOpenAPIDefinitions, openapi.NewDefinitionNamer(scheme))
	schemas, err := builder3.BuildOpenAPIDefinitionsForResources(config,
		agentsv1beta1.Sandbox{}.OpenAPIModelName(), extensionsv1beta1.SandboxClaim{}.OpenAPIModelName())
	must(t, err)
	types, err := managedfields.NewTypeConverter(schemas, false)
	must(t, err)
	return types
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *server) eventually(what string, holds func() bool) {
	s.t.Helper()
	if err := wait.PollUntilContextTimeout(context.Background(), time.Millisecond, patience, true, func(context.Context) (bool, error) {
		return holds(), nil
	}); err != nil {
		s.t.Fatalf("waiting until %s: %v", what, err)
	}
}

func inNamespace(namespace string) context.Context {
	return genericapirequest.WithNamespace(context.Background(), namespace)
}

// addTemplate makes a template.
func (s *server) addTemplate(name string) *extensions.SandboxTemplate {
	s.t.Helper()
	template := &extensions.SandboxTemplate{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	template.Spec.NetworkPolicyManagement = extensions.NetworkPolicyManagementManaged
	template.Spec.EnvVarsInjectionPolicy = extensions.EnvVarsInjectionPolicyDisallowed
	template.Spec.VolumeClaimTemplatesPolicy = extensions.VolumeClaimTemplatesPolicyDisallowed
	template.Spec.PodTemplate = agents.PodTemplate{
		Spec:     podSpec(),
		Metadata: agents.PodMetadata{Labels: map[string]string{"app": "agent"}},
	}
	created, err := s.templates.Create(inNamespace(namespace), template, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	must(s.t, err)
	return created.(*extensions.SandboxTemplate)
}

func podSpec() corev1.PodSpec {
	return corev1.PodSpec{
		Containers:                    []corev1.Container{{Name: "main", Image: "registry.example/agent:v1", Command: []string{"serve"}}},
		AutomountServiceAccountToken:  ptr.To(false),
		TerminationGracePeriodSeconds: ptr.To(int64(0)),
	}
}

// addPool makes a pool of the template.
func (s *server) addPool(name, template string) *extensions.SandboxWarmPool {
	s.t.Helper()
	pool := &extensions.SandboxWarmPool{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	pool.Spec.SandboxTemplateRef.Name = template
	created, err := s.pools.Create(inNamespace(namespace), pool, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	must(s.t, err)
	return created.(*extensions.SandboxWarmPool)
}

// member returns what the controllers make of a member of a pool, as far as it matters here.
func member(pool *extensions.SandboxWarmPool, i int) *agents.Sandbox {
	labels := map[string]string{
		agentsv1beta1.WarmPoolSandboxLabel:        naming.Hash(pool.Name),
		agentsv1beta1.SandboxTemplateRefHashLabel: naming.Hash(pool.Spec.SandboxTemplateRef.Name),
		agentsv1beta1.LaunchTypeLabel:             agentsv1beta1.LaunchTypeWarm,
		agentsv1beta1.CreatedByLabel:              agentsv1beta1.CreatedByController,
	}
	sandbox := &agents.Sandbox{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("%s-%05d", pool.Name, i), Namespace: pool.Namespace, Labels: labels,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(pool, extensionsv1beta1.SchemeGroupVersion.WithKind("SandboxWarmPool"))},
	}}
	sandbox.Spec.OperatingMode = agents.SandboxOperatingModeRunning
	sandbox.Spec.ShutdownPolicy = ptr.To(agents.ShutdownPolicyRetain)
	sandbox.Spec.PodTemplate = agents.PodTemplate{
		Spec:     podSpec(),
		Metadata: agents.PodMetadata{Labels: map[string]string{"app": "agent"}, Annotations: map[string]string{agentsv1beta1.SafeToEvictAnnotation: "true"}},
	}
	return sandbox
}

// addMember makes a member of the pool, which is ready unless a change of its status says otherwise.
func (s *server) addMember(sandbox *agents.Sandbox, change ...func(*agents.SandboxStatus)) *agents.Sandbox {
	s.t.Helper()
	ctx := inNamespace(sandbox.Namespace)
	created, err := s.sandboxes.Create(ctx, sandbox, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	must(s.t, err)
	warmed := created.(*agents.Sandbox)
	warmed.Status = agents.SandboxStatus{PodIPs: []string{"10.0.0.1"}, NodeName: "node", ServiceFQDN: "member.test.svc.cluster.local"}
	meta.SetStatusCondition(&warmed.Status.Conditions, metav1.Condition{
		Type: agentsv1beta1.SandboxConditionReady, Status: metav1.ConditionTrue, Reason: agentsv1beta1.SandboxReasonDependenciesReady,
		Message: "Pod is Ready", ObservedGeneration: warmed.Generation, LastTransitionTime: metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
	})
	for _, change := range change {
		change(&warmed.Status)
	}
	updated, _, err := s.states.Update(ctx, warmed.Name, rest.DefaultUpdatedObjectInfo(warmed), rest.ValidateAllObjectFunc,
		rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	must(s.t, err)
	return updated.(*agents.Sandbox)
}

// addPoolOf makes a template, a pool and n ready members of it, and waits until they can be given away.
func (s *server) addPoolOf(name string, n int) *extensions.SandboxWarmPool {
	s.t.Helper()
	s.addTemplate(name)
	pool := s.addPool(name, name)
	for i := range n {
		s.addMember(member(pool, i))
	}
	s.awaitCandidates(name, n)
	return pool
}

func (s *server) awaitCandidates(pool string, n int) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("%d candidates of %s are known", n, pool), func() bool {
		offer := s.binder.Offer(namespace, pool)
		return offer.Pool != nil && offer.Template != nil && s.binder.Candidates(namespace, pool) == n
	})
}

func newClaim(name, pool string) *extensions.SandboxClaim {
	claim := &extensions.SandboxClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	claim.Spec.WarmPoolRef.Name = pool
	return claim
}

func (s *server) create(claim *extensions.SandboxClaim) (*extensions.SandboxClaim, error) {
	return s.createWith(context.Background(), claim, &metav1.CreateOptions{})
}

func (s *server) createWith(ctx context.Context, claim *extensions.SandboxClaim, options *metav1.CreateOptions) (*extensions.SandboxClaim, error) {
	obj, err := s.claims.Create(genericapirequest.WithNamespace(ctx, namespace), claim, rest.ValidateAllObjectFunc, options)
	if err != nil {
		return nil, err
	}
	return obj.(*extensions.SandboxClaim), nil
}

func (s *server) mustCreate(claim *extensions.SandboxClaim) *extensions.SandboxClaim {
	s.t.Helper()
	created, err := s.create(claim)
	must(s.t, err)
	return created
}

// bind calls the subresource.
func (s *server) bind(name string, body *extensions.SandboxClaimBind, options *metav1.CreateOptions) (*extensions.SandboxClaim, error) {
	obj, err := s.bindings.Create(inNamespace(namespace), name, body, rest.ValidateAllObjectFunc, options)
	if err != nil {
		return nil, err
	}
	return obj.(*extensions.SandboxClaim), nil
}

func (s *server) claim(name string) *extensions.SandboxClaim {
	s.t.Helper()
	obj, err := s.claims.Get(inNamespace(namespace), name, &metav1.GetOptions{})
	must(s.t, err)
	return obj.(*extensions.SandboxClaim)
}

func (s *server) sandbox(name string) *agents.Sandbox {
	s.t.Helper()
	obj, err := s.sandboxes.Get(inNamespace(namespace), name, &metav1.GetOptions{})
	must(s.t, err)
	return obj.(*agents.Sandbox)
}

