// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package etcdclient makes clients of the etcd that serves the resources, for what k8s.io/apiserver's own storage does not offer.
package etcdclient

import (
	"context"
	"fmt"
	"net"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"k8s.io/apiserver/pkg/server/egressselector"
	"k8s.io/apiserver/pkg/storage/storagebackend"
)

const (
	// keepaliveTime and keepaliveTimeout are those of the clients that k8s.io/apiserver makes for the resources, so that a dead peer
	// is noticed here no later than there.
	keepaliveTime    = 30 * time.Second
	keepaliveTimeout = 10 * time.Second
)

// New returns a client of the etcd that serves the resources, given the same settings. k8s.io/apiserver exports no constructor
// of its own clients. New does not wait for a connection; it fails if the settings cannot be used. The caller closes the client.
func New(config storagebackend.TransportConfig) (*clientv3.Client, error) {
	options := clientv3.Config{
		Endpoints:            config.ServerList,
		DialKeepAliveTime:    keepaliveTime,
		DialKeepAliveTimeout: keepaliveTimeout,
		// All that the client would log are errors that it returns as well.
		Logger: zap.NewNop(),
	}
	// A TLS configuration, be it an empty one, would make the client insist on TLS.
	if config.CertFile != "" || config.KeyFile != "" || config.TrustedCAFile != "" {
		info := transport.TLSInfo{CertFile: config.CertFile, KeyFile: config.KeyFile, TrustedCAFile: config.TrustedCAFile}
		tls, err := info.ClientConfig()
		if err != nil {
			return nil, fmt.Errorf("TLS for etcd %v: %w", config.ServerList, err)
		}
		options.TLS = tls
	}
	if config.EgressLookup != nil {
		dial, err := config.EgressLookup(egressselector.Etcd.AsNetworkContext())
		if err != nil {
			return nil, fmt.Errorf("egress to etcd %v: %w", config.ServerList, err)
		}
		if dial != nil {
			overTCP := func(ctx context.Context, address string) (net.Conn, error) { return dial(ctx, "tcp", address) }
			options.DialOptions = append(options.DialOptions, grpc.WithContextDialer(overTCP))
		}
	}
	client, err := clientv3.New(options)
	if err != nil {
		return nil, fmt.Errorf("client of etcd %v: %w", config.ServerList, err)
	}
	return client, nil
}
