// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package binder

import (
	clientv3 "go.etcd.io/etcd/client/v3"
)

// WrapKV puts something between a Binder and etcd.
func (b *Binder) WrapKV(wrap func(clientv3.KV) clientv3.KV) { b.kv = wrap(b.kv) }

// BindInTwoSteps makes a Binder do as if it were refused transactions.
func (b *Binder) BindInTwoSteps() { b.twoSteps.Store(true) }

// BindsInTwoSteps says whether a Binder was refused transactions.
func (b *Binder) BindsInTwoSteps() bool { return b.twoSteps.Load() }

// Candidates returns the number of Sandboxes of a pool that can be given away now.
func (b *Binder) Candidates(namespace, pool string) int {
	for _, count := range b.candidates.counts() {
		if count.pool.Namespace == namespace && count.pool.Name == pool {
			return count.candidates
		}
	}
	return 0
}
