// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package poll

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestUntil(t *testing.T) {
	fatal, notYet := errors.New("fatal"), errors.New("not yet")
	for _, tc := range []struct {
		name    string
		results []error
		want    []error
	}{
		{name: "at once", results: []error{nil}},
		{name: "third attempt", results: []error{notYet, notYet, nil}},
		{name: "stops", results: []error{notYet, Stop(fatal), nil}, want: []error{fatal}},
		{name: "deadline tells the last error", results: nil, want: []error{context.DeadlineExceeded, notYet}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if len(tc.results) > 0 {
				ctx = t.Context()
			}
			calls := 0
			err := Until(ctx, time.Millisecond, func() error {
				calls++
				if calls > len(tc.results) {
					return notYet
				}
				return tc.results[calls-1]
			})
			if (err == nil) != (tc.want == nil) {
				t.Fatalf("Until = %v, want %v", err, tc.want)
			}
			for _, want := range tc.want {
				if !errors.Is(err, want) {
					t.Errorf("Until = %v, want it to wrap %v", err, want)
				}
			}
		})
	}
}
