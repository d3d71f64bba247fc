// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/http"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

// program is what the metrics of a program say.
type program struct {
	// memory is the resident set in bytes, cpu the processor time in seconds.
	memory, cpu float64
	// passes is how many passes a controller has made.
	passes float64
	// statusWrites and otherWrites count the requests that an API server has got to change Sandboxes.
	statusWrites, otherWrites float64
}

// scrape reads the metrics of a program.
func scrape(ctx context.Context, client *http.Client, url string) (*program, error) {
	metrics, err := framework.Scrape(ctx, client, url)
	if err != nil {
		return nil, err
	}
	return newProgram(metrics), nil
}

func newProgram(metrics framework.Metrics) *program {
	all := func(map[string]string) bool { return true }
	written := func(subresource bool) func(map[string]string) bool {
		return func(labels map[string]string) bool {
			switch labels["verb"] {
			case "POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION":
				return labels["resource"] == "sandboxes" && (labels["subresource"] == "status") == subresource
			}
			return false
		}
	}
	return &program{
		memory:       metrics.Total("process_resident_memory_bytes", all),
		cpu:          metrics.Total("process_cpu_seconds_total", all),
		passes:       metrics.Total("controller_runtime_reconcile_total", all),
		statusWrites: metrics.Total("apiserver_request_total", written(true)),
		otherWrites:  metrics.Total("apiserver_request_total", written(false)),
	}
}
