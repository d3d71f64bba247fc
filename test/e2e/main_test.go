// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

const (
	// localcluster is the program that has started the cluster, and knows its processes.
	localcluster = "localcluster"
	// systemNamespace is where the product is deployed.
	systemNamespace = "agent-sandbox-system"
	// auditLogVariable names the environment variable that replaces the file of kube-apiserver's audit log.
	auditLogVariable = "KUBE_APISERVER_AUDIT_LOG"
	defaultAuditLog  = "/var/lib/sandbox-localcluster/audit/audit.log"
)

// env is the cluster under test. It is set before the first test begins and never after.
var env *environment

// environment is a cluster with the product deployed.
type environment struct {
	kubectl  framework.Kubectl
	auditLog string

	config *rest.Config
	kube   kubernetes.Interface
	agents versioned.Interface
}

func TestMain(m *testing.M) {
	var err error
	if env, err = newEnvironment(); err != nil {
		fmt.Fprintf(os.Stderr, "end-to-end tests: %v\nRun \"make test-e2e\", which starts the cluster that they need.\n", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// newEnvironment returns an error if there is no cluster that serves Sandboxes.
func newEnvironment() (*environment, error) {
	programs, err := framework.FindPrograms()
	if err != nil {
		return nil, err
	}
	if err := programs.Check("kubectl", "kubectl-sandbox", localcluster); err != nil {
		return nil, err
	}
	// A test runs in the directory of its package.
	kubeconfig := valueOr(clientcmd.RecommendedConfigPathEnvVar, filepath.Join("..", "..", "_output", "local", "kubeconfig"))
	clients, err := framework.LoadClients(kubeconfig)
	if err != nil {
		return nil, err
	}
	e := &environment{
		kubectl:  framework.Kubectl{Programs: programs, Kubeconfig: kubeconfig, Home: os.TempDir()},
		auditLog: valueOr(auditLogVariable, defaultAuditLog),
		config:   clients.Config,
		kube:     clients.Kube,
		agents:   clients.Agents,
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if _, err := e.agents.AgentsV1beta1().Sandboxes(metav1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
		return nil, fmt.Errorf("listing sandboxes: %w", err)
	}
	return e, nil
}

func valueOr(variable, otherwise string) string {
	if value := os.Getenv(variable); value != "" {
		return value
	}
	return otherwise
}
