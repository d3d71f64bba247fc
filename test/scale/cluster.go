// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

const (
	sandboxAPIServer  = "sandbox-apiserver"
	sandboxController = "sandbox-controller"

	// metricsPortOffset is beyond the ports that localcluster gives to the processes of a cluster.
	metricsPortOffset = 20
	// removalTimeout bounds the removal of the cluster, which is done also after an interrupt.
	removalTimeout = 2 * time.Minute
	// logTail is how much of the log of a program is shown after a failure.
	logTail = 8 << 10
)

// cluster is a light cluster with both programs of the project.
type cluster struct {
	binDir, dir string
	// metricsAddress is where the controller serves its metrics.
	metricsAddress string
}

// startCluster starts a cluster in place of any that is in the directory, and both programs.
func startCluster(ctx context.Context, s settings) (*cluster, error) {
	binDir, err := filepath.Abs(s.binDir)
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(s.dir)
	if err != nil {
		return nil, err
	}
	c := &cluster{binDir: binDir, dir: dir, metricsAddress: fmt.Sprintf("127.0.0.1:%d", s.port+metricsPortOffset)}
	for _, args := range [][]string{
		{"down", "light", "--dir", dir},
		{"up", "light", "--dir", dir, "--port", strconv.Itoa(int(s.port)), "--nodes", strconv.Itoa(s.nodes), "--kubeconfig", c.kubeconfig()},
		{"start", sandboxAPIServer, "--dir", dir, "--bin", filepath.Join(binDir, sandboxAPIServer)},
		{"start", sandboxController, "--dir", dir, "--bin", filepath.Join(binDir, sandboxController), "--", "--metrics-bind-address=" + c.metricsAddress},
	} {
		if err := c.localcluster(ctx, args...); err != nil {
			c.printLogs(os.Stderr)
			return nil, errors.Join(err, c.remove(ctx))
		}
	}
	return c, nil
}

func (c *cluster) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removalTimeout)
	defer cancel()
	if err := c.localcluster(ctx, "down", "light", "--dir", c.dir); err != nil {
		return err
	}
	return os.RemoveAll(c.dir)
}

func (c *cluster) localcluster(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(c.binDir, "localcluster"), args...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("localcluster %v: %w\n%s", args, err, output.String())
	}
	return nil
}

// auditLogs returns the files in which kube-apiserver records the requests that it has answered.
func (c *cluster) auditLogs() ([]string, error) {
	return filepath.Glob(filepath.Join(c.dir, "audit", "audit*.log"))
}

func (c *cluster) kubeconfig() string { return filepath.Join(c.dir, "kubeconfig") }

// printLogs writes the end of the logs of both programs.
func (c *cluster) printLogs(to io.Writer) {
	for _, name := range []string{sandboxAPIServer, sandboxController} {
		data, err := os.ReadFile(filepath.Join(c.dir, "log", name+".log"))
		if err != nil {
			fmt.Fprintln(to, err)
			continue
		}
		fmt.Fprintf(to, "--- end of the log of %s\n%s\n", name, data[max(0, len(data)-logTail):])
	}
}
