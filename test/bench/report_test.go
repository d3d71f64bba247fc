// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPercentile(t *testing.T) {
	t.Parallel()
	var hundred []time.Duration
	for i := range 100 {
		hundred = append(hundred, time.Duration(i+1))
	}
	for name, test := range map[string]struct {
		sorted []time.Duration
		p      int
		want   time.Duration
	}{
		"one sample":              {[]time.Duration{7}, 50, 7},
		"lower middle of an even": {[]time.Duration{1, 2, 3, 4}, 50, 2},
		"middle of an odd":        {[]time.Duration{1, 2, 3}, 50, 2},
		"p99 of few is the worst": {[]time.Duration{1, 2, 3}, 99, 3},
		"p90 of a hundred":        {hundred, 90, 90},
		"p99 of a hundred":        {hundred, 99, 99},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := percentile(test.sorted, test.p); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	r := newReport([]metric{{name: "a"}, {name: "b", baseline: "a"}}, map[string][]time.Duration{
		"a": {10 * time.Millisecond, 20 * time.Millisecond, 30 * time.Millisecond},
		"b": {30 * time.Millisecond, 10 * time.Millisecond, 1500 * time.Microsecond},
	})
	want := &report{Metrics: []summary{
		{Name: "a", Samples: 3, P50: 20, P90: 30, P99: 30},
		{Name: "b", Samples: 3, P50: 10, P90: 30, P99: 30, Baseline: "a", Ratio: 0.5},
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
