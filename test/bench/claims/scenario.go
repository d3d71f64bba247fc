// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
)

const (
	// maxPeers bounds the Pods that are created to compare with: enough for percentiles.
	maxPeers = 500
	// peerSeconds bounds the time of those that are created at a rate.
	peerSeconds = 10
)

// scenario is a load of claims on a pool that is full before.
type scenario struct {
	name string
	load
	// pool is the number of ready members that the pool has before each round.
	pool int
	// rounds is how often the load is repeated, each time from a full pool.
	rounds int
	// untilReady makes a request last until the claim is ready, as for a client that cannot go on without its Sandbox.
	untilReady bool
}

// scenarios are in the order of their pools, so that none has to shrink.
var scenarios = []scenario{
	{name: "steady-5", load: load{count: 100, perSecond: 5}, pool: 100, rounds: 1},
	{name: "burst-200", load: load{count: 200, inFlight: 50}, pool: 200, rounds: 3},
	{name: "at-once-300", load: load{count: 300, inFlight: 300}, pool: 300, rounds: 1},
	{name: "sequential", load: load{count: 450, inFlight: 1}, pool: 500, rounds: 1, untilReady: true},
	{name: "steady-75", load: load{count: 750, perSecond: 75}, pool: 1050, rounds: 1},
	{name: "burst-2000", load: load{count: 2000, inFlight: 200}, pool: 2000, rounds: 1},
}

// chooseScenarios returns those of the names, in order; all if there are no names. None has more claims or a larger pool than limit, if
// that is not 0.
func chooseScenarios(names []string, limit int) ([]scenario, error) {
	for _, name := range names {
		if !slices.ContainsFunc(scenarios, func(s scenario) bool { return s.name == name }) {
			return nil, fmt.Errorf("no scenario %q: there are %s", name, strings.Join(scenarioNames(), ", "))
		}
	}
	var chosen []scenario
	for _, s := range scenarios {
		if len(names) > 0 && !slices.Contains(names, s.name) {
			continue
		}
		if limit > 0 {
			s.load = s.atMost(limit)
			s.pool = min(s.pool, limit)
		}
		chosen = append(chosen, s)
	}
	return chosen, nil
}

func scenarioNames() []string {
	names := make([]string, len(scenarios))
	for i, s := range scenarios {
		names[i] = s.name
	}
	return names
}

// peers is the load of Pods to compare a scenario with: alike, but no longer than it must be.
func (s scenario) peers() load {
	l := s.atMost(maxPeers)
	if l.perSecond > 0 {
		l = l.atMost(max(int(l.perSecond*peerSeconds), 1))
	}
	return l
}
