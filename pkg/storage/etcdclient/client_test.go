// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package etcdclient

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/server/egressselector"
	"k8s.io/apiserver/pkg/storage/storagebackend"
)

func TestNewRejectsUnusableSettings(t *testing.T) {
	for name, config := range map[string]storagebackend.TransportConfig{
		"missing CA file":     {ServerList: []string{"https://localhost:2379"}, TrustedCAFile: "testdata/missing.crt"},
		"certificate, no key": {ServerList: []string{"https://localhost:2379"}, CertFile: "testdata/missing.crt"},
		"egress lookup fails": {ServerList: []string{"http://localhost:2379"}, EgressLookup: func(egressselector.NetworkContext) (utilnet.DialFunc, error) {
			return nil, errors.New("no such egress")
		}},
		"no servers": {},
	} {
		t.Run(name, func(t *testing.T) {
			if client, err := New(config); err == nil {
				t.Error("New() succeeded, want an error")
				if err := client.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestClientDialsThroughTheEtcdEgress(t *testing.T) {
	dialed := make(chan string, 16)
	config := storagebackend.TransportConfig{
		ServerList: []string{"http://etcd.example:2379"},
		EgressLookup: func(network egressselector.NetworkContext) (utilnet.DialFunc, error) {
			if network != egressselector.Etcd.AsNetworkContext() {
				t.Errorf("egress is looked up for %v, want etcd", network)
			}
			return func(_ context.Context, network, address string) (net.Conn, error) {
				select {
				case dialed <- network + " " + address:
				default:
				}
				return nil, errors.New("refused")
			}, nil
		},
	}
	client, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}()
	client.ActiveConnection().Connect()
	if got := <-dialed; !strings.HasPrefix(got, "tcp etcd.example:2379") {
		t.Errorf("dialed %q, want tcp etcd.example:2379", got)
	}
}
