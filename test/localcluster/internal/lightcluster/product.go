// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package lightcluster

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/cluster"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/kube"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/process"
)

const (
	sandboxAPIServer  = "sandbox-apiserver"
	sandboxController = "sandbox-controller"
	// ExternalEtcd is an etcd that servers share, and also the directory of its
	// data. It has nothing to do with that of the cluster.
	ExternalEtcd = "external-etcd"
	// sandboxEtcd is the directory of the etcd inside a server. It survives stop
	// and start, and goes with the cluster.
	sandboxEtcd = "sandbox-etcd"

	sandboxNamespace = "agent-sandbox-system"
	sandboxHost      = sandboxAPIServer + "." + sandboxNamespace + ".svc"
	stopGrace        = 30 * time.Second
)

// product is a program that runs as a process of the host beside a light
// cluster: one of this project, or what it needs.
type product struct {
	// instances is how many processes of it there may be.
	instances int
	// url is where it serves: its API, or the metrics of what has none.
	url func(i instance) string
	// args are its flags.
	args func(i instance) []string
	// prepare is called before it starts.
	prepare func(ctx context.Context, i instance, client *kube.Client) error
	// ready returns nil when it serves.
	ready func(ctx context.Context, i instance) error
	// publish is called when the first instance serves.
	publish func(ctx context.Context, i instance, client *kube.Client) error
}

var products = map[string]product{
	sandboxAPIServer: {
		instances: MaxInstances,
		url:       apiServerURL,
		args:      apiServerArgs,
		prepare:   prepareAPIServer,
		ready:     apiServerReady,
		publish:   publish,
	},
	sandboxController: {
		instances: MaxInstances,
		url:       func(i instance) string { return i.local(controllerMetricsOffset) },
		args: func(i instance) []string {
			return []string{
				"--kubeconfig=" + i.cluster.adminKubeconfig(),
				// Several of them need --leader-elect=true as another argument.
				"--leader-elect=false",
				"--leader-election-namespace=" + sandboxNamespace,
				fmt.Sprintf("--metrics-bind-address=127.0.0.1:%d", i.port(controllerMetricsOffset)),
				fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", i.port(controllerHealthOffset)),
			}
		},
		ready: func(ctx context.Context, i instance) error {
			return get(ctx, i.local(controllerHealthOffset)+"/readyz")
		},
	},
	ExternalEtcd: {
		instances: 1,
		url:       func(i instance) string { return i.local(externalEtcdClientOffset) },
		args: func(i instance) []string {
			client, peer := i.local(externalEtcdClientOffset), i.local(externalEtcdPeerOffset)
			return []string{
				"--data-dir=" + filepath.Join(i.cluster.dir, ExternalEtcd),
				"--listen-client-urls=" + client,
				"--advertise-client-urls=" + client,
				"--listen-peer-urls=" + peer,
				"--initial-advertise-peer-urls=" + peer,
				"--initial-cluster=default=" + peer,
				"--log-level=warn",
			}
		},
		ready: func(ctx context.Context, i instance) error {
			return get(ctx, i.local(externalEtcdClientOffset)+"/readyz")
		},
	},
}

// apiServerURL has the name that the serving certificate is for.
func apiServerURL(i instance) string {
	return fmt.Sprintf("https://localhost:%d", i.port(sandboxAPIServerOffset))
}

func apiServerArgs(i instance) []string {
	args := []string{
		"--kubeconfig=" + i.cluster.adminKubeconfig(),
		"--authentication-kubeconfig=" + i.cluster.adminKubeconfig(),
		"--authorization-kubeconfig=" + i.cluster.adminKubeconfig(),
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", i.port(sandboxAPIServerOffset)),
		"--tls-cert-file=" + filepath.Join(i.cluster.pki(), sandboxAPIServer+".crt"),
		"--tls-private-key-file=" + filepath.Join(i.cluster.pki(), sandboxAPIServer+".key"),
		"--namespace=" + sandboxNamespace,
	}
	if i.cluster.hasExternalEtcd() {
		return append(args, "--etcd-servers="+i.first().local(externalEtcdClientOffset))
	}
	return append(args, "--etcd-data-dir="+filepath.Join(i.cluster.dir, sandboxEtcd))
}

// hasExternalEtcd tells whether one was ever started: a server must not turn to
// another storage because that one is down.
func (c Cluster) hasExternalEtcd() bool {
	_, err := os.Stat(filepath.Join(c.dir, ExternalEtcd))
	return err == nil
}

// instance is one of the processes of a program.
type instance struct {
	program string
	// number counts from 1.
	number int
	product
	cluster Cluster
	// clusterPort is that of the cluster's API server.
	clusterPort uint16
}

// process is the name of the process and of its log.
func (i instance) process() string {
	if i.number == 1 {
		return i.program
	}
	return fmt.Sprintf("%s-%d", i.program, i.number)
}

// port returns the instance's own port from the offset of a first instance's.
func (i instance) port(offset uint16) uint16 {
	return i.clusterPort + offset + uint16(i.number-1)*portsPerInstance
}

// local returns the URL of a port without TLS.
func (i instance) local(offset uint16) string {
	return fmt.Sprintf("http://127.0.0.1:%d", i.port(offset))
}

// first returns the first instance.
func (i instance) first() instance {
	i.number = 1
	return i
}

// Process names a process of a program: Instance counts from 1.
type Process struct {
	Program  string
	Instance int
}

// Started tells of a process that serves.
type Started struct {
	// Process is its name, by which its log is called too.
	Process string `json:"process"`
	PID     int    `json:"pid"`
	// URL is where it serves: its API, or the metrics of what has none.
	URL string `json:"url"`
}

// StartProduct starts a program and waits until it serves. The first server of
// the API is the one that kube-apiserver passes requests on to.
func (c Cluster) StartProduct(ctx context.Context, which Process, binary string, extraArgs []string) (*Started, error) {
	i, err := c.instance(which)
	if err != nil {
		return nil, err
	}
	if c.Group.Running(i.process()) {
		return nil, fmt.Errorf("%s is running already", i.process())
	}
	client, err := i.clusterClient()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, cluster.ReadyTimeout,
		fmt.Errorf("not ready after %s", cluster.ReadyTimeout))
	defer cancel()
	if i.prepare != nil {
		if err := i.prepare(ctx, i, client); err != nil {
			return nil, fmt.Errorf("prepare %s: %w", i.process(), err)
		}
	}
	command := slices.Concat([]string{binary}, without(i.args(i), extraArgs), extraArgs)
	// It gets the caller's environment, which may ask for coverage data or the like.
	pid, err := c.Group.Start(process.Spec{Name: i.process(), Command: command, Env: os.Environ()})
	if err != nil {
		return nil, err
	}
	if err := c.AwaitAlone(ctx, i.process(), func() error { return i.ready(ctx, i) }); err != nil {
		return nil, err
	}
	if i.publish != nil && i.number == 1 {
		if err := i.publish(ctx, i, client); err != nil {
			return nil, fmt.Errorf("publish %s: %w", i.process(), err)
		}
	}
	c.Report.Line("%s is ready", i.process())
	return &Started{Process: i.process(), PID: pid, URL: i.url(i)}, nil
}

// without returns arguments without the flags that others set: a flag that may be
// repeated would not be replaced, but get both values.
func without(args, others []string) []string {
	name := func(arg string) string {
		flag, _, _ := strings.Cut(arg, "=")
		return flag
	}
	return slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		return slices.ContainsFunc(others, func(other string) bool { return name(other) == name(arg) })
	})
}

// Route makes kube-apiserver pass requests on to another instance of the server
// of the API, as a Service would after the end of one, and waits until it does.
func (c Cluster) Route(ctx context.Context, which Process) error {
	i, err := c.instance(which)
	if err != nil {
		return err
	}
	if i.publish == nil {
		return fmt.Errorf("%s serves no API", i.program)
	}
	client, err := i.clusterClient()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cluster.ReadyTimeout)
	defer cancel()
	return i.publish(ctx, i, client)
}

// StopProduct ends a process: by SIGTERM, with some time to finish, or at once.
func (c Cluster) StopProduct(ctx context.Context, which Process, kill bool) error {
	// The cluster may have gone already.
	i, err := newInstance(which)
	if err != nil {
		return err
	}
	if kill {
		return c.Group.Kill(ctx, i.process())
	}
	return c.Group.Stop(ctx, i.process(), stopGrace)
}

// instance returns what a process of this cluster is.
func (c Cluster) instance(which Process) (instance, error) {
	i, err := newInstance(which)
	if err != nil {
		return i, err
	}
	i.cluster = c
	i.clusterPort, err = c.port()
	return i, err
}

func newInstance(which Process) (instance, error) {
	p, ok := products[which.Program]
	if !ok {
		known := slices.Sorted(maps.Keys(products))
		return instance{}, fmt.Errorf("unknown program %q: want one of %s", which.Program, strings.Join(known, ", "))
	}
	if which.Instance < 1 || which.Instance > p.instances {
		return instance{}, fmt.Errorf("instance %d of %s: there may be 1 to %d", which.Instance, which.Program, p.instances)
	}
	return instance{program: which.Program, number: which.Instance, product: p}, nil
}

// clusterClient is a client of kube-apiserver.
func (i instance) clusterClient() (*kube.Client, error) {
	return kube.NewClient(i.cluster.pki(), fmt.Sprintf("https://127.0.0.1:%d", i.clusterPort))
}

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
