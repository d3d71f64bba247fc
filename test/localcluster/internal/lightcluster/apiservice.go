// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package lightcluster

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/controlplane"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/kube"
)

// apiService is a group and version that sandbox-apiserver may serve.
type apiService struct{ group, version string }

// apiServices are all of them. A server may be older than the list: what it does
// not serve is not registered, since an API that nobody serves keeps every
// namespace of the cluster from being deleted.
var apiServices = []apiService{
	{"agents.x-k8s.io", "v1beta1"},
	{"extensions.agents.x-k8s.io", "v1beta1"},
}

func (a apiService) name() string { return a.version + "." + a.group }

// path is that of the registration at kube-apiserver.
func (a apiService) path() string {
	return "/apis/apiregistration.k8s.io/v1/apiservices/" + a.name()
}

// discovery is a path that only a server of the API answers.
func (a apiService) discovery() string { return "/apis/" + a.group + "/" + a.version }

// prepareAPIServer makes what must be there before the server starts: its
// serving certificate, the namespace of its own objects, and a Service. The
// external name localhost leads to this machine; the port of an APIService is
// then the server's own.
func prepareAPIServer(ctx context.Context, i instance, client *kube.Client) error {
	if i.number > 1 && !i.cluster.hasExternalEtcd() {
		return fmt.Errorf("several servers need an etcd that they share: start %s first", ExternalEtcd)
	}
	if err := i.cluster.issueServingCertificate(ctx); err != nil {
		return err
	}
	namespace := "/api/v1/namespaces/" + sandboxNamespace
	if err := client.Apply(ctx, namespace, fmt.Appendf(nil, namespaceYAML, sandboxNamespace)); err != nil {
		return err
	}
	return client.Apply(ctx, namespace+"/services/"+sandboxAPIServer, fmt.Appendf(nil, serviceYAML, sandboxAPIServer, sandboxNamespace))
}

// issueServingCertificate makes the certificate that all servers of the cluster
// have, unless it is there.
func (c Cluster) issueServingCertificate(ctx context.Context) error {
	lock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Release()
	config := controlplane.Config{Dir: c.dir}
	if _, err := os.Stat(filepath.Join(config.PKI(), sandboxAPIServer+".crt")); err == nil {
		return nil
	}
	return config.IssueServing(sandboxAPIServer, sandboxHost, "localhost")
}

// apiServerReady asks the server itself. It is ready a moment before it knows the
// authority of client certificates; until then it takes us for just anybody.
func apiServerReady(ctx context.Context, i instance) error {
	server, err := i.apiServerClient()
	if err != nil {
		return err
	}
	if err := server.Ready(ctx); err != nil {
		return err
	}
	return server.Exists(ctx, "/apis")
}

func (i instance) apiServerClient() (*kube.Client, error) {
	return kube.NewClient(i.cluster.pki(), apiServerURL(i))
}

// publish makes kube-apiserver pass on to a server all that it serves.
func publish(ctx context.Context, i instance, client *kube.Client) error {
	server, err := i.apiServerClient()
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(filepath.Join(i.cluster.pki(), "ca.crt"))
	if err != nil {
		return err
	}
	registered := 0
	for _, a := range apiServices {
		switch err := server.Exists(ctx, a.discovery()); {
		case kube.IsNotFound(err):
			continue
		case err != nil:
			return err
		}
		manifest := fmt.Appendf(nil, apiServiceYAML, a.name(), a.group, a.version, sandboxAPIServer, sandboxNamespace,
			i.port(sandboxAPIServerOffset), base64.StdEncoding.EncodeToString(ca))
		if err := client.Apply(ctx, a.path(), manifest); err != nil {
			return err
		}
		registered++
	}
	if registered == 0 {
		return errors.New("it serves no API that is known here")
	}
	return i.cluster.AwaitAlone(ctx, i.process(), func() error { return published(ctx, client) })
}

// published returns nil if kube-apiserver finds all that is registered available,
// and gets an answer: the condition may still be that of the server before.
func published(ctx context.Context, client *kube.Client) error {
	var errs []error
	for _, a := range apiServices {
		err := client.Condition(ctx, a.path(), "Available")
		if kube.IsNotFound(err) {
			continue
		}
		errs = append(errs, err, client.Exists(ctx, a.discovery()))
	}
	return errors.Join(errs...)
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
  name: %s
spec:
  group: %s
  version: %s
  groupPriorityMinimum: 1000
  versionPriority: 15
  service:
    name: %s
    namespace: %s
    port: %d
  caBundle: %s
`
