// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package factory decides where and in what form each resource is stored.
package factory

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
)

// EtcdPrefix is the prefix of every key of ours. It is frozen: another one would hide all stored objects.
const EtcdPrefix = "/registry/sandbox-apiserver"

// storageFactory keeps each resource under <group>/<resource>, so that equal resource names of two groups never meet. The layout is
// frozen for the same reason as EtcdPrefix.
type storageFactory struct {
	*serverstorage.DefaultStorageFactory
}

// New returns a factory that stores every resource in its group's preferred version, where and in the media type that the options say. It
// fails if the servers that they name for single resources cannot be understood.
func New(options *genericoptions.EtcdOptions, scheme *runtime.Scheme, serializer runtime.StorageSerializer) (serverstorage.StorageFactory, error) {
	factory := serverstorage.NewDefaultStorageFactory(options.StorageConfig, options.DefaultStorageMediaType, serializer,
		serverstorage.NewDefaultResourceEncodingConfig(scheme), serverstorage.NewResourceConfig(), nil)
	// The library checks the health of these servers, and leaves it to whoever makes the factory to use them.
	overrides, err := genericoptions.ParseEtcdServersOverrides(options.EtcdServersOverrides)
	if err != nil {
		return nil, err
	}
	for _, override := range overrides {
		factory.SetEtcdLocation(override.GroupResource, override.Servers)
	}
	return storageFactory{factory}, nil
}

// ResourcePrefix returns the part of a resource's keys that follows EtcdPrefix.
func (storageFactory) ResourcePrefix(resource schema.GroupResource) string {
	return resource.Group + "/" + resource.Resource
}
