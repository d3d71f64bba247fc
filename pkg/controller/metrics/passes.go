// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package metrics holds the metrics that all controllers have in common. Those of one kind are in the package of its controller.
package metrics

import (
	"time"

	"k8s.io/component-base/metrics"
)

// Result is what came of a pass, as the value of a label.
type Result string

// The results of passes, in the words of controller-runtime.
const (
	// Success: nothing is left to do until something happens.
	Success Result = "success"
	// Error: the pass is repeated after a growing delay.
	Error Result = "error"
	// Requeue: the pass met data that is out of date, and is repeated.
	Requeue Result = "requeue"
	// RequeueAfter: another pass is due at a known time.
	RequeueAfter Result = "requeue_after"
)

// Passes counts and times the passes of controllers. The names of its metrics are those of controller-runtime, by which dashboards
// and alerts for the upstream controller find them. One that is not registered does nothing.
type Passes struct {
	total   *metrics.CounterVec
	errors  *metrics.CounterVec
	seconds *metrics.HistogramVec
	workers *metrics.GaugeVec
	active  *metrics.GaugeVec
}

// NewPasses returns Passes that are registered nowhere.
func NewPasses() *Passes {
	return &Passes{
		total: metrics.NewCounterVec(&metrics.CounterOpts{
			Name:           "controller_runtime_reconcile_total",
			Help:           "Number of passes by controller and result.",
			StabilityLevel: metrics.ALPHA,
		}, []string{"controller", "result"}),
		errors: metrics.NewCounterVec(&metrics.CounterOpts{
			Name:           "controller_runtime_reconcile_errors_total",
			Help:           "Number of passes that failed, by controller.",
			StabilityLevel: metrics.ALPHA,
		}, []string{"controller"}),
		seconds: metrics.NewHistogramVec(&metrics.HistogramOpts{
			Name: "controller_runtime_reconcile_time_seconds",
			Help: "Duration of a pass in seconds, by controller.",
			Buckets: []float64{
				0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1,
				1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
			},
			StabilityLevel: metrics.ALPHA,
		}, []string{"controller"}),
		workers: metrics.NewGaugeVec(&metrics.GaugeOpts{
			Name:           "controller_runtime_max_concurrent_reconciles",
			Help:           "Number of passes that a controller makes at the same time at most.",
			StabilityLevel: metrics.ALPHA,
		}, []string{"controller"}),
		active: metrics.NewGaugeVec(&metrics.GaugeOpts{
			Name:           "controller_runtime_active_workers",
			Help:           "Number of passes that a controller makes right now.",
			StabilityLevel: metrics.ALPHA,
		}, []string{"controller"}),
	}
}

// Register registers all metrics of passes by calling register, which is that of a registry.
func (p *Passes) Register(register func(...metrics.Registerable)) {
	register(p.total, p.errors, p.seconds, p.workers, p.active)
}

// SetWorkers notes how many workers a controller has, and makes its metrics appear.
func (p *Passes) SetWorkers(controller string, workers int) {
	p.workers.WithLabelValues(controller).Set(float64(workers))
	for _, result := range []Result{Success, Error, Requeue, RequeueAfter} {
		p.total.WithLabelValues(controller, string(result)).Add(0)
	}
	p.errors.WithLabelValues(controller).Add(0)
}

// Begin notes that a pass begins, and returns what is to be called once when it has ended.
func (p *Passes) Begin(controller string) func(Result) {
	p.active.WithLabelValues(controller).Inc()
	begin := time.Now()
	return func(result Result) {
		p.seconds.WithLabelValues(controller).Observe(time.Since(begin).Seconds())
		p.total.WithLabelValues(controller, string(result)).Inc()
		if result == Error {
			p.errors.WithLabelValues(controller).Inc()
		}
		p.active.WithLabelValues(controller).Dec()
	}
}
