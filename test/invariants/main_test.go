// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package invariants tests that claims get what they are promised whatever fails: several servers on one etcd, the controller, and
// clients that create, read, change and delete claims at random while processes are killed, pools and templates are changed, and
// connections to etcd are spoilt.
//
// What is right is judged by everything that etcd ever held, by what clients were told, and by what they saw in watches; see package
// history. A run is random, and prints the seed of its decisions. The same seed makes the same decisions, at other moments.
package invariants

import (
	"flag"
	"time"
)

var (
	seedFlag    = flag.Uint64("seed", 0, "Seed of all random decisions. Default: another one each time.")
	claimsFlag  = flag.Int("claims", 3000, "Number of claims to create.")
	rateFlag    = flag.Float64("rate", 60, "Number of requests about claims to send in a second, on average.")
	timeoutFlag = flag.Duration("timeout-after", 10*time.Minute, "When to give up waiting for all the claims to be created.")
)
