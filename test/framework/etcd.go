// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"errors"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// NewEtcd returns a client of an etcd, which the caller closes. The endpoint is that of LightCluster.EmbeddedEtcd, or the URL of an
// ExternalEtcd.
func NewEtcd(endpoint string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{endpoint}})
}

// Revision returns the revision of an etcd. Every transaction that writes anything adds 1.
func Revision(ctx context.Context, etcd *clientv3.Client) (int64, error) {
	response, err := etcd.Get(ctx, "\x00", clientv3.WithCountOnly())
	if err != nil {
		return 0, err
	}
	return response.Header.Revision, nil
}

// Transaction is what was written to an etcd at once.
type Transaction struct {
	Revision int64
	// Keys were put or deleted.
	Keys []string
}

// Transactions returns everything that was written to an etcd after a revision and until now, in order, by whomever: servers also
// write keys of their own, at any time. It fails if a part of that was compacted.
func Transactions(ctx context.Context, etcd *clientv3.Client, after int64) ([]Transaction, error) {
	now, err := Revision(ctx, etcd)
	if err != nil || now <= after {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var transactions []Transaction
	// Every revision has an event if all keys are watched, so the watch comes to the present one.
	for response := range etcd.Watch(ctx, "", clientv3.WithPrefix(), clientv3.WithRev(after+1)) {
		if err := response.Err(); err != nil {
			return nil, err
		}
		for _, event := range response.Events {
			revision := event.Kv.ModRevision
			if revision > now {
				return transactions, nil
			}
			if n := len(transactions); n == 0 || transactions[n-1].Revision != revision {
				transactions = append(transactions, Transaction{Revision: revision})
			}
			last := &transactions[len(transactions)-1]
			last.Keys = append(last.Keys, string(event.Kv.Key))
		}
		if n := len(transactions); n > 0 && transactions[n-1].Revision == now {
			return transactions, nil
		}
	}
	return nil, errors.Join(ctx.Err(), errors.New("the watch ended before the present revision"))
}
