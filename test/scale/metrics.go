// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"k8s.io/component-base/metrics/testutil"
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
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s: %s", url, response.Status, body)
	}
	samples := testutil.NewMetrics()
	if err := testutil.ParseMetrics(string(body), &samples); err != nil {
		return nil, fmt.Errorf("%s: %w", url, err)
	}
	return newProgram(samples), nil
}

func newProgram(samples testutil.Metrics) *program {
	total := func(name string, counts func(label func(string) string) bool) float64 {
		var total float64
		for _, sample := range samples[name] {
			metric := sample.Metric
			label := func(name string) string {
				for key, value := range metric {
					if string(key) == name {
						return string(value)
					}
				}
				return ""
			}
			if counts(label) {
				total += float64(sample.Value)
			}
		}
		return total
	}
	all := func(func(string) string) bool { return true }
	written := func(subresource bool) func(func(string) string) bool {
		return func(label func(string) string) bool {
			switch label("verb") {
			case "POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION":
				return label("resource") == "sandboxes" && (label("subresource") == "status") == subresource
			}
			return false
		}
	}
	return &program{
		memory:       total("process_resident_memory_bytes", all),
		cpu:          total("process_cpu_seconds_total", all),
		passes:       total("controller_runtime_reconcile_total", all),
		statusWrites: total("apiserver_request_total", written(true)),
		otherWrites:  total("apiserver_request_total", written(false)),
	}
}
