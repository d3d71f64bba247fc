// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Command sandbox-apiserver serves the API groups of Sandboxes, agents.x-k8s.io and extensions.agents.x-k8s.io, as an aggregated
// API server.
package main

import (
	"os"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"

	"github.com/sandbox-apiserver/sandbox-apiserver/cmd/sandbox-apiserver/app"
)

func main() {
	os.Exit(cli.Run(app.NewCommand(genericapiserver.SetupSignalContext())))
}
