// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package realcluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/build"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/cluster"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/controlplane"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/filelock"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/fsys"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/kube"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/poll"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/process"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/progress"
)

const nodeURL = "/api/v1/nodes/" + nodeName

// Cluster is the machine's real cluster, running or not.
type Cluster struct {
	cluster.Cluster
}

// New returns the machine's real cluster.
func New(report *progress.Reporter) Cluster {
	return Cluster{cluster.Cluster{
		// Records are in runDir, so that there are none after a reboot.
		Group:           process.Group{Records: filepath.Join(runDir, "processes"), Logs: statePath("log")},
		FingerprintFile: filepath.Join(runDir, "fingerprint"),
		Report:          report,
	}}
}

// Up makes sure that the cluster runs, and writes its administrator's
// kubeconfig to a file.
func (c Cluster) Up(ctx context.Context, binaries *build.Binaries, kubeconfig string) error {
	lock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Release()
	p := newPlan(binaries.Versions())
	if err := c.healthy(ctx, p); err == nil {
		c.Report.Line("the cluster is up")
		return writeKubeconfig(kubeconfig)
	} else if anythingLeft() {
		c.Report.Line("replacing the cluster that is there: %v", err)
		if err := c.remove(ctx); err != nil {
			return err
		}
	}
	if err := c.start(ctx, p, binaries); err != nil {
		return err
	}
	return writeKubeconfig(kubeconfig)
}

// Down removes the cluster and all that it left on the machine. It is no error
// if there is none.
func (c Cluster) Down(ctx context.Context) error {
	lock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Remove()
	return c.remove(ctx)
}

// lock makes those who start and stop the cluster take turns.
func (c Cluster) lock(ctx context.Context) (lock *filelock.Lock, err error) {
	ctx, cancel := context.WithTimeout(ctx, cluster.LockTimeout)
	defer cancel()
	err = c.Report.Track("waiting for another localcluster", nil, func() error {
		lock, err = filelock.Acquire(ctx, lockFile)
		return err
	})
	return lock, err
}

// healthy returns nil if the running cluster is the planned one and works.
func (c Cluster) healthy(ctx context.Context, p cluster.Plan) error {
	if err := c.Completed(p); err != nil {
		return err
	}
	if _, err := net.InterfaceByName(hostLink); err != nil {
		return fmt.Errorf("link %s: %w", hostLink, err)
	}
	if err := c.containerdReady(); err != nil {
		return err
	}
	client, err := kube.NewClient(config().PKI(), config().Server())
	if err != nil {
		return err
	}
	if err := client.Ready(ctx); err != nil {
		return err
	}
	return client.Condition(ctx, nodeURL, "Ready")
}

// anythingLeft reports whether there may be parts of a cluster.
func anythingLeft() bool {
	for _, path := range []string{stateDir, runDir, netnsFile} {
		if _, err := os.Lstat(path); err == nil {
			return true
		}
	}
	_, err := net.InterfaceByName(hostLink)
	return err == nil || len(cgroupPIDs()) > 0
}

// start starts a cluster where there is none.
func (c Cluster) start(ctx context.Context, p cluster.Plan, binaries *build.Binaries) error {
	ctx, cancel := context.WithTimeoutCause(ctx, cluster.ReadyTimeout,
		fmt.Errorf("not ready after %s", cluster.ReadyTimeout))
	defer cancel()
	if err := prepare(p, binaries); err != nil {
		return err
	}
	c.Report.Line("node namespaces and certificates made")
	if err := c.startAll(p.First); err != nil {
		return err
	}
	if err := c.Await(ctx, containerd, c.containerdReady); err != nil {
		return err
	}
	c.Report.Line("containerd is ready")
	if err := c.loadStandardImages(binaries); err != nil {
		return err
	}
	client, err := kube.NewClient(config().PKI(), config().Server())
	if err != nil {
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
	if err := c.awaitUsable(ctx, client); err != nil {
		return err
	}
	return c.Complete(p)
}

// awaitUsable waits until pods can be created and run.
func (c Cluster) awaitUsable(ctx context.Context, client *kube.Client) error {
	if err := c.Await(ctx, kubelet, func() error { return client.Condition(ctx, nodeURL, "Ready") }); err != nil {
		return err
	}
	c.Report.Line("node %s is ready", nodeName)
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
func prepare(p cluster.Plan, binaries *build.Binaries) error {
	for _, dir := range []string{stateDir, runDir, filepath.Dir(config().AuditLog())} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	for name, file := range binaries.All() {
		if err := fsys.Install(file, binary(name)); err != nil {
			return err
		}
	}
	if err := p.WriteFiles(); err != nil {
		return err
	}
	if err := config().WritePKI(); err != nil {
		return err
	}
	return setUpNode()
}

// startAll starts processes without waiting for them to be ready.
func (c Cluster) startAll(specs []process.Spec) error {
	for _, spec := range specs {
		pid, err := c.Group.Start(spec)
		if err != nil {
			return err
		}
		if !onNode(spec.Name) {
			continue
		}
		if err := joinCgroup(pid); err != nil {
			return fmt.Errorf("move %s into the node's cgroup: %w%s", spec.Name, err, c.Group.Tail(spec.Name))
		}
	}
	return nil
}

// remove ends all processes and removes all state. Nothing is ended gently,
// since nothing is kept.
func (c Cluster) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, cluster.DownTimeout,
		fmt.Errorf("not down after %s", cluster.DownTimeout))
	defer cancel()
	if err := c.KillAll(ctx, controlplane.Etcd); err != nil {
		return err
	}
	err := poll.Until(ctx, 20*time.Millisecond, func() error {
		if n := process.KillBelow(stateDir); n > 0 {
			return fmt.Errorf("%d processes are left", n)
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.Report.Line("processes of the cluster ended")
	if err := tearDownNode(ctx); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(runDir), os.RemoveAll(stateDir)); err != nil {
		return err
	}
	c.Report.Line("node, network and state removed")
	return nil
}

// writeKubeconfig copies the administrator's kubeconfig to where the caller wants it.
func writeKubeconfig(to string) error {
	if to == "" {
		return nil
	}
	return fsys.CopyPrivate(filepath.Join(config().PKI(), "admin.kubeconfig"), to)
}
