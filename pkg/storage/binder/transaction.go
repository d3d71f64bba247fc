// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package binder

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/etcd3/metrics"
)

// errRefused means that etcd, or what stands for it, does not make transactions of the kind that binding needs. Nothing was written.
var errRefused = errors.New("the transaction was refused")

// transaction writes a claim together with the Sandbox that it is given, or neither. The objects are of two resources: a watch that goes
// on after a revision would lose the second of two objects of one resource.
type transaction struct {
	claim, sandbox encoded
	// claimRevision is the one that the claim must be at, 0 if it must not exist.
	claimRevision int64
	// sandboxRevision is the one that the Sandbox must be at.
	sandboxRevision int64
	// poolKey must exist, as it was created no later than poolRevision: a pool of the same name that was made since is another one.
	poolKey      string
	poolRevision int64
}

// size returns the number of bytes that are to be stored.
func (t transaction) size() int { return len(t.claim.stored) + len(t.sandbox.stored) }

// verdict is the answer to a transaction.
type verdict struct {
	committed bool
	// revision is that of the writes, or that at which nothing was written.
	revision int64
	// claimMoved says that the claim is not at the revision that it must be at.
	claimMoved bool
	// poolGone says that the pool is not there any more.
	poolGone bool
	// sandboxRevision is the current one of the Sandbox, 0 if it is gone.
	sandboxRevision int64
}

// commit makes the transaction. After errRefused nothing was written; after any other error nobody knows.
func (t transaction) commit(ctx context.Context, kv clientv3.KV, resource schema.GroupResource) (verdict, error) {
	verb := "create"
	if t.claimRevision != 0 {
		verb = "update"
	}
	start := time.Now()
	response, err := kv.Txn(ctx).If(
		clientv3.Compare(clientv3.ModRevision(t.claim.key), "=", t.claimRevision),
		clientv3.Compare(clientv3.ModRevision(t.sandbox.key), "=", t.sandboxRevision),
		clientv3.Compare(clientv3.CreateRevision(t.poolKey), ">", 0),
		clientv3.Compare(clientv3.CreateRevision(t.poolKey), "<", t.poolRevision+1),
	).Then(
		clientv3.OpPut(t.claim.key, t.claim.stored),
		clientv3.OpPut(t.sandbox.key, t.sandbox.stored),
	).Else(
		clientv3.OpGet(t.claim.key, clientv3.WithKeysOnly()),
		clientv3.OpGet(t.sandbox.key, clientv3.WithKeysOnly()),
		clientv3.OpGet(t.poolKey, clientv3.WithKeysOnly()),
	).Commit()
	metrics.RecordEtcdRequest(verb, resource, err, start)
	if err != nil {
		if isRefusal(err) {
			return verdict{}, errors.Join(errRefused, err)
		}
		return verdict{}, err
	}
	if response.Succeeded {
		return verdict{committed: true, revision: response.Header.Revision}, nil
	}
	created, _ := revisions(response, 2)
	_, claim := revisions(response, 0)
	_, sandbox := revisions(response, 1)
	return verdict{
		revision:        response.Header.Revision,
		claimMoved:      claim != t.claimRevision,
		poolGone:        created == 0 || created > t.poolRevision,
		sandboxRevision: sandbox,
	}, nil
}

// revisions returns those of the key that the i-th operation has read, 0 if there is none.
func revisions(response *clientv3.TxnResponse, i int) (created, modified int64) {
	kvs := response.Responses[i].GetResponseRange().Kvs
	if len(kvs) == 0 {
		return 0, 0
	}
	return kvs[0].CreateRevision, kvs[0].ModRevision
}

// isRefusal says whether an error means that the request was looked at and not carried out. Of any other error etcd may have written
// before it, or may yet write.
func isRefusal(err error) bool {
	code := status.Code(err)
	var coded interface{ Code() codes.Code }
	if errors.As(err, &coded) {
		code = coded.Code()
	}
	return code == codes.InvalidArgument || code == codes.Unimplemented
}
