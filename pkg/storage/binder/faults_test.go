// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package binder_test

import (
	"context"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/claimtest"
)

// commit asks etcd for the answer to a transaction.
type commit func() (*clientv3.TxnResponse, error)

// interception decides what answer the binder gets to a transaction, and when etcd is asked.
type interception func(ctx context.Context, ask commit) (*clientv3.TxnResponse, error)

// interceptor sits between a binder and etcd. It counts transactions, and lets others have their way with them. Those that write are told
// from those that find out what became of one.
type interceptor struct {
	clientv3.KV

	mu            sync.Mutex
	onWrite       interception
	onRead        interception
	writes, reads int
}

// intercept puts an interceptor between the server's binder and etcd.
func intercept(s *claimtest.Server) *interceptor {
	i := &interceptor{}
	s.Binder.WrapKV(func(kv clientv3.KV) clientv3.KV {
		i.KV = kv
		return i
	})
	return i
}

// set replaces what is done with transactions. Nil lets them pass.
func (i *interceptor) set(onWrite, onRead interception) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.onWrite, i.onRead = onWrite, onRead
}

func (i *interceptor) counts() (writes, reads int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.writes, i.reads
}

func (i *interceptor) Txn(ctx context.Context) clientv3.Txn {
	return &interceptedTxn{Txn: i.KV.Txn(ctx), ctx: ctx, interceptor: i}
}

type interceptedTxn struct {
	clientv3.Txn
	ctx         context.Context
	interceptor *interceptor
	conditional bool
}

func (t *interceptedTxn) If(comparisons ...clientv3.Cmp) clientv3.Txn {
	t.Txn, t.conditional = t.Txn.If(comparisons...), true
	return t
}

func (t *interceptedTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	t.Txn = t.Txn.Then(ops...)
	return t
}

func (t *interceptedTxn) Else(ops ...clientv3.Op) clientv3.Txn {
	t.Txn = t.Txn.Else(ops...)
	return t
}

func (t *interceptedTxn) Commit() (*clientv3.TxnResponse, error) {
	i := t.interceptor
	i.mu.Lock()
	intercept := i.onRead
	if t.conditional {
		intercept = i.onWrite
		i.writes++
	} else {
		i.reads++
	}
	i.mu.Unlock()
	if intercept == nil {
		return t.Txn.Commit()
	}
	return intercept(t.ctx, t.Txn.Commit)
}
