// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package compat holds the contract of Sandboxes, templates, pools and claims as a table: each row is one rule that a client of
// agents.x-k8s.io/v1beta1 or extensions.agents.x-k8s.io/v1beta1 may rely on, what is done and what must be observed. It looks from
// outside only, so that the same rows run against any cluster that serves the groups, however it does.
//
// By default the cluster is a light one that the tests start. With -kubeconfig, or COMPAT_KUBECONFIG, it is that of the file. Where
// sandboxes have no suspend subresource, that is another implementation: rows that only this project promises are then reported
// instead of failed. States of Pods that nothing on a cluster of simulated nodes brings about are written to the status of Pods
// which no scheduler looks at.
package compat

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

// startTimeout covers a cluster on a busy machine.
const startTimeout = 5 * time.Minute

// env is the cluster that the tests of the package share. It is set before the first test begins and never after.
var env *environment

func TestMain(m *testing.M) {
	kubeconfig := flag.String("kubeconfig", os.Getenv("COMPAT_KUBECONFIG"), "kubeconfig of the cluster to test; a light one is started if empty")
	flag.Parse()
	os.Exit(run(m, *kubeconfig))
}

func run(m *testing.M, kubeconfig string) (code int) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	programs, err := framework.FindPrograms()
	if err != nil {
		fmt.Fprintln(os.Stderr, "compat tests:", err)
		return 1
	}
	if kubeconfig == "" {
		cluster, err := startLightCluster(ctx, programs)
		if err != nil {
			fmt.Fprintln(os.Stderr, "compat tests:", err)
			return 1
		}
		defer func() { code = cmp.Or(code, remove(cluster, code != 0)) }()
		kubeconfig = cluster.Kubeconfig()
	}
	if env, err = connect(programs, kubeconfig); err != nil {
		fmt.Fprintln(os.Stderr, "compat tests:", err)
		return 1
	}
	code = m.Run()
	if !env.ours {
		env.report.print(os.Stdout)
	}
	return code
}
