// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package latency describes samples of how long something took, as all benchmarks of the project report them.
package latency

import (
	"slices"
	"time"
)

// Distribution describes samples. Times are in milliseconds; all are 0 if there are no samples.
type Distribution struct {
	Samples int     `json:"samples"`
	P50     float64 `json:"p50"`
	P90     float64 `json:"p90"`
	P99     float64 `json:"p99"`
	Max     float64 `json:"max"`
}

// Of describes samples, which may be in any order and are not changed.
func Of(samples []time.Duration) Distribution {
	if len(samples) == 0 {
		return Distribution{}
	}
	sorted := slices.Sorted(slices.Values(samples))
	return Distribution{
		Samples: len(sorted),
		P50:     Milliseconds(percentile(sorted, 50)),
		P90:     Milliseconds(percentile(sorted, 90)),
		P99:     Milliseconds(percentile(sorted, 99)),
		Max:     Milliseconds(sorted[len(sorted)-1]),
	}
}

// Mean returns the mean in milliseconds, and 0 if there are no samples.
func Mean(samples []time.Duration) float64 {
	if len(samples) == 0 {
		return 0
	}
	var total time.Duration
	for _, sample := range samples {
		total += sample
	}
	return Milliseconds(total / time.Duration(len(samples)))
}

// Milliseconds has the precision of a microsecond.
func Milliseconds(d time.Duration) float64 {
	return float64(d.Microseconds()) / 1000
}

// percentile returns the smallest sample that at least p percent of all samples do not exceed (the nearest rank).
func percentile(sorted []time.Duration, p int) time.Duration {
	rank := (len(sorted)*p + 99) / 100
	return sorted[max(rank, 1)-1]
}
