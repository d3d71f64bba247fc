// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package filelock

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestAcquireWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "lock")
	first, err := Acquire(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := Acquire(ctx, path); err == nil {
		t.Fatal("two holders")
	}
	first.Release()
	second, err := Acquire(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	second.Remove()
}

// Removing the file must not let two holders in.
func TestRemoveIsExclusive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	var holders atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 3 {
				lock, err := Acquire(t.Context(), path)
				if err != nil {
					t.Error(err)
					return
				}
				if n := holders.Add(1); n != 1 {
					t.Errorf("%d holders", n)
				}
				holders.Add(-1)
				lock.Remove()
			}
		})
	}
	all.Wait()
}
