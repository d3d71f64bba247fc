// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"k8s.io/component-base/metrics/testutil"
)

// Metrics is what a program says about itself at one moment.
type Metrics struct{ samples testutil.Metrics }

// Scrape reads the metrics of a program. The URL is that of its Process with the path /metrics.
func Scrape(ctx context.Context, client *http.Client, url string) (Metrics, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return Metrics{}, err
	}
	response, err := client.Do(request)
	if err != nil {
		return Metrics{}, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return Metrics{}, err
	}
	if response.StatusCode != http.StatusOK {
		return Metrics{}, fmt.Errorf("%s: %s: %s", url, response.Status, body)
	}
	metrics, err := ParseMetrics(string(body))
	if err != nil {
		return Metrics{}, fmt.Errorf("%s: %w", url, err)
	}
	return metrics, nil
}

// ParseMetrics reads metrics from their text form.
func ParseMetrics(text string) (Metrics, error) {
	samples := testutil.NewMetrics()
	err := testutil.ParseMetrics(text, &samples)
	return Metrics{samples}, err
}

// Total adds up the samples of a metric whose labels count says yes to. The name is that of the samples: a histogram has some with the
// suffixes _sum and _count.
func (m Metrics) Total(name string, count func(labels map[string]string) bool) float64 {
	var total float64
	for _, sample := range m.samples[name] {
		labels := map[string]string{}
		for key, value := range sample.Metric {
			labels[string(key)] = string(value)
		}
		if count(labels) {
			total += float64(sample.Value)
		}
	}
	return total
}
