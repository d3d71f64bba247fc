// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package tools names the Kubernetes commands that the local clusters run, so
// that go.mod and go.sum cover everything they import.
package tools

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-proxy"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
	_ "k8s.io/kubernetes/cmd/kubectl"
	_ "k8s.io/kubernetes/cmd/kubelet"
)
