// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package lightcluster

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/cluster"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/controlplane"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/kube"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/process"
)

// sandboxEtcd is the directory of the API server's embedded etcd. It survives
// stop and start, and goes with the cluster.
const sandboxEtcd = "sandbox-etcd"

const (
	sandboxAPIServer  = "sandbox-apiserver"
	sandboxController = "sandbox-controller"
	sandboxNamespace  = "agent-sandbox-system"
	sandboxHost       = sandboxAPIServer + "." + sandboxNamespace + ".svc"
	apiServicePath    = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.agents.x-k8s.io"
	stopGrace         = 30 * time.Second
)

// product is a program of this project that runs as a process of the host
// beside a light cluster.
type product struct {
	// args are its flags.
	args func(c Cluster, port uint16) []string
	// prepare is called before it starts.
	prepare func(ctx context.Context, c Cluster, port uint16, client *kube.Client) error
	// ready returns nil when it serves.
	ready func(ctx context.Context, c Cluster, port uint16, client *kube.Client) error
}

var products = map[string]product{
	sandboxAPIServer: {
		args: func(c Cluster, port uint16) []string {
			return []string{
				"--kubeconfig=" + c.adminKubeconfig(),
				"--authentication-kubeconfig=" + c.adminKubeconfig(),
				"--authorization-kubeconfig=" + c.adminKubeconfig(),
				"--bind-address=127.0.0.1",
				fmt.Sprintf("--secure-port=%d", port+sandboxAPIServerOffset),
				"--tls-cert-file=" + filepath.Join(c.dir, "pki", sandboxAPIServer+".crt"),
				"--tls-private-key-file=" + filepath.Join(c.dir, "pki", sandboxAPIServer+".key"),
				"--etcd-data-dir=" + filepath.Join(c.dir, sandboxEtcd),
				"--namespace=" + sandboxNamespace,
			}
		},
		prepare: registerAPIService,
		ready:   apiServiceReady,
	},
	sandboxController: {
		args: func(c Cluster, port uint16) []string {
			return []string{
				"--kubeconfig=" + c.adminKubeconfig(),
				"--leader-elect=false",
				fmt.Sprintf("--metrics-bind-address=127.0.0.1:%d", port+controllerMetricsOffset),
				fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", port+controllerHealthOffset),
			}
		},
		ready: func(ctx context.Context, _ Cluster, port uint16, _ *kube.Client) error {
			return get(ctx, fmt.Sprintf("http://127.0.0.1:%d/readyz", port+controllerHealthOffset))
		},
	},
}

// StartProduct starts a program of this project and waits until it serves.
func (c Cluster) StartProduct(ctx context.Context, name, binary string, extraArgs []string) error {
	p, err := findProduct(name)
	if err != nil {
		return err
	}
	if c.Group.Running(name) {
		return fmt.Errorf("%s is running already", name)
	}
	port, err := c.port()
	if err != nil {
		return err
	}
	pki := filepath.Join(c.dir, "pki")
	client, err := kube.NewClient(pki, fmt.Sprintf("https://127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, cluster.ReadyTimeout,
		fmt.Errorf("not ready after %s", cluster.ReadyTimeout))
	defer cancel()
	if p.prepare != nil {
		if err := p.prepare(ctx, c, port, client); err != nil {
			return fmt.Errorf("prepare %s: %w", name, err)
		}
	}
	command := slices.Concat([]string{binary}, p.args(c, port), extraArgs)
	// It gets the caller's environment, which may ask for coverage data or the like.
	if _, err := c.Group.Start(process.Spec{Name: name, Command: command, Env: os.Environ()}); err != nil {
		return err
	}
	if err := c.AwaitAlone(ctx, name, func() error { return p.ready(ctx, c, port, client) }); err != nil {
		return err
	}
	c.Report.Line("%s is ready", name)
	return nil
}

// StopProduct ends a program: by SIGTERM, with some time to finish, or at once.
func (c Cluster) StopProduct(ctx context.Context, name string, kill bool) error {
	if _, err := findProduct(name); err != nil {
		return err
	}
	if kill {
		return c.Group.Kill(ctx, name)
	}
	return c.Group.Stop(ctx, name, stopGrace)
}

func findProduct(name string) (product, error) {
	p, ok := products[name]
	if !ok {
		known := slices.Sorted(maps.Keys(products))
		return product{}, fmt.Errorf("unknown program %q: want %s", name, strings.Join(known, " or "))
	}
	return p, nil
}

// registerAPIService makes a serving certificate and tells kube-apiserver where
// the API is. A Service with the external name localhost leads to this machine;
// the port of the APIService is then the server's own.
func registerAPIService(ctx context.Context, c Cluster, port uint16, client *kube.Client) error {
	config := controlplane.Config{Dir: c.dir}
	if _, err := os.Stat(filepath.Join(config.PKI(), sandboxAPIServer+".crt")); err != nil {
		if err := config.IssueServing(sandboxAPIServer, sandboxHost, "localhost"); err != nil {
			return err
		}
	}
	ca, err := os.ReadFile(filepath.Join(config.PKI(), "ca.crt"))
	if err != nil {
		return err
	}
	namespace := "/api/v1/namespaces/" + sandboxNamespace
	// In this order: the Service needs its namespace.
	for _, object := range []struct{ path, manifest string }{
		{namespace, fmt.Sprintf(namespaceYAML, sandboxNamespace)},
		{namespace + "/services/" + sandboxAPIServer, fmt.Sprintf(serviceYAML, sandboxAPIServer, sandboxNamespace)},
		{apiServicePath, fmt.Sprintf(apiServiceYAML, sandboxAPIServer, sandboxNamespace,
			port+sandboxAPIServerOffset, base64.StdEncoding.EncodeToString(ca))},
	} {
		if err := client.Apply(ctx, object.path, []byte(object.manifest)); err != nil {
			return err
		}
	}
	return nil
}

// apiServiceReady asks the server itself first: after a restart, the condition
// may still be that of the server before.
func apiServiceReady(ctx context.Context, c Cluster, port uint16, client *kube.Client) error {
	server, err := kube.NewClient(filepath.Join(c.dir, "pki"), fmt.Sprintf("https://localhost:%d", port+sandboxAPIServerOffset))
	if err != nil {
		return err
	}
	if err := server.Ready(ctx); err != nil {
		return err
	}
	return client.Condition(ctx, apiServicePath, "Available")
}

const namespaceYAML = `apiVersion: v1
kind: Namespace
metadata:
  name: %s
`

const serviceYAML = `apiVersion: v1
kind: Service
metadata:
  name: %s
  namespace: %s
spec:
  type: ExternalName
  externalName: localhost
`

const apiServiceYAML = `apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata:
  name: v1beta1.agents.x-k8s.io
spec:
  group: agents.x-k8s.io
  version: v1beta1
  groupPriorityMinimum: 1000
  versionPriority: 15
  service:
    name: %s
    namespace: %s
    port: %d
  caBundle: %s
`

// get returns nil if a URL answers with success.
func get(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, resp.Status)
	}
	return nil
}
