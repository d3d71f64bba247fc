// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-sandbox is the kubectl plugin `kubectl sandbox`.
package main

import (
	"context"
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/kubectl/sandbox"
)

func main() {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	cmdutil.CheckErr(sandbox.NewCommand(streams).ExecuteContext(context.Background()))
}
