// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Command sandbox-controller runs the controllers of Sandboxes, templates, warm pools and claims.
package main

import (
	"os"

	"k8s.io/component-base/cli"

	"github.com/sandbox-apiserver/sandbox-apiserver/cmd/sandbox-controller/app"
)

func main() {
	os.Exit(cli.Run(app.NewCommand()))
}
