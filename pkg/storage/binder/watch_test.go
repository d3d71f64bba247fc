// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package binder_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/rest"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/storage/etcdclient"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/storage/factory"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/claimtest"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/registrytest"
)

// event is what a watch has told.
type event struct {
	Type            watch.EventType
	Name            string
	ResourceVersion string
}

func startWatch(t *testing.T, endpoint rest.Watcher, resourceVersion string) watch.Interface {
	t.Helper()
	w, err := endpoint.Watch(claimtest.Context(t.Context()), &metainternalversion.ListOptions{ResourceVersion: resourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

func next(t *testing.T, w watch.Interface) event {
	t.Helper()
	select {
	case e := <-w.ResultChan():
		object := e.Object
		if shared, ok := object.(runtime.CacheableObject); ok {
			object = shared.GetObject()
		}
		accessor, err := meta.Accessor(object)
		if err != nil {
			t.Fatalf("%s: %v", e.Type, err)
		}
		return event{e.Type, accessor.GetName(), accessor.GetResourceVersion()}
	case <-time.After(30 * time.Second):
		t.Fatal("no event came")
		return event{}
	}
}

func wantEvent(t *testing.T, what string, w watch.Interface, want event) {
	t.Helper()
	if diff := cmp.Diff(want, next(t, w)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// TestWatchesSeeTheBindingOnce watches claims and Sandboxes from before and from after a claim was bound.
func TestWatchesSeeTheBindingOnce(t *testing.T) {
	s := claimtest.Start(t, registrytest.StartEtcd(t))
	s.AddPoolOf("pool", 1)
	earlier := s.Sandbox("pool-00000").ResourceVersion
	claim := s.MustCreate(claimtest.Claim("claim", "pool"))

	fromBefore := startWatch(t, s.Claims, earlier)
	wantEvent(t, "the claim, from before", fromBefore, event{watch.Added, "claim", claim.ResourceVersion})
	sandboxFromBefore := startWatch(t, s.Sandboxes, earlier)
	wantEvent(t, "the Sandbox, from before", sandboxFromBefore, event{watch.Modified, "pool-00000", claim.ResourceVersion})

	fromResponse, sandboxFromResponse := startWatch(t, s.Claims, claim.ResourceVersion), startWatch(t, s.Sandboxes, claim.ResourceVersion)
	changedClaim := claim.DeepCopy()
	changedClaim.Annotations["example.com/seen"] = "true"
	changedClaim = s.UpdateClaim(changedClaim)
	sandbox := s.Sandbox("pool-00000")
	sandbox.Annotations = map[string]string{"example.com/seen": "true"}
	sandbox = s.UpdateSandbox(sandbox)
	for what, w := range map[string]watch.Interface{"the claim, from the response": fromResponse, "the claim again, from before": fromBefore} {
		wantEvent(t, what, w, event{watch.Modified, "claim", changedClaim.ResourceVersion})
	}
	for what, w := range map[string]watch.Interface{"the Sandbox, from the response": sandboxFromResponse, "the Sandbox again, from before": sandboxFromBefore} {
		wantEvent(t, what, w, event{watch.Modified, "pool-00000", sandbox.ResourceVersion})
	}
}

// TestEncryptionAtRest binds a claim in a storage that encrypts: what the binder has written is encrypted under its own key, and the
// stores of another server can read it.
func TestEncryptionAtRest(t *testing.T) {
	encrypt := func(options *genericoptions.EtcdOptions) {
		options.EncryptionProviderConfigFilepath = "testdata/encryption.yaml"
	}
	etcd := registrytest.StartEtcd(t)
	s := claimtest.Start(t, etcd, encrypt)
	s.AddPoolOf("pool", 1)
	claim := s.MustCreate(claimtest.Claim("claim", "pool"))
	if claim.Status.Sandbox.Name != "pool-00000" {
		t.Fatalf("the claim got %q, want pool-00000", claim.Status.Sandbox.Name)
	}
	client, err := etcdclient.New(storagebackend.TransportConfig{ServerList: []string{etcd}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}()
	response, err := client.Get(t.Context(), factory.EtcdPrefix, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	if len(response.Kvs) != 4 {
		t.Errorf("%d keys are stored, want 4", len(response.Kvs))
	}
	for _, kv := range response.Kvs {
		if !strings.HasPrefix(string(kv.Value), "k8s:enc:secretbox:v1:") {
			t.Errorf("%s is not encrypted", kv.Key)
		}
	}
	other := claimtest.New(t, etcd, encrypt)
	if diff := cmp.Diff(claim, other.Claim("claim")); diff != "" {
		t.Errorf("the claim as another server reads it (-want +got):\n%s", diff)
	}
	if got := other.Sandbox("pool-00000"); got.ResourceVersion != claim.ResourceVersion {
		t.Errorf("the Sandbox is at resourceVersion %s, want %s", got.ResourceVersion, claim.ResourceVersion)
	}
}

// TestListsHoldWhatWasBound makes sure that the lists of a server hold what was bound.
func TestListsHoldWhatWasBound(t *testing.T) {
	s := claimtest.Start(t, registrytest.StartEtcd(t))
	s.AddPoolOf("pool", 1)
	claim := s.MustCreate(claimtest.Claim("claim", "pool"))
	claims := list[*extensions.SandboxClaimList](t, s.Claims).Items
	if diff := cmp.Diff([]extensions.SandboxClaim{*claim}, claims); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	sandboxes := list[*agents.SandboxList](t, s.Sandboxes).Items
	if diff := cmp.Diff([]agents.Sandbox{*s.Sandbox("pool-00000")}, sandboxes); diff != "" {
		t.Errorf("Sandboxes (-want +got):\n%s", diff)
	}
}
