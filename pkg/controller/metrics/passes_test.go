// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strings"
	"testing"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
)

func TestPassesAreCountedUnderTheNamesOfControllerRuntime(t *testing.T) {
	passes := NewPasses()
	registry := metrics.NewKubeRegistry()
	passes.Register(registry.MustRegister)
	passes.SetWorkers("sandbox", 7)
	passes.Begin("sandbox")(Success)
	passes.Begin("sandbox")(Error)
	passes.Begin("sandbox")

	const want = `
# HELP controller_runtime_active_workers [ALPHA] Number of passes that a controller makes right now.
# TYPE controller_runtime_active_workers gauge
controller_runtime_active_workers{controller="sandbox"} 1
# HELP controller_runtime_max_concurrent_reconciles [ALPHA] Number of passes that a controller makes at the same time at most.
# TYPE controller_runtime_max_concurrent_reconciles gauge
controller_runtime_max_concurrent_reconciles{controller="sandbox"} 7
# HELP controller_runtime_reconcile_errors_total [ALPHA] Number of passes that failed, by controller.
# TYPE controller_runtime_reconcile_errors_total counter
controller_runtime_reconcile_errors_total{controller="sandbox"} 1
# HELP controller_runtime_reconcile_total [ALPHA] Number of passes by controller and result.
# TYPE controller_runtime_reconcile_total counter
controller_runtime_reconcile_total{controller="sandbox",result="error"} 1
controller_runtime_reconcile_total{controller="sandbox",result="requeue"} 0
controller_runtime_reconcile_total{controller="sandbox",result="requeue_after"} 0
controller_runtime_reconcile_total{controller="sandbox",result="success"} 1
`
	err := testutil.GatherAndCompare(registry, strings.NewReader(want), "controller_runtime_active_workers", "controller_runtime_max_concurrent_reconciles",
		"controller_runtime_reconcile_errors_total", "controller_runtime_reconcile_total")
	if err != nil {
		t.Error(err)
	}
	durations, err := testutil.GetHistogramVecFromGatherer(registry, "controller_runtime_reconcile_time_seconds", map[string]string{"controller": "sandbox"})
	if err != nil || durations.GetAggregatedSampleCount() != 2 {
		t.Errorf("durations are %v, %v", durations, err)
	}
}

func TestUnregisteredPassesDoNothing(t *testing.T) {
	passes := NewPasses()
	passes.SetWorkers("sandbox", 1)
	passes.Begin("sandbox")(Success)
}
