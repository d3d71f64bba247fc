//go:build tools

// Package tools names the kwok command, so that go.mod and go.sum cover
// everything it imports.
package tools

import _ "sigs.k8s.io/kwok/cmd/kwok"
