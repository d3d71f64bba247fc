// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/version"
)

// newBuildInfo returns the gauge that says which build this is. It can be set once it is registered.
func newBuildInfo() *metrics.GaugeVec {
	return metrics.NewGaugeVec(&metrics.GaugeOpts{
		Name:           "agent_sandbox_build_info",
		Help:           "The build of the controller, in the labels. The value is always 1.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"git_version", "git_commit", "build_date", "go_version", "compiler", "platform"})
}

func setBuildInfo(gauge *metrics.GaugeVec) {
	info := version.Get()
	gauge.WithLabelValues(info.GitVersion, info.GitCommit, info.BuildDate, info.GoVersion, info.Compiler, info.Platform).Set(1)
}
