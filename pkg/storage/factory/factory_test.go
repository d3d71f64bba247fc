// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package factory

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	agentsinstall "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/install"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	extensionsinstall "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/install"
)

// TestKeysAreFrozen fails if a change would make stored objects invisible.
func TestKeysAreFrozen(t *testing.T) {
	factory := newFactory(t)
	for resource, want := range map[schema.GroupResource]string{
		agents.Resource("sandboxes"):            "/registry/sandbox-apiserver/agents.x-k8s.io/sandboxes",
		extensions.Resource("sandboxclaims"):    "/registry/sandbox-apiserver/extensions.agents.x-k8s.io/sandboxclaims",
		extensions.Resource("sandboxtemplates"): "/registry/sandbox-apiserver/extensions.agents.x-k8s.io/sandboxtemplates",
		extensions.Resource("sandboxwarmpools"): "/registry/sandbox-apiserver/extensions.agents.x-k8s.io/sandboxwarmpools",
	} {
		config, err := factory.NewConfig(resource, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := config.Prefix + "/" + factory.ResourcePrefix(resource); got != want {
			t.Errorf("%s is stored under %s, want %s", resource, got, want)
		}
	}
}

func TestStoresProtobufOfThePreferredVersion(t *testing.T) {
	factory := newFactory(t)
	for resource, object := range map[schema.GroupResource]runtime.Object{
		agents.Resource("sandboxes"):            &agents.Sandbox{},
		extensions.Resource("sandboxclaims"):    &extensions.SandboxClaim{},
		extensions.Resource("sandboxtemplates"): &extensions.SandboxTemplate{},
		extensions.Resource("sandboxwarmpools"): &extensions.SandboxWarmPool{},
	} {
		config, err := factory.NewConfig(resource, object)
		if err != nil {
			t.Fatal(err)
		}
		encoded, err := runtime.Encode(config.Codec, object)
		if err != nil {
			t.Fatal(err)
		}
		var unknown runtime.Unknown
		const magic = "k8s\x00"
		if string(encoded[:len(magic)]) != magic {
			t.Fatalf("stored bytes begin with %q, want %q", encoded[:len(magic)], magic)
		}
		if err := unknown.Unmarshal(encoded[len(magic):]); err != nil {
			t.Fatal(err)
		}
		if want := resource.Group + "/v1beta1"; unknown.APIVersion != want {
			t.Errorf("%s are stored in version %s, want %s", resource, unknown.APIVersion, want)
		}
	}
}

func TestServersOfSingleResources(t *testing.T) {
	factory := newFactory(t, "agents.x-k8s.io/sandboxes#https://a:2379;https://b:2379")
	for resource, want := range map[schema.GroupResource][]string{
		agents.Resource("sandboxes"):         {"https://a:2379", "https://b:2379"},
		extensions.Resource("sandboxclaims"): {"https://main:2379"},
	} {
		config, err := factory.NewConfig(resource, nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, config.Transport.ServerList); diff != "" {
			t.Errorf("servers of %s (-want +got):\n%s", resource, diff)
		}
	}
}

func TestEtcds(t *testing.T) {
	type etcds map[string][]string
	for name, test := range map[string]struct {
		overrides []string
		want      etcds
	}{
		"one": {nil, etcds{"": {"https://main:2379"}}},
		"one for a resource": {
			[]string{"agents.x-k8s.io/sandboxes#https://a:2379"},
			etcds{"": {"https://main:2379"}, "sandboxes.agents.x-k8s.io": {"https://a:2379"}},
		},
		"one for each of two resources": {
			[]string{"g/b#https://a:2379", "g/a#https://c:2379"},
			etcds{"": {"https://main:2379"}, "b.g": {"https://a:2379"}, "a.g": {"https://c:2379"}},
		},
		"one for two resources, with its members in any order": {
			[]string{"g/b#https://a:2379;https://b:2379", "g/a#https://b:2379;https://a:2379"},
			etcds{"": {"https://main:2379"}, "a.g_b.g": {"https://a:2379", "https://b:2379"}},
		},
		"that of all others, named again": {[]string{"g/a#https://main:2379"}, etcds{"": {"https://main:2379"}}},
		"one for a group": {
			[]string{"g/*#https://a:2379"},
			etcds{"": {"https://main:2379"}, "all.g": {"https://a:2379"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := Etcds(newOptions(test.overrides...))
			if err != nil {
				t.Fatal(err)
			}
			if list[0].Name != "" {
				t.Errorf("the first is %q, want that of all other resources", list[0].Name)
			}
			got := etcds{}
			for _, etcd := range list {
				got[etcd.Name] = etcd.Transport.ServerList
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("etcds (-want +got):\n%s", diff)
			}
		})
	}
}

func newOptions(overrides ...string) *genericoptions.EtcdOptions {
	options := genericoptions.NewEtcdOptions(storagebackend.NewDefaultConfig(EtcdPrefix, nil))
	options.StorageConfig.Transport.ServerList = []string{"https://main:2379"}
	options.DefaultStorageMediaType = runtime.ContentTypeProtobuf
	options.EtcdServersOverrides = overrides
	return options
}

func newFactory(t *testing.T, overrides ...string) serverstorage.StorageFactory {
	t.Helper()
	scheme := runtime.NewScheme()
	agentsinstall.Install(scheme)
	extensionsinstall.Install(scheme)
	factory, err := New(newOptions(overrides...), scheme, serializer.NewCodecFactory(scheme))
	if err != nil {
		t.Fatal(err)
	}
	return factory
}
