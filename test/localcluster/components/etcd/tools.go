// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package tools names the etcd server command, so that go.mod and go.sum cover
// everything it imports.
package tools

import _ "go.etcd.io/etcd/server/v3"
