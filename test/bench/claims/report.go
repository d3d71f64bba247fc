// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/bench/latency"
)

// report is what a run has found.
type report struct {
	// Cluster is what was measured.
	Cluster string    `json:"cluster"`
	Results []*result `json:"results"`
}

// check returns what must not have happened.
func (r *report) check() error {
	var errs []error
	for _, result := range r.Results {
		if result.Errors > 0 || result.WrongBindings > 0 {
			errs = append(errs, fmt.Errorf("%s: %d errors, %d wrong bindings:\n  %s",
				result.Scenario, result.Errors, result.WrongBindings, strings.Join(result.Messages, "\n  ")))
		}
	}
	return errors.Join(errs...)
}

// notAvailable stands for what the cluster does not tell.
const notAvailable = "n/a"

// writeTable writes a column for each scenario. Times are in milliseconds unless the row says otherwise.
func (r *report) writeTable(to io.Writer) error {
	if len(r.Results) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(title string, value func(*result) string) {
		fmt.Fprintf(table, "%s\t", title)
		for _, result := range r.Results {
			fmt.Fprintf(table, "%s\t", value(result))
		}
		fmt.Fprintln(table) // Flush returns the error.
	}
	number := func(format string, value func(*result) float64) func(*result) string {
		return func(r *result) string { return fmt.Sprintf(format, value(r)) }
	}
	row("cluster: "+r.Cluster, func(r *result) string { return r.Scenario })
	row("claims", func(r *result) string { return fmt.Sprint(r.Claims) })
	quantiles := func(title string, of func(*result) latency.Distribution) {
		row(title+" p50", number("%.1f", func(r *result) float64 { return of(r).P50 }))
		row("p90", number("%.1f", func(r *result) float64 { return of(r).P90 }))
		row("p99", number("%.1f", func(r *result) float64 { return of(r).P99 }))
		row("max", number("%.1f", func(r *result) float64 { return of(r).Max }))
	}
	quantiles("POST", func(r *result) latency.Distribution { return r.Post })
	quantiles("Ready", func(r *result) latency.Distribution { return r.Ready })
	quantiles("Ready by a watch", func(r *result) latency.Distribution { return r.Watched })
	quantiles("POST of a bare Pod", func(r *result) latency.Distribution { return r.PodPost })
	row("claim / Pod, p50 of POST", number("%.2f", func(r *result) float64 { return r.Ratio }))
	row("claims per second", number("%.0f", func(r *result) float64 { return r.PerSecond }))
	row("ready in the answer", number("%.1f%%", func(r *result) float64 { return 100 * r.ReadyInAnswer }))
	row("started cold", number("%.1f%%", func(r *result) float64 { return 100 * r.Cold }))
	row("errors", func(r *result) string { return fmt.Sprint(r.Errors) })
	row("double and other wrong bindings", func(r *result) string { return fmt.Sprint(r.WrongBindings) })
	row("pool full again after (s)", func(r *result) string {
		if len(r.Refill) == 0 {
			return notAvailable
		}
		return fmt.Sprintf("%.1f", slices.Max(r.Refill))
	})
	r.writeServerRows(row)
	r.writeProcessRows(row)
	return table.Flush()
}

// writeServerRows writes what only the server of the project tells.
func (r *report) writeServerRows(row func(string, func(*result) string)) {
	server := func(format string, value func(*serverCosts) float64) func(*result) string {
		return func(r *result) string {
			if r.Server == nil {
				return notAvailable
			}
			return fmt.Sprintf(format, value(r.Server))
		}
	}
	row("etcd writes per claim", server("%.2f", func(s *serverCosts) float64 { return s.WritesPerClaim }))
	row("server's requests to kube-apiserver per claim", server("%.3f", func(s *serverCosts) float64 { return s.RequestsPerClaim }))
	row("mean POST at the client", server("%.2f", func(s *serverCosts) float64 { return s.Client }))
	row("at kube-apiserver", server("%.2f", func(s *serverCosts) float64 { return s.KubeAPIServer }))
	row("at the server", server("%.2f", func(s *serverCosts) float64 { return s.Server }))
	row("at its etcd", server("%.2f", func(s *serverCosts) float64 { return s.Etcd }))
}

// writeProcessRows writes the usage of each process.
func (r *report) writeProcessRows(row func(string, func(*result) string)) {
	names := map[string]bool{}
	for _, result := range r.Results {
		for name := range result.Processes {
			names[name] = true
		}
	}
	process := func(name, format string, value func(processCosts) float64) func(*result) string {
		return func(r *result) string {
			costs, known := r.Processes[name]
			if !known {
				return notAvailable
			}
			return fmt.Sprintf(format, value(costs))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		row("CPU seconds: "+name, process(name, "%.2f", func(c processCosts) float64 { return c.CPUSeconds }))
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		row("memory (MB): "+name, process(name, "%.0f", func(c processCosts) float64 { return c.MemoryMB }))
	}
}
