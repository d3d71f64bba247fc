// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/bench/latency"
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
	Name string `json:"name"`
	latency.Distribution
	// Baseline is the metric that Ratio compares with; both are absent where there is none.
	Baseline string `json:"baseline,omitempty"`
	// Ratio is P50 divided by that of the baseline.
	Ratio float64 `json:"ratio,omitempty"`
}

// newReport summarizes the samples of each metric. There must be at least one of each.
func newReport(metrics []metric, samples map[string][]time.Duration) *report {
	r := &report{}
	for _, m := range metrics {
		s := summary{Name: m.name, Distribution: latency.Of(samples[m.name]), Baseline: m.baseline}
		if m.baseline != "" {
			s.Ratio = s.P50 / latency.Of(samples[m.baseline]).P50
		}
		r.Metrics = append(r.Metrics, s)
	}
	return r
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
