// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChooseScenarios(t *testing.T) {
	t.Parallel()
	type size struct{ Claims, Pool int }
	for name, test := range map[string]struct {
		names []string
		limit int
		want  map[string]size
	}{
		"some":         {[]string{"sequential", "steady-5"}, 0, map[string]size{"steady-5": {100, 100}, "sequential": {450, 500}}},
		"some, limits": {[]string{"sequential", "steady-5"}, 200, map[string]size{"steady-5": {100, 100}, "sequential": {200, 200}}},
		"all, limits": {nil, 10, map[string]size{
			"steady-5": {10, 10}, "burst-200": {10, 10}, "at-once-300": {10, 10}, "sequential": {10, 10}, "steady-75": {10, 10}, "burst-2000": {10, 10},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chosen, err := chooseScenarios(test.names, test.limit)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]size{}
			for _, s := range chosen {
				got[s.name] = size{s.count, s.pool}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("scenarios (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := chooseScenarios([]string{"steady-5", "nonsense"}, 0); err == nil {
		t.Error("no error about a scenario that there is not")
	}
}

// A pool that must shrink would leave Sandboxes to be deleted while claims are measured, one that is smaller than a round would have
// claims start cold.
func TestPoolsGrowAndSuffice(t *testing.T) {
	t.Parallel()
	last := 0
	for _, s := range scenarios {
		if s.pool < last {
			t.Errorf("%s: the pool of %d is smaller than the one before", s.name, s.pool)
		}
		if s.pool < s.count {
			t.Errorf("%s: the pool of %d is smaller than a round of %d claims", s.name, s.pool, s.count)
		}
		last = s.pool
	}
}

func TestPeers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ load, want load }{
		"few":             {load{count: 200, inFlight: 50}, load{count: 200, inFlight: 50}},
		"many":            {load{count: 2000, inFlight: 200}, load{count: 500, inFlight: 200}},
		"at a low rate":   {load{count: 100, perSecond: 5}, load{count: 50, perSecond: 5}},
		"at a high rate":  {load{count: 750, perSecond: 75}, load{count: 500, perSecond: 75}},
		"at a lower rate": {load{count: 3, perSecond: 0.01}, load{count: 1, perSecond: 0.01}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := scenario{load: test.load}.peers()
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(load{})); diff != "" {
				t.Errorf("peers (-want +got):\n%s", diff)
			}
		})
	}
}
