// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package binder

import (
	clientv3 "go.etcd.io/etcd/client/v3"
)

// WrapKV puts something between a Binder and etcd.
func (b *Binder) WrapKV(wrap func(clientv3.KV) clientv3.KV) { b.kv = wrap(b.kv) }
