// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package factory decides where and in what form each resource is stored.
package factory

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
)

// EtcdPrefix is the prefix of every key of ours. It is frozen: another one would hide all stored objects.
const EtcdPrefix = "/registry/sandbox-apiserver"

// storageFactory keeps each resource under <group>/<resource>, so that equal resource names of two groups never meet. The layout is
// frozen for the same reason as EtcdPrefix.
type storageFactory struct {
	*serverstorage.DefaultStorageFactory
}

// New returns a factory that stores every resource in its group's preferred version, in the given media type.
func New(config storagebackend.Config, mediaType string, scheme *runtime.Scheme, serializer runtime.StorageSerializer) serverstorage.StorageFactory {
	return storageFactory{serverstorage.NewDefaultStorageFactory(config, mediaType, serializer,
		serverstorage.NewDefaultResourceEncodingConfig(scheme), serverstorage.NewResourceConfig(), nil)}
}

// ResourcePrefix returns the part of a resource's keys that follows EtcdPrefix.
func (storageFactory) ResourcePrefix(resource schema.GroupResource) string {
	return resource.Group + "/" + resource.Resource
}
