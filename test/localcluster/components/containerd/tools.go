// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package tools names the containerd commands that the real cluster's node
// runs, so that go.mod and go.sum cover everything they import.
package tools

import (
	_ "github.com/containerd/containerd/v2/cmd/containerd"
	_ "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"
	_ "github.com/containerd/containerd/v2/cmd/ctr"
)
