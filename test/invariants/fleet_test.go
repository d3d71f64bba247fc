// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	extensionsclient "github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned/typed/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/invariants/faultproxy"
)

const (
	// replicas is the number of servers.
	replicas = 3
	// nodes have room for all Pods.
	nodes = 20
)

// fleet is a light cluster with several servers and the controller.
type fleet struct {
	cluster *framework.LightCluster
	admin   *framework.Clients
	// etcd is a client whose connection nobody spoils.
	etcd *clientv3.Client
	// proxies are between the servers and etcd, one for each.
	proxies [replicas]*faultproxy.Proxy
	// servers are the addresses of the API: those of the replicas, in order, and then that of kube-apiserver.
	servers []*server
}

// server is one way to the API.
type server struct {
	name string
	*framework.Clients
}

// rest returns a client for claims that a request can be made of by hand.
func (s *server) rest() rest.Interface { return s.Agents.ExtensionsV1beta1().RESTClient() }

// pools and templates return clients for those of a namespace.
func (s *server) pools(namespace string) extensionsclient.SandboxWarmPoolInterface {
	return s.Agents.ExtensionsV1beta1().SandboxWarmPools(namespace)
}

func (s *server) templates(namespace string) extensionsclient.SandboxTemplateInterface {
	return s.Agents.ExtensionsV1beta1().SandboxTemplates(namespace)
}

// newFleet starts everything but the servers and the controller, so that nothing is written before somebody watches.
func newFleet(t *testing.T) *fleet {
	t.Helper()
	programs, err := framework.FindPrograms()
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := framework.StartLightCluster(t.Context(), framework.LightClusterOptions{Programs: programs, Nodes: nodes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			cluster.WriteLogs(os.Stderr, framework.SandboxAPIServer, framework.SandboxController)
		}
		if err := cluster.Remove(); err != nil {
			t.Error(err)
		}
	})
	f := &fleet{cluster: cluster}
	if f.admin, err = framework.LoadClients(cluster.Kubeconfig()); err != nil {
		t.Fatal(err)
	}
	etcd, err := cluster.Start(t.Context(), framework.ExternalEtcd, 1)
	if err != nil {
		t.Fatal(err)
	}
	if f.etcd, err = framework.NewEtcd(etcd.URL); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.etcd.Close() })
	for i := range f.proxies {
		if f.proxies[i], err = faultproxy.Listen(strings.TrimPrefix(etcd.URL, "http://")); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.proxies[i].Close() })
	}
	return f
}

// start starts the servers and the controller.
func (f *fleet) start(t *testing.T) {
	t.Helper()
	for i := range replicas {
		process, err := f.startReplica(t.Context(), i)
		if err != nil {
			t.Fatal(err)
		}
		f.addServer(t, process.Name, process.URL)
	}
	f.addServer(t, "kube-apiserver", f.admin.Config.Host)
	if err := f.startController(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// addServer adds a way to the API, which speaks protobuf: many watches are decoded in a test.
func (f *fleet) addServer(t *testing.T, name, url string) {
	t.Helper()
	config := rest.CopyConfig(f.admin.Config)
	config.Host = url
	config.ContentType = "application/vnd.kubernetes.protobuf"
	clients, err := framework.NewClients(config)
	if err != nil {
		t.Fatal(err)
	}
	f.servers = append(f.servers, &server{name, clients})
}

// startReplica starts a server, which counts from 0.
func (f *fleet) startReplica(ctx context.Context, i int) (*framework.Process, error) {
	return f.cluster.Start(ctx, framework.SandboxAPIServer, i+1, "--etcd-servers=http://"+f.proxies[i].Address())
}

func (f *fleet) killReplica(ctx context.Context, i int) error {
	return f.cluster.Kill(ctx, framework.SandboxAPIServer, i+1)
}

// route makes kube-apiserver pass requests on to a server. On a busy machine it may take more than one attempt.
func (f *fleet) route(ctx context.Context, i int) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, retryInterval, settleTimeout, true, func(ctx context.Context) (bool, error) {
		last = f.cluster.Route(ctx, i+1)
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

func (f *fleet) startController(ctx context.Context) error {
	_, err := f.cluster.Start(ctx, framework.SandboxController, 1)
	return err
}

func (f *fleet) killController(ctx context.Context) error {
	return f.cluster.Kill(ctx, framework.SandboxController, 1)
}

// replica returns the name of a server for people.
func replica(i int) string { return fmt.Sprintf("replica %d", i+1) }
