// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package binder

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
)

// resource is one of our resources as its own store keeps it: under which key and in what form. It does to an object what the store of
// k8s.io/apiserver does, so that either reads what the other wrote.
type resource struct {
	config storagebackend.ConfigForResource
	// prefix is that of the resource's keys, with a leading slash and without the prefix of all keys.
	prefix string
	// version is the external version that binding works on.
	version schema.GroupVersion
	// storage is the resource's own, with its watch cache.
	storage storage.Interface

	transformer value.Transformer
	decoder     etcd3.Decoder
}

func newResource(config storagebackend.ConfigForResource, prefix string, storage storage.Interface) *resource {
	transformer := config.Transformer
	if transformer == nil {
		transformer = identity.NewEncryptCheckTransformer()
	}
	return &resource{
		config:      config,
		prefix:      prefix,
		version:     schema.GroupVersion{Group: config.GroupResource.Group, Version: "v1beta1"},
		storage:     storage,
		transformer: transformer,
		decoder:     etcd3.NewDefaultDecoder(config.Codec, storage.Versioner()),
	}
}

// key returns the key of an object as the storage takes it.
func (r *resource) key(namespace, name string) string { return r.prefix + "/" + namespace + "/" + name }

// etcdKey returns the key in etcd that a key of the storage stands for.
func (r *resource) etcdKey(key string) string {
	return path.Join("/", r.config.Prefix) + "/" + strings.TrimPrefix(key, "/")
}

// encoded is an object in the two forms that matter: as it goes to etcd, and as it is before that is encrypted.
type encoded struct {
	key    string
	stored string
	plain  []byte
}

// encode returns what is to be stored of an object, in any version, under a key of etcd. It takes the resourceVersion from the object,
// which is not stored.
func (r *resource) encode(ctx context.Context, etcdKey string, obj runtime.Object) (encoded, error) {
	if err := r.storage.Versioner().PrepareObjectForStorage(obj); err != nil {
		return encoded{}, fmt.Errorf("preparing for storage: %w", err)
	}
	plain, err := runtime.Encode(r.config.Codec, obj)
	if err != nil {
		return encoded{}, err
	}
	// The key is authenticated with the value: a value that was copied to another key does not decrypt.
	stored, err := r.transformer.TransformToStorage(ctx, plain, value.DefaultContext(etcdKey))
	if err != nil {
		return encoded{}, storage.NewInternalError(err)
	}
	return encoded{key: etcdKey, stored: string(stored), plain: plain}, nil
}

// decode reads what was stored under a key of etcd at a revision into obj, which is of the internal version.
func (r *resource) decode(ctx context.Context, etcdKey string, stored []byte, revision int64, obj runtime.Object) error {
	plain, _, err := r.transformer.TransformFromStorage(ctx, stored, value.DefaultContext(etcdKey))
	if err != nil {
		return storage.NewInternalError(err)
	}
	return r.decoder.Decode(plain, obj, revision)
}

// sameServers says whether two resources are in the same etcd, as far as the settings tell.
func sameServers(a, b *resource) bool {
	left, right := a.config.Transport, b.config.Transport
	return slices.Equal(left.ServerList, right.ServerList) &&
		left.KeyFile == right.KeyFile && left.CertFile == right.CertFile && left.TrustedCAFile == right.TrustedCAFile
}
