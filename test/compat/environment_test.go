// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"context"
	"fmt"
	"os"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

// environment is the cluster under test.
type environment struct {
	kubectl framework.Kubectl
	config  *rest.Config
	kube    kubernetes.Interface
	agents  versioned.Interface
	// ours says that this project serves the API, to be told by the suspend subresource, which nobody else has.
	ours   bool
	report report
}

func connect(programs framework.Programs, kubeconfig string) (*environment, error) {
	clients, err := framework.LoadClients(kubeconfig)
	if err != nil {
		return nil, err
	}
	resources, err := clients.Kube.Discovery().ServerResourcesForGroupVersion(v1beta1.SchemeGroupVersion.String())
	if err != nil {
		return nil, fmt.Errorf("asking for the resources of %s: %w", v1beta1.SchemeGroupVersion, err)
	}
	return &environment{
		kubectl: framework.Kubectl{Programs: programs, Kubeconfig: kubeconfig, Home: os.TempDir()},
		config:  clients.Config,
		kube:    clients.Kube,
		agents:  clients.Agents,
		ours:    slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Name == "sandboxes/suspend" }),
	}, nil
}

// startLightCluster starts a cluster of simulated nodes with both programs of the project beside it.
func startLightCluster(ctx context.Context, programs framework.Programs) (*framework.LightCluster, error) {
	cluster, err := framework.StartLightCluster(ctx, framework.LightClusterOptions{Programs: programs})
	if err != nil {
		return nil, err
	}
	for _, name := range []string{framework.SandboxAPIServer, framework.SandboxController} {
		if _, err := cluster.Start(ctx, name, 1); err != nil {
			remove(cluster, true)
			return nil, err
		}
	}
	return cluster, nil
}

// remove removes a cluster and returns an exit code.
func remove(cluster *framework.LightCluster, withLogs bool) int {
	if withLogs {
		cluster.WriteLogs(os.Stderr, framework.SandboxAPIServer, framework.SandboxController)
	}
	if err := cluster.Remove(); err != nil {
		fmt.Fprintln(os.Stderr, "compat tests:", err)
		return 1
	}
	return 0
}
