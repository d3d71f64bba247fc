// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/bench/latency"
)

func TestReport(t *testing.T) {
	t.Parallel()
	r := newReport([]metric{{name: "a"}, {name: "b", baseline: "a"}}, map[string][]time.Duration{
		"a": {10 * time.Millisecond, 20 * time.Millisecond, 30 * time.Millisecond},
		"b": {30 * time.Millisecond, 10 * time.Millisecond, 1500 * time.Microsecond},
	})
	want := &report{Metrics: []summary{
		{Name: "a", Distribution: latency.Distribution{Samples: 3, P50: 20, P90: 30, P99: 30, Max: 30}},
		{Name: "b", Distribution: latency.Distribution{Samples: 3, P50: 10, P90: 30, P99: 30, Max: 30}, Baseline: "a", Ratio: 0.5},
	}}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}

	var table bytes.Buffer
	if err := r.writeTable(&table); err != nil {
		t.Fatal(err)
	}
	const wantTable = "METRIC (ms)   P50    P90    P99    P50 RATIO\n" +
		"a             20.0   30.0   30.0   \n" +
		"b             10.0   30.0   30.0   0.50 × a\n"
	if diff := cmp.Diff(wantTable, table.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}
