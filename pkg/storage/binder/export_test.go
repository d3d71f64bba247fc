// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package binder

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
)

// WrapKV puts something between a Binder and etcd.
func (b *Binder) WrapKV(wrap func(clientv3.KV) clientv3.KV) { b.kv = wrap(b.kv) }

// WrapStorage puts something between a Binder and the storage of a resource. Requests do not pass through it.
func (b *Binder) WrapStorage(resource schema.GroupResource, wrap func(storage.Interface) storage.Interface) {
	b.resources[resource].storage = wrap(b.resources[resource].storage)
}

// Announce announces at once that a claim was bound at a time.
func (b *Binder) Announce(ctx context.Context, claim *extensions.SandboxClaim, at time.Time) error {
	key := b.resources[claimResource].key(claim.Namespace, claim.Name)
	return b.announce(ctx, announcement{key: key, uid: claim.UID, at: at})
}

// Crowd lets the Binder think that so many more claims are being created, until the returned function is called.
func (b *Binder) Crowd(n int) (leave func()) {
	b.creating.Add(int64(n))
	return func() { b.creating.Add(-int64(n)) }
}
