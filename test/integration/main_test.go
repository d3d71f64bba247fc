// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package integration tests sandbox-apiserver and sandbox-controller as processes beside a real control plane, whose nodes are
// simulated: everything that a client of the API can observe, but no containers.
//
// The tests of the package share one cluster, each in a namespace of its own. A test that stops a process, or installs what
// concerns the whole cluster, is not parallel; the parallel ones run after all of those.
package integration

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"
)

// startTimeout covers a cluster on a busy machine; with nothing else to do it is there within ten seconds.
const startTimeout = 5 * time.Minute

// env is the cluster that the tests of the package share. It is set before the first test begins and never after.
var env *environment

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) (code int) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	var err error
	if env, err = newEnvironment(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "integration tests:", err)
		return 1
	}
	defer func() {
		if code != 0 {
			env.cluster.WriteLogs(os.Stderr)
		}
		if err := env.cluster.Remove(); err != nil {
			fmt.Fprintln(os.Stderr, "integration tests:", err)
			code = 1
		}
	}()
	if err := env.start(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "integration tests:", err)
		return 1
	}
	return m.Run()
}
