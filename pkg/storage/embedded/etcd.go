// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package embedded runs a single etcd member inside the process, for installations with one replica of the server. It listens on a
// unix socket in its own data directory and nowhere else, so the permissions of that directory are all its access control.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/klog/v2"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/storage/etcdclient"
)

// Config says where and how the member keeps its data.
type Config struct {
	// DataDir holds the database, the write-ahead log and the socket. It is made if it is missing.
	DataDir string
	// QuotaBackendBytes is the size of the database at which writes are refused. 0 means etcd's default of 2 GiB.
	QuotaBackendBytes int64
	// UnsafeNoFsync trades durability for speed. For tests only.
	UnsafeNoFsync bool
}

// Server is a running member.
type Server struct {
	etcd     *embed.Etcd
	endpoint string
	// stopping silences what etcd calls errors when its listeners are closed on purpose.
	stopping atomic.Bool
}

// Start starts the member and waits until it serves. It fails if the directory cannot be used, is in use by another process, or
// ctx ends first.
func Start(ctx context.Context, config Config) (*Server, error) {
	dir, err := filepath.Abs(config.DataDir)
	if err != nil {
		return nil, fmt.Errorf("data directory %q: %w", config.DataDir, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the data directory: %w", err)
	}
	socket := filepath.Join(dir, "client.sock")
	server := &Server{endpoint: "unix://" + socket}
	server.etcd, err = embed.StartEtcd(memberConfig(dir, socket, config, newLogger(&server.stopping)))
	if err != nil {
		return nil, fmt.Errorf("starting embedded etcd in %s: %w", dir, err)
	}
	select {
	case <-server.etcd.Server.ReadyNotify():
		return server, nil
	case err := <-server.etcd.Err():
		server.Stop()
		return nil, fmt.Errorf("embedded etcd in %s: %w", dir, err)
	case <-ctx.Done():
		server.Stop()
		return nil, fmt.Errorf("embedded etcd in %s did not become ready: %w", dir, context.Cause(ctx))
	}
}

func memberConfig(dir, socket string, config Config, logger *zap.Logger) *embed.Config {
	cfg := embed.NewConfig()
	cfg.Dir = dir
	cfg.QuotaBackendBytes = config.QuotaBackendBytes
	cfg.UnsafeNoFsync = config.UnsafeNoFsync
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(logger)
	cfg.EnableGRPCGateway = false
	// The command line of etcd sets this default, the library does not: left at 0 every request would count as slow.
	cfg.WarningUnaryRequestDuration = embed.DefaultWarningUnaryRequestDuration

	client := url.URL{Scheme: "unix", Path: socket}
	cfg.ListenClientUrls = []url.URL{client}
	// A single member has no peers to listen to.
	cfg.ListenPeerUrls = nil
	// The member list must hold addresses of the form host:port. Nobody dials them.
	cfg.AdvertiseClientUrls = []url.URL{{Scheme: "http", Host: "localhost:2379"}}
	cfg.AdvertisePeerUrls = []url.URL{{Scheme: "http", Host: "localhost:2380"}}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	return cfg
}

// Endpoint returns the address for clients, in the form that --etcd-servers takes.
func (s *Server) Endpoint() string { return s.endpoint }

// NewClient returns a client of the etcd that the settings are for. If that is the member in this process it calls the member directly, not
// through the socket; otherwise it is what etcdclient.New returns. The caller closes it before Stop; closing may return context.Canceled.
func (s *Server) NewClient(config storagebackend.TransportConfig) (*clientv3.Client, error) {
	if slices.Equal(config.ServerList, []string{s.endpoint}) {
		return v3client.New(s.etcd.Server), nil
	}
	return etcdclient.New(config)
}

// Err returns the channel on which a failure of the running member is reported.
func (s *Server) Err() <-chan error { return s.etcd.Err() }

// Stop stops the member and closes its database. Clients must have finished before: what they still send fails.
func (s *Server) Stop() {
	s.stopping.Store(true)
	s.etcd.Close()
}

// newLogger passes etcd's warnings and errors on to klog. Its info level is a commentary on raft that operators of one member have
// no use for.
func newLogger(stopping *atomic.Bool) *zap.Logger {
	config := zap.NewProductionEncoderConfig()
	config.TimeKey, config.LevelKey, config.CallerKey = zapcore.OmitKey, zapcore.OmitKey, zapcore.OmitKey
	encoder := zapcore.NewConsoleEncoder(config)
	logger := klog.Background().WithName("etcd")
	warnings := zap.LevelEnablerFunc(func(level zapcore.Level) bool { return level == zap.WarnLevel })
	errorsWhileRunning := zap.LevelEnablerFunc(func(level zapcore.Level) bool { return level >= zap.ErrorLevel && !stopping.Load() })
	return zap.New(zapcore.NewTee(
		zapcore.NewCore(encoder, lineWriter(func(line string) { logger.Info("Embedded etcd warns", "warning", line) }), warnings),
		zapcore.NewCore(encoder, lineWriter(func(line string) { logger.Error(errors.New(line), "Embedded etcd reports an error") }), errorsWhileRunning),
	))
}

// lineWriter hands each line that zap writes to a function.
type lineWriter func(line string)

func (w lineWriter) Write(line []byte) (int, error) {
	w(strings.TrimSpace(string(line)))
	return len(line), nil
}

func (lineWriter) Sync() error { return nil }
