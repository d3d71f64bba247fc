// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package rush

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

func TestDelay(t *testing.T) {
	for _, test := range []struct {
		name   string
		claims int
		every  time.Duration
		then   time.Duration
		want   bool
	}{
		{"no claim yet", 0, 0, 0, false},
		{"fewer at once than a crowd", crowd - 1, 0, 0, false},
		{"a crowd at once", crowd, 0, 0, true},
		{"a crowd, and it is over", crowd, 0, window + time.Millisecond, false},
		{"75 per second", 300, time.Second / 75, 0, false},
		{"200 per second", 300, time.Second / 200, 0, true},
		{"200 per second, and it is over", 300, time.Second / 200, window, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
			meter := NewMeter(clock)
			for range test.claims {
				clock.Step(test.every)
				meter.Note()
			}
			clock.Step(test.then)
			got := meter.Delay()
			if (got > 0) != test.want {
				t.Errorf("delay is %v", got)
			}
			if got != 0 && (got < pause || got > pause*3/2) {
				t.Errorf("delay is %v, want %v to %v", got, pause, pause*3/2)
			}
		})
	}
}
