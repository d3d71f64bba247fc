// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// milliseconds returns samples in milliseconds.
func milliseconds(values ...int) []time.Duration {
	samples := make([]time.Duration, len(values))
	for i, value := range values {
		samples[i] = time.Duration(value) * time.Millisecond
	}
	return samples
}

func TestOf(t *testing.T) {
	t.Parallel()
	var hundred []int
	for i := range 100 {
		hundred = append(hundred, 100-i)
	}
	for name, test := range map[string]struct {
		samples []time.Duration
		want    Distribution
	}{
		"none":           {nil, Distribution{}},
		"one":            {milliseconds(7), Distribution{1, 7, 7, 7, 7}},
		"an even number": {milliseconds(4, 2, 3, 1), Distribution{4, 2, 4, 4, 4}},
		"an odd number":  {milliseconds(3, 1, 2), Distribution{3, 2, 3, 3, 3}},
		"a hundred":      {milliseconds(hundred...), Distribution{100, 50, 90, 99, 100}},
		"microseconds":   {[]time.Duration{1500*time.Microsecond + 1}, Distribution{1, 1.5, 1.5, 1.5, 1.5}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, Of(test.samples)); diff != "" {
				t.Errorf("distribution (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOfLeavesSamplesAlone(t *testing.T) {
	t.Parallel()
	samples := milliseconds(3, 1, 2)
	Of(samples)
	if diff := cmp.Diff(milliseconds(3, 1, 2), samples); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
}

func TestMean(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		samples []time.Duration
		want    float64
	}{
		"none":  {nil, 0},
		"three": {milliseconds(1, 2, 6), 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Mean(test.samples); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
