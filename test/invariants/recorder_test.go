// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/invariants/history"
)

// recorder keeps the record of all that etcd ever held.
type recorder struct {
	*history.Record
	etcd *clientv3.Client
	// revision is how far the record has come.
	revision atomic.Int64
}

// run adds to the record until ctx ends. It calls fail with every violation, and returns an error if the record cannot be kept.
func (r *recorder) run(ctx context.Context, fail func(...history.Violation)) error {
	// All keys are watched, so that every revision is seen.
	for response := range r.etcd.Watch(ctx, "", clientv3.WithPrefix(), clientv3.WithRev(1)) {
		if err := response.Err(); err != nil {
			return err
		}
		transactions, err := history.Decode(response.Events)
		if err != nil {
			return err
		}
		for _, transaction := range transactions {
			fail(r.Apply(transaction)...)
		}
		if n := len(response.Events); n > 0 {
			r.revision.Store(response.Events[n-1].Kv.ModRevision)
		}
	}
	if ctx.Err() == nil {
		return errors.New("the watch of etcd ended")
	}
	return nil
}

// catchUp waits until the record has all that is in etcd now.
func (r *recorder) catchUp(t framework.T) {
	t.Helper()
	want, err := framework.Revision(t.Context(), r.etcd)
	if err != nil {
		t.Fatalf("revision of etcd: %v", err)
	}
	framework.Eventually(t, framework.Patience, "record of the present revision", func(context.Context) error {
		if got := r.revision.Load(); got < want {
			return fmt.Errorf("the record has come to %d of %d", got, want)
		}
		return nil
	})
}
