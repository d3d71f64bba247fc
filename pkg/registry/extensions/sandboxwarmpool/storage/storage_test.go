// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/install"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/extensions/sandboxwarmpool/storage"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/status"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/registrytest"
)

// endpoints are the endpoints of sandboxwarmpools over a real etcd.
type endpoints struct {
	*storage.REST
	scheme *runtime.Scheme
	status *status.REST
	scale  *storage.ScaleREST
}

func newEndpoints(t *testing.T) endpoints {
	t.Helper()
	scheme := runtime.NewScheme()
	install.Install(scheme)
	codec := registrytest.Codec(t, scheme, extensions.SchemeGroupVersion, v1beta1.SchemeGroupVersion)
	pools, status, err := storage.NewREST(scheme, registrytest.RESTOptions(codec, extensions.Resource("sandboxwarmpools"), registrytest.StartEtcd(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pools.Destroy)
	return endpoints{pools, scheme, status, storage.NewScaleREST(pools)}
}

func validPool() *extensions.SandboxWarmPool {
	return &extensions.SandboxWarmPool{
		ObjectMeta: metav1.ObjectMeta{Name: "pool", Namespace: registrytest.Namespace},
		Spec: extensions.SandboxWarmPoolSpec{
			Replicas:           ptr.To[int32](3),
			SandboxTemplateRef: extensions.SandboxTemplateRef{Name: "template"},
		},
	}
}

func (e endpoints) create(t *testing.T, tweaks ...func(*extensions.SandboxWarmPool)) *extensions.SandboxWarmPool {
	t.Helper()
	pool := validPool()
	for _, tweak := range tweaks {
		tweak(pool)
	}
	obj, err := e.Create(registrytest.Context(t.Context()), pool, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*extensions.SandboxWarmPool)
}

func (e endpoints) get(t *testing.T) *extensions.SandboxWarmPool {
	t.Helper()
	obj, err := e.Get(registrytest.Context(t.Context()), "pool", &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*extensions.SandboxWarmPool)
}

// TestStandardBehaviour runs the library's own suite for stored resources.
func TestStandardBehaviour(t *testing.T) {
	registrytest.Standard[*extensions.SandboxWarmPool]{
		NewStore: func(t *testing.T) *genericregistry.Store { return newEndpoints(t).Store },
		Valid:    validPool,
		Change:   func(p *extensions.SandboxWarmPool) { p.Spec.SandboxTemplateRef.Name = "other" },
		Spoil:    func(p *extensions.SandboxWarmPool) { p.Spec.Replicas = ptr.To[int32](-1) },
	}.Test(t)
}

func TestStatusIsWrittenByStatusAlone(t *testing.T) {
	e := newEndpoints(t)
	created := e.create(t, func(p *extensions.SandboxWarmPool) { p.Status.Replicas = 7 })
	if diff := cmp.Diff(extensions.SandboxWarmPoolStatus{}, created.Status); diff != "" {
		t.Errorf("status of a new pool (-want +got):\n%s", diff)
	}
	change := created.DeepCopy()
	change.Status.ReadyReplicas = 1
	change.Spec.Replicas = ptr.To[int32](5)
	if _, _, err := e.status.Update(registrytest.Context(t.Context()), "pool", rest.DefaultUpdatedObjectInfo(change),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	want, got := created.DeepCopy(), e.get(t)
	want.Status.ReadyReplicas, want.ResourceVersion = 1, got.ResourceVersion
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("after a write to status (-want +got):\n%s", diff)
	}
}
