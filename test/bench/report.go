// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// metric is something that is measured, with that which it is compared to, if there is one.
type metric struct {
	name, baseline string
}

// report is what a run has found. Times are in milliseconds.
type report struct {
	Metrics []summary `json:"metrics"`
}

// summary describes the samples of one metric.
type summary struct {
	Name    string  `json:"name"`
	Samples int     `json:"samples"`
	P50     float64 `json:"p50"`
	P90     float64 `json:"p90"`
	P99     float64 `json:"p99"`
	// Baseline is the metric that Ratio compares with; both are absent where there is none.
	Baseline string `json:"baseline,omitempty"`
	// Ratio is P50 divided by that of the baseline.
	Ratio float64 `json:"ratio,omitempty"`
}

// newReport summarizes the samples of each metric. There must be at least one of each.
func newReport(metrics []metric, samples map[string][]time.Duration) *report {
	r := &report{}
	for _, m := range metrics {
		sorted := slices.Sorted(slices.Values(samples[m.name]))
		s := summary{
			Name: m.name, Samples: len(sorted), Baseline: m.baseline,
			P50: milliseconds(percentile(sorted, 50)), P90: milliseconds(percentile(sorted, 90)), P99: milliseconds(percentile(sorted, 99)),
		}
		if m.baseline != "" {
			baseline := slices.Sorted(slices.Values(samples[m.baseline]))
			s.Ratio = s.P50 / milliseconds(percentile(baseline, 50))
		}
		r.Metrics = append(r.Metrics, s)
	}
	return r
}

// percentile returns the smallest sample that at least p percent of all samples do not exceed (the nearest rank).
func percentile(sorted []time.Duration, p int) time.Duration {
	rank := (len(sorted)*p + 99) / 100
	return sorted[max(rank, 1)-1]
}

func milliseconds(d time.Duration) float64 {
	return float64(d.Microseconds()) / 1000
}

func (r *report) writeJSON(to io.Writer) error {
	encoder := json.NewEncoder(to)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

func (r *report) writeTable(to io.Writer) error {
	table := tabwriter.NewWriter(to, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "METRIC (ms)\tP50\tP90\tP99\tP50 RATIO") // Flush returns the error.
	for _, m := range r.Metrics {
		ratio := ""
		if m.Baseline != "" {
			ratio = fmt.Sprintf("%.2f × %s", m.Ratio, m.Baseline)
		}
		fmt.Fprintf(table, "%s\t%.1f\t%.1f\t%.1f\t%s\n", m.Name, m.P50, m.P90, m.P99, ratio) // Flush returns the error.
	}
	return table.Flush()
}
