// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package binder

import (
	"errors"
	"time"

	"k8s.io/component-base/metrics"
)

// route says in which request a claim was to be given a Sandbox.
type route string

const (
	routeCreate route = "create"
	routeBind   route = "bind"
)

// maxPoolSeries bounds the number of pools that have a series of their own.
const maxPoolSeries = 1000

// Registry is where metrics are registered.
type Registry struct {
	Register          func(metrics.Registerable) error
	RegisterCollector func(metrics.StableCollector) error
}

// bindMetrics tell how binding goes.
type bindMetrics struct {
	duration  *metrics.HistogramVec
	lostRaces *metrics.Counter
}

// newMetrics registers the metrics. counts tells the number of candidates of each pool.
func newMetrics(registry Registry, counts func() []count) (*bindMetrics, error) {
	m := &bindMetrics{
		duration: metrics.NewHistogramVec(&metrics.HistogramOpts{
			Namespace:      "sandbox_apiserver",
			Name:           "claim_bind_duration_seconds",
			Help:           "Time that it took to give a claim a Sandbox, or to find that there is none to give, by request (create or bind) and outcome.",
			Buckets:        []float64{.0005, .001, .002, .004, .008, .016, .032, .064, .128, .256, .512, 1, 2, 4},
			StabilityLevel: metrics.ALPHA,
		}, []string{"request", "outcome"}),
		lostRaces: metrics.NewCounter(&metrics.CounterOpts{
			Namespace:      "sandbox_apiserver",
			Name:           "claim_bind_lost_races_total",
			Help:           "Number of Sandboxes that were about to be given to a claim and turned out to have changed.",
			StabilityLevel: metrics.ALPHA,
		}),
	}
	return m, errors.Join(registry.Register(m.duration), registry.Register(m.lostRaces), registry.RegisterCollector(newCandidatesCollector(counts)))
}

func (m *bindMetrics) observe(route route, outcome outcome, took time.Duration) {
	m.duration.WithLabelValues(string(route), string(outcome)).Observe(took.Seconds())
}

// candidatesCollector reads the number of candidates when it is asked.
type candidatesCollector struct {
	metrics.BaseStableCollector

	desc   *metrics.Desc
	counts func() []count
}

func newCandidatesCollector(counts func() []count) *candidatesCollector {
	return &candidatesCollector{
		desc: metrics.NewDesc("sandbox_apiserver_claim_candidates",
			"Number of Sandboxes of a warm pool that can be given to claims now. Pools beyond the first thousand are added up under no name.",
			[]string{"namespace", "warmpool"}, nil, metrics.ALPHA, ""),
		counts: counts,
	}
}

// DescribeWithStability implements metrics.StableCollector.
func (c *candidatesCollector) DescribeWithStability(ch chan<- *metrics.Desc) { ch <- c.desc }

// CollectWithStability implements metrics.StableCollector.
func (c *candidatesCollector) CollectWithStability(ch chan<- metrics.Metric) {
	others := 0
	for i, count := range c.counts() {
		if i >= maxPoolSeries {
			others += count.candidates
			continue
		}
		ch <- metrics.NewLazyConstMetric(c.desc, metrics.GaugeValue, float64(count.candidates), count.pool.Namespace, count.pool.Name)
	}
	if others > 0 {
		ch <- metrics.NewLazyConstMetric(c.desc, metrics.GaugeValue, float64(others), "", "")
	}
}
