// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Command localcluster builds and runs Kubernetes clusters on this machine for
// development and tests, from Go modules alone: no container engine, no image
// registry. See README.md for the commands and for what the clusters are like.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := cli.New().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "localcluster:", err)
		os.Exit(1)
	}
}
