// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package binder

import (
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
)

// WrapKV puts something between a Binder and etcd.
func (b *Binder) WrapKV(wrap func(clientv3.KV) clientv3.KV) { b.kv = wrap(b.kv) }

// WrapStorage puts something between a Binder and the storage of a resource. Requests do not pass through it.
func (b *Binder) WrapStorage(resource schema.GroupResource, wrap func(storage.Interface) storage.Interface) {
	b.resources[resource].storage = wrap(b.resources[resource].storage)
}
