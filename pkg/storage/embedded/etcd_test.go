// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apiserver/pkg/storage/storagebackend"
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

// TestNewClient compares clients of the member in the process, and of another one, with a client that connects to it.
func TestNewClient(t *testing.T) {
	server, connected := start(t, shortTempDir(t))
	defer stop(t, server, connected)
	other, connectedToOther := start(t, shortTempDir(t))
	defer stop(t, other, connectedToOther)
	for name, test := range map[string]struct {
		endpoint string
		same     *clientv3.Client
	}{
		"of the member":  {server.Endpoint(), connected},
		"of another one": {other.Endpoint(), connectedToOther},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := server.NewClient(storagebackend.TransportConfig{ServerList: []string{test.endpoint}})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := client.Close(); err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			}()
			response, err := client.Txn(t.Context()).If(clientv3.Compare(clientv3.ModRevision("key"), "=", 0)).Then(clientv3.OpPut("key", name)).Commit()
			if err != nil || !response.Succeeded {
				t.Fatalf("the transaction: %v, %v", response, err)
			}
			got, err := test.same.Get(t.Context(), "key")
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Kvs) != 1 || string(got.Kvs[0].Value) != name || got.Kvs[0].ModRevision != response.Header.Revision {
				t.Errorf("key is %v, want %q at revision %d", got.Kvs, name, response.Header.Revision)
			}
			if _, err := client.Put(t.Context(), "key", strings.Repeat("x", 1800<<10)); !errors.Is(err, rpctypes.ErrRequestTooLarge) {
				t.Errorf("a value of 1.8 MiB: %v, want %v", err, rpctypes.ErrRequestTooLarge)
			}
		})
	}
}
