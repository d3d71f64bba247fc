// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/storage/embedded"
)

func TestTransactions(t *testing.T) {
	server, err := embedded.Start(t.Context(), embedded.Config{DataDir: filepath.Join(t.TempDir(), "etcd"), UnsafeNoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	etcd, err := NewEtcd(server.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	defer etcd.Close()
	begin, err := Revision(t.Context(), etcd)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Transactions(t.Context(), etcd, begin); len(got) != 0 || err != nil {
		t.Errorf("before anything is written: %v, %v", got, err)
	}
	for _, ops := range [][]clientv3.Op{
		{clientv3.OpPut("a", "1")},
		{clientv3.OpPut("a", "2"), clientv3.OpPut("b", "1")},
		{clientv3.OpGet("a")},
		{clientv3.OpDelete("a")},
	} {
		if _, err := etcd.Txn(t.Context()).Then(ops...).Commit(); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Transactions(t.Context(), etcd, begin)
	if err != nil {
		t.Fatal(err)
	}
	want := []Transaction{{begin + 1, []string{"a"}}, {begin + 2, []string{"a", "b"}}, {begin + 3, []string{"a"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("transactions differ (-want +got):\n%s", diff)
	}
}
