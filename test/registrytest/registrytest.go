// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package registrytest holds what tests of endpoints over a real etcd start from.
package registrytest

import (
	"context"
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/kube-openapi/pkg/builder3"

	generatedopenapi "github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/openapi"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/storage/embedded"
)

// Namespace is the one that the library's own suite works in.
const Namespace = "test"

// Context returns a context of requests for the namespace.
func Context(parent context.Context) context.Context {
	return genericapirequest.WithNamespace(parent, Namespace)
}

// EtcdPrefix is the prefix of every key. It is followed by <group>/<resource>/<namespace>/<name>.
const EtcdPrefix = "/test"

// StartEtcd returns the endpoint of an etcd that lives as long as the test.
func StartEtcd(t testing.TB) string {
	t.Helper()
	// The path of a unix socket has room for 108 bytes, which t.TempDir would use up with the name of the test.
	dir, err := os.MkdirTemp("", "etcd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	server, err := embedded.Start(t.Context(), embedded.Config{DataDir: dir, UnsafeNoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	return server.Endpoint()
}

// Codec returns what the server stores objects of a group with, given its versions.
func Codec(t testing.TB, scheme *runtime.Scheme, internal, served schema.GroupVersion) runtime.Codec {
	t.Helper()
	codecs := serializer.NewCodecFactory(scheme)
	info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	if !ok {
		t.Fatal("no serializer for protobuf")
	}
	return codecs.CodecForVersions(info.Serializer, codecs.UniversalDeserializer(), served, internal)
}

// RESTOptions returns the options of an endpoint of the resource without a watch cache, over the given etcd.
func RESTOptions(codec runtime.Codec, resource schema.GroupResource, etcd string) generic.RESTOptions {
	config := storagebackend.NewDefaultConfig(EtcdPrefix, codec)
	config.Transport.ServerList = []string{etcd}
	return generic.RESTOptions{
		StorageConfig:           config.ForResource(resource),
		Decorator:               generic.UndecoratedStorage,
		DeleteCollectionWorkers: 1,
		EnableGarbageCollection: true,
		ResourcePrefix:          resource.Group + "/" + resource.Resource,
	}
}

// TypeConverter returns what tracks the ownership of fields in the models of the given names.
func TypeConverter(t testing.TB, scheme *runtime.Scheme, models ...string) managedfields.TypeConverter {
	t.Helper()
	config := genericapiserver.DefaultOpenAPIV3Config(generatedopenapi.GetOpenAPIDefinitions, openapi.NewDefinitionNamer(scheme))
	schemas, err := builder3.BuildOpenAPIDefinitionsForResources(config, models...)
	if err != nil {
		t.Fatal(err)
	}
	types, err := managedfields.NewTypeConverter(schemas, false)
	if err != nil {
		t.Fatal(err)
	}
	return types
}
