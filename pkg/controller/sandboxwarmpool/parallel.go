// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxwarmpool

import (
	"context"
	"sync"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/failure"
)

// maxParallel is how many requests for one pool are under way at the same time at most.
const maxParallel = 16

// slowly calls do for 0 up to count-1, in batches of 1, 2, 4 and so on up to maxParallel at the same time, and stops after the first batch
// with an error: what is refused is likely to be refused as often as it is asked for. It returns how many calls it made and an error of
// theirs, one that does not come from old data if there is any.
func slowly(ctx context.Context, count int, do func(int) error) (done int, err error) {
	for size := 1; done < count && err == nil && ctx.Err() == nil; size = min(2*size, maxParallel) {
		size = min(size, count-done)
		results := make([]error, size)
		var wg sync.WaitGroup
		for i := range size {
			wg.Go(func() { results[i] = do(done + i) })
		}
		wg.Wait()
		done += size
		for _, result := range results {
			if result != nil && (err == nil || failure.Outdated(err)) {
				err = result
			}
		}
	}
	return done, err
}
