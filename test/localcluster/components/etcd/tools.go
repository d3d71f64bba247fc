//go:build tools

// Package tools names the etcd server command, so that go.mod and go.sum cover
// everything it imports.
package tools

import _ "go.etcd.io/etcd/server/v3"
