// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"
)

// maxStatusWrites is how often the status of a Sandbox is written on its way to readiness: once with the Pod, once when it is ready.
const maxStatusWrites = 2

// The names of the stages that are judged.
const (
	stageReady   = "all ready"
	stageSettled = "settled"
	stageRest    = "rest"
	stageGone    = "all gone"
)

// writeReport writes a table of what each stage has added, and what the controller has asked for in total.
func writeReport(out io.Writer, sandboxes int, stages []stage) {
	if len(stages) < 2 {
		return
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(title string, value func(before, s *stage) string) {
		fmt.Fprintf(table, "%s\t", title)
		for i := 1; i < len(stages); i++ {
			fmt.Fprintf(table, "%s\t", value(&stages[i-1], &stages[i]))
		}
		fmt.Fprintln(table)
	}
	added := func(value func(*stage) float64) func(before, s *stage) string {
		return func(before, s *stage) string {
			n := value(s) - value(before)
			return fmt.Sprintf("%.0f (%.2f)", n, n/float64(sandboxes))
		}
	}
	megabytes := func(bytes float64) string { return fmt.Sprintf("%.0f MB", bytes/1e6) }

	row(fmt.Sprintf("%d Sandboxes; in brackets: for each", sandboxes), func(_, s *stage) string { return s.name })
	row("time", func(_, s *stage) string { return s.took.Round(100 * time.Millisecond).String() })
	row("controller: requests to kube-apiserver", added(func(s *stage) float64 { return float64(sum(s.traffic.requests[sandboxController])) }))
	row("controller: writes", added(func(s *stage) float64 { return float64(s.traffic.writes(sandboxController)) }))
	row("controller: Pod creates", added(func(s *stage) float64 { return float64(sum(s.traffic.podCreates)) }))
	row("controller: status writes", added(func(s *stage) float64 { return float64(sum(s.traffic.statusWrites)) }))
	row("controller: passes", added(func(s *stage) float64 { return s.controller.passes }))
	row("server: requests to kube-apiserver", added(func(s *stage) float64 { return float64(sum(s.traffic.requests[sandboxAPIServer])) }))
	row("server: status writes received", added(func(s *stage) float64 { return s.server.statusWrites }))
	row("server: other writes received", added(func(s *stage) float64 { return s.server.otherWrites }))
	row("server: etcd revisions", added(func(s *stage) float64 { return float64(s.serverRevision) }))
	row("cluster: etcd revisions", added(func(s *stage) float64 { return float64(s.clusterRevision) }))
	row("controller: CPU seconds", func(before, s *stage) string { return fmt.Sprintf("%.1f", s.controller.cpu-before.controller.cpu) })
	row("controller: memory at the end", func(_, s *stage) string { return megabytes(s.controller.memory) })
	row("server: CPU seconds", func(before, s *stage) string { return fmt.Sprintf("%.1f", s.server.cpu-before.server.cpu) })
	row("server: memory at the end", func(_, s *stage) string { return megabytes(s.server.memory) })
	_ = table.Flush()

	last := stages[len(stages)-1].traffic
	for _, program := range []string{sandboxController, sandboxAPIServer} {
		fmt.Fprintf(out, "\n%s asked kube-apiserver for:\n", program)
		for _, request := range slices.Sorted(maps.Keys(last.requests[program])) {
			fmt.Fprintf(out, "%8d  %s\n", last.requests[program][request], request)
		}
	}
}

// check returns what is wrong with the figures of a complete measurement.
func check(sandboxes int, stages []stage) error {
	byName := map[string]*stage{}
	for i := range stages {
		byName[stages[i].name] = &stages[i]
	}
	settled, rest, gone := byName[stageSettled], byName[stageRest], byName[stageGone]
	if settled == nil || rest == nil || gone == nil {
		return errors.New("the measurement is not complete")
	}
	var errs []error
	if total, most := sum(gone.traffic.podCreates), largest(gone.traffic.podCreates); total != sandboxes || most != 1 {
		errs = append(errs, fmt.Errorf("%d Pods were created for %d Sandboxes, up to %d for one", total, sandboxes, most))
	}
	if most := largest(gone.traffic.statusWrites); most > maxStatusWrites {
		errs = append(errs, fmt.Errorf("the status of a Sandbox was written %d times, more than %d", most, maxStatusWrites))
	}
	if writes := rest.traffic.writes(sandboxController) - settled.traffic.writes(sandboxController); writes != 0 || rest.changed {
		errs = append(errs, fmt.Errorf("at rest, the controller made %d writes, and Sandboxes changed: %v", writes, rest.changed))
	}
	return errors.Join(errs...)
}
