// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package factory

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/install"
)

// TestKeysAreFrozen fails if a change would make stored objects invisible.
func TestKeysAreFrozen(t *testing.T) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	factory := New(*storagebackend.NewDefaultConfig(EtcdPrefix, nil), runtime.ContentTypeProtobuf, scheme, serializer.NewCodecFactory(scheme))
	for resource, want := range map[schema.GroupResource]string{
		agents.Resource("sandboxes"): "/registry/sandbox-apiserver/agents.x-k8s.io/sandboxes",
	} {
		config, err := factory.NewConfig(resource, &agents.Sandbox{})
		if err != nil {
			t.Fatal(err)
		}
		if got := config.Prefix + "/" + factory.ResourcePrefix(resource); got != want {
			t.Errorf("%s is stored under %s, want %s", resource, got, want)
		}
	}
}

func TestStoresProtobufOfThePreferredVersion(t *testing.T) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	factory := New(*storagebackend.NewDefaultConfig(EtcdPrefix, nil), runtime.ContentTypeProtobuf, scheme, serializer.NewCodecFactory(scheme))
	config, err := factory.NewConfig(agents.Resource("sandboxes"), &agents.Sandbox{})
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := runtime.Encode(config.Codec, &agents.Sandbox{})
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
	if unknown.APIVersion != "agents.x-k8s.io/v1beta1" || unknown.Kind != "Sandbox" {
		t.Errorf("stored as %s %s, want agents.x-k8s.io/v1beta1 Sandbox", unknown.APIVersion, unknown.Kind)
	}
}
