// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package factory

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	agentsinstall "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/install"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	extensionsinstall "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/install"
)

// TestKeysAreFrozen fails if a change would make stored objects invisible.
func TestKeysAreFrozen(t *testing.T) {
	factory := newFactory()
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
	factory := newFactory()
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

func newFactory() serverstorage.StorageFactory {
	scheme := runtime.NewScheme()
	agentsinstall.Install(scheme)
	extensionsinstall.Install(scheme)
	return New(*storagebackend.NewDefaultConfig(EtcdPrefix, nil), runtime.ContentTypeProtobuf, scheme, serializer.NewCodecFactory(scheme))
}
