// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"path/filepath"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

const (
	sandboxAPIServer  = framework.SandboxAPIServer
	sandboxController = framework.SandboxController
)

// environment is a light cluster with both programs of the project.
type environment struct {
	cluster *framework.LightCluster
	kubectl framework.Kubectl

	config   *rest.Config
	kube     kubernetes.Interface
	agents   versioned.Interface
	metadata metadata.Interface
}

// newEnvironment starts a cluster. It fails if a program is missing.
func newEnvironment(ctx context.Context) (*environment, error) {
	programs, err := framework.FindPrograms()
	if err != nil {
		return nil, err
	}
	cluster, err := framework.StartLightCluster(ctx, framework.LightClusterOptions{Programs: programs})
	if err != nil {
		return nil, err
	}
	return &environment{
		cluster: cluster,
		kubectl: framework.Kubectl{Programs: programs, Kubeconfig: cluster.Kubeconfig(), Home: filepath.Join(cluster.Dir, "home")},
	}, nil
}

// start starts both programs, and returns when the API is available.
func (e *environment) start(ctx context.Context) error {
	clients, err := framework.LoadClients(e.cluster.Kubeconfig())
	if err != nil {
		return err
	}
	e.config, e.kube, e.agents, e.metadata = clients.Config, clients.Kube, clients.Agents, clients.Metadata
	for _, program := range []string{sandboxAPIServer, sandboxController} {
		if err := e.startProgram(ctx, program); err != nil {
			return err
		}
	}
	return nil
}

// startProgram starts one of the project's programs and returns when it is ready.
func (e *environment) startProgram(ctx context.Context, name string) error {
	_, err := e.cluster.Start(ctx, name, 1)
	return err
}

// killProgram ends one of the project's programs with SIGKILL and returns when it is gone.
func (e *environment) killProgram(ctx context.Context, name string) error {
	return e.cluster.Kill(ctx, name, 1)
}

// etcd returns a client of the etcd inside sandbox-apiserver, which the caller closes.
func (e *environment) etcd() (*clientv3.Client, error) {
	return framework.NewEtcd(e.cluster.EmbeddedEtcd())
}
