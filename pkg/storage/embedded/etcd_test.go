// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"os"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// shortTempDir makes a directory whose path leaves room for a socket in it: unix socket paths end at 108 bytes.
func shortTempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "etcd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func start(t *testing.T, dir string) (*Server, *clientv3.Client) {
	t.Helper()
	server, err := Start(t.Context(), Config{DataDir: dir, UnsafeNoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Endpoint()}})
	if err != nil {
		t.Fatal(err)
	}
	return server, client
}

func stop(t *testing.T, server *Server, client *clientv3.Client) {
	t.Helper()
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	server.Stop()
}

func TestDataOutlivesRestart(t *testing.T) {
	dir := shortTempDir(t)
	server, client := start(t, dir)
	if _, err := client.Put(t.Context(), "key", "value"); err != nil {
		t.Fatal(err)
	}
	stop(t, server, client)

	server, client = start(t, dir)
	defer stop(t, server, client)
	got, err := client.Get(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Kvs) != 1 || string(got.Kvs[0].Value) != "value" {
		t.Errorf("after a restart key is %v, want value", got.Kvs)
	}
}

func TestListensOnNoNetwork(t *testing.T) {
	server, client := start(t, shortTempDir(t))
	defer stop(t, server, client)
	for _, listener := range server.etcd.Clients {
		if network := listener.Addr().Network(); network != "unix" {
			t.Errorf("listens on %s %s, want unix sockets alone", network, listener.Addr())
		}
	}
	if len(server.etcd.Peers) != 0 {
		t.Errorf("has %d peer listeners, want none", len(server.etcd.Peers))
	}
}

func TestStartFailsOnUnusableDirectory(t *testing.T) {
	file := shortTempDir(t) + "/file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if server, err := Start(t.Context(), Config{DataDir: file}); err == nil {
		server.Stop()
		t.Error("started on a file, want an error")
	}
}
