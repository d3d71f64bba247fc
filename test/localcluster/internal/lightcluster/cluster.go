// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package lightcluster runs a control plane whose nodes are simulated by kwok:
// everything on 127.0.0.1, started in seconds, as many at once as there are
// directories and ports for.
//
// Pods of simulated nodes become ready but run nothing. Their addresses belong
// to this machine, so that a test can serve at a pod's address and nothing sent
// to one leaves the machine; an exec runs the command as a process of the host.
package lightcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/build"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/cluster"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/controlplane"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/filelock"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/fsys"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/kube"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/process"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/progress"
)

// Cluster is the light cluster of a directory, running or not.
type Cluster struct {
	cluster.Cluster
	dir string
}

// Options are what a user chooses about a cluster.
type Options struct {
	// Port is the API server's; the ports after it are used too, see offsets.
	Port uint16
	// Nodes is the number of simulated nodes.
	Nodes int
}

// New returns the light cluster of a directory, which must be absolute.
func New(dir string, report *progress.Reporter) Cluster {
	return Cluster{
		Cluster: cluster.Cluster{
			Group:           process.Group{Records: filepath.Join(dir, "processes"), Logs: filepath.Join(dir, "log")},
			FingerprintFile: filepath.Join(dir, "fingerprint"),
			Report:          report,
		},
		dir: dir,
	}
}

// owned are the entries of the directory that belong to a cluster and go with it.
var owned = []string{
	"audit", "audit-policy.yaml", "etcd", "fingerprint", "kwok.yaml", "log", "pki", "port", "processes", sandboxEtcd, ExternalEtcd,
}

// Up makes sure that the cluster runs, and writes its administrator's kubeconfig
// to a file.
func (c Cluster) Up(ctx context.Context, o Options, binaries *build.Binaries, kubeconfig string) error {
	lock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Release()
	p, err := newPlan(c.config(o, binaries), o, binaries)
	if err != nil {
		return err
	}
	if err := c.healthy(ctx, p, c.config(o, binaries)); err == nil {
		c.Report.Line("the cluster is up")
		return c.writeKubeconfig(kubeconfig)
	} else if c.exists() {
		c.Report.Line("replacing the cluster that is there: %v", err)
		if err := c.remove(ctx); err != nil {
			return err
		}
	}
	if err := c.start(ctx, p, c.config(o, binaries)); err != nil {
		return err
	}
	return c.writeKubeconfig(kubeconfig)
}

// Down removes the cluster. It is no error if there is none.
func (c Cluster) Down(ctx context.Context) error {
	lock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Remove()
	return c.remove(ctx)
}

// lock makes those who start and stop the cluster of one directory take turns.
func (c Cluster) lock(ctx context.Context) (*filelock.Lock, error) {
	ctx, cancel := context.WithTimeout(ctx, cluster.LockTimeout)
	defer cancel()
	var lock *filelock.Lock
	err := c.Report.Track("waiting for another localcluster", nil, func() (err error) {
		lock, err = filelock.Acquire(ctx, filepath.Join(registryDir, registryKey(c.dir)+".lock"))
		return err
	})
	return lock, err
}

// healthy returns nil if the running cluster is the planned one and works.
func (c Cluster) healthy(ctx context.Context, p cluster.Plan, config controlplane.Config) error {
	if err := c.Completed(p); err != nil {
		return err
	}
	client, err := kube.NewClient(config.PKI(), config.Server())
	if err != nil {
		return err
	}
	return client.Ready(ctx)
}

// exists reports whether a cluster was ever started in the directory.
func (c Cluster) exists() bool {
	_, err := os.Stat(c.portFile())
	return err == nil
}

// start starts the cluster where there is none.
func (c Cluster) start(ctx context.Context, p cluster.Plan, config controlplane.Config) error {
	ctx, cancel := context.WithTimeoutCause(ctx, cluster.ReadyTimeout,
		fmt.Errorf("not ready after %s", cluster.ReadyTimeout))
	defer cancel()
	client, err := c.prepare(ctx, p, config)
	if err != nil {
		return err
	}
	c.Report.Line("certificates made")
	if err := c.startAll(p.First); err != nil {
		return err
	}
	if err := c.Await(ctx, controlplane.APIServer, func() error { return client.Ready(ctx) }); err != nil {
		return err
	}
	c.Report.Line("kube-apiserver is ready")
	if err := c.startAll(p.Then); err != nil {
		return err
	}
	if err := client.ApplyAll(ctx, p.Objects); err != nil {
		return err
	}
	if err := c.awaitUsable(ctx, client, config.Nodes); err != nil {
		return err
	}
	return c.Complete(p)
}

// awaitUsable waits until pods can be created and become ready.
func (c Cluster) awaitUsable(ctx context.Context, client *kube.Client, nodes []string) error {
	for _, node := range nodes {
		err := c.Await(ctx, kwok, func() error { return client.Condition(ctx, nodePath(node), "Ready") })
		if err != nil {
			return err
		}
	}
	c.Report.Line("%d simulated node(s) ready", len(nodes))
	err := c.Await(ctx, controlplane.ControllerManager, func() error {
		return client.Exists(ctx, kube.DefaultServiceAccount)
	})
	if err != nil {
		return err
	}
	c.Report.Line("the default service account is there")
	return nil
}

// prepare makes everything but processes.
func (c Cluster) prepare(ctx context.Context, p cluster.Plan, config controlplane.Config) (*kube.Client, error) {
	if err := os.MkdirAll(filepath.Dir(config.AuditLog()), 0o755); err != nil {
		return nil, err
	}
	port := strconv.Itoa(int(config.APIServer.Port()))
	if err := os.WriteFile(c.portFile(), []byte(port), 0o644); err != nil {
		return nil, err
	}
	if err := p.WriteFiles(); err != nil {
		return nil, err
	}
	if err := config.WritePKI(); err != nil {
		return nil, err
	}
	if err := register(ctx, c.dir); err != nil {
		return nil, fmt.Errorf("routes of simulated pods: %w", err)
	}
	return kube.NewClient(config.PKI(), config.Server())
}

func (c Cluster) startAll(specs []process.Spec) error {
	for _, spec := range specs {
		if _, err := c.Group.Start(spec); err != nil {
			return err
		}
	}
	return nil
}

// remove ends all processes, the product's too, and removes what belongs to the
// cluster. Other files in the directory are not touched.
func (c Cluster) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cluster.DownTimeout)
	defer cancel()
	if err := c.KillAll(ctx, controlplane.Etcd); err != nil {
		return err
	}
	c.Report.Line("processes of the cluster ended")
	var errs []error
	for _, name := range owned {
		errs = append(errs, os.RemoveAll(filepath.Join(c.dir, name)))
	}
	os.Remove(c.dir) // It stays if it has other files.
	return errors.Join(append(errs, unregister(ctx, c.dir))...)
}

func (c Cluster) portFile() string { return filepath.Join(c.dir, "port") }

// port reads the API server's port of a cluster that was started.
func (c Cluster) port() (uint16, error) {
	data, err := os.ReadFile(c.portFile())
	if err != nil {
		return 0, fmt.Errorf("no light cluster in %s: %w", c.dir, err)
	}
	port, err := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 16)
	return uint16(port), err
}

func (c Cluster) pki() string { return controlplane.Config{Dir: c.dir}.PKI() }

func (c Cluster) adminKubeconfig() string { return filepath.Join(c.pki(), "admin.kubeconfig") }

func (c Cluster) writeKubeconfig(to string) error {
	if to == "" {
		return nil
	}
	return fsys.CopyPrivate(c.adminKubeconfig(), to)
}
