// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxwarmpool

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/failure"
)

func TestBatchesGrowUntilOneFails(t *testing.T) {
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		count int
		// errs holds the errors of single calls.
		errs    map[int]error
		want    error
		batches []int
	}{
		"none":                    {batches: nil},
		"few":                     {count: 5, batches: []int{1, 2, 2}},
		"many":                    {count: 50, batches: []int{1, 2, 4, 8, 16, 16, 3}},
		"the first fails":         {count: 50, errs: map[int]error{0: broken}, want: broken, batches: []int{1}},
		"one of a batch fails":    {count: 50, errs: map[int]error{4: broken}, want: broken, batches: []int{1, 2, 4}},
		"real errors come first":  {count: 50, errs: map[int]error{3: failure.ErrStale, 4: broken, 5: failure.ErrStale}, want: broken, batches: []int{1, 2, 4}},
		"errors of old data only": {count: 50, errs: map[int]error{0: failure.ErrStale}, want: failure.ErrStale, batches: []int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				// Calls of one batch begin at the same time, by the clock of the bubble.
				begun := make([]time.Time, test.count)
				done, err := slowly(t.Context(), test.count, func(i int) error {
					begun[i] = time.Now()
					<-time.After(time.Second)
					return test.errs[i]
				})
				if !errors.Is(err, test.want) {
					t.Errorf("error is %v", err)
				}
				var batches []int
				for i := range done {
					if i == 0 || !begun[i].Equal(begun[i-1]) {
						batches = append(batches, 0)
					}
					batches[len(batches)-1]++
				}
				if diff := cmp.Diff(test.batches, batches); diff != "" {
					t.Errorf("batches differ (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestNoBatchBeginsAfterTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	done, err := slowly(ctx, 10, func(int) error { cancel(); return nil })
	if done != 1 || err != nil {
		t.Errorf("%d calls, error %v", done, err)
	}
}
