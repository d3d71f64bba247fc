// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

const (
	sandboxAPIServer  = framework.SandboxAPIServer
	sandboxController = framework.SandboxController
)

// cluster is a light cluster with both programs of the project.
type cluster struct {
	light *framework.LightCluster
	// metricsAddress is where the controller serves its metrics.
	metricsAddress string
}

// startCluster starts a cluster in place of any that is in the directory, and both programs.
func startCluster(ctx context.Context, s settings) (*cluster, error) {
	binDir, err := filepath.Abs(s.binDir)
	if err != nil {
		return nil, err
	}
	light, err := framework.StartLightCluster(ctx, framework.LightClusterOptions{
		Programs: framework.Programs(binDir), Dir: s.dir, Port: s.port, Nodes: s.nodes,
	})
	if err != nil {
		return nil, err
	}
	c := &cluster{light: light}
	for _, program := range []string{sandboxAPIServer, sandboxController} {
		process, err := light.Start(ctx, program, 1)
		if err != nil {
			c.printLogs(os.Stderr)
			return nil, errors.Join(err, light.Remove())
		}
		if program == sandboxController {
			c.metricsAddress = strings.TrimPrefix(process.URL, "http://")
		}
	}
	return c, nil
}

func (c *cluster) remove() error { return c.light.Remove() }

func (c *cluster) kubeconfig() string { return c.light.Kubeconfig() }

// printLogs writes the end of the logs of both programs.
func (c *cluster) printLogs(to io.Writer) { c.light.WriteLogs(to, sandboxAPIServer, sandboxController) }
