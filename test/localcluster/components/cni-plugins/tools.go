// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package tools names the CNI plugins of the real cluster's pod network, so
// that go.mod and go.sum cover everything they import.
package tools

import (
	_ "github.com/containernetworking/plugins/plugins/ipam/host-local"
	_ "github.com/containernetworking/plugins/plugins/main/bridge"
	_ "github.com/containernetworking/plugins/plugins/main/loopback"
	_ "github.com/containernetworking/plugins/plugins/meta/portmap"
)
