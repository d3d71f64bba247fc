// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package framework holds what tests and benchmarks against a running cluster share: light clusters and the programs beside them,
// clients, kubectl, waiting, what etcd and the audit log tell of writes, how many Pods Sandboxes had, a Sandbox to start from, and commands run
// through the exec subresources. It judges nothing: it fails a test only if what the test waits for does not come, or cannot be done.
//
// A test of several servers starts, in this order:
//
//	cluster, err := framework.StartLightCluster(ctx, framework.LightClusterOptions{Programs: programs})
//	t.Cleanup(func() { err := cluster.Remove() }) // After the cleanups of the namespaces, which need it.
//	etcd, err := cluster.Start(ctx, framework.ExternalEtcd, 1)
//	first, err := cluster.Start(ctx, framework.SandboxAPIServer, 1)
//	second, err := cluster.Start(ctx, framework.SandboxAPIServer, 2)
//	controller, err := cluster.Start(ctx, framework.SandboxController, 1)
//
// Clients of cluster.Kubeconfig() reach the first through kube-apiserver, until cluster.Route says otherwise. Those of a configuration with
// second.URL for its Host reach the second without it.
package framework
