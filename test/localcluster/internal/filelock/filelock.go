// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package filelock makes processes take turns.
package filelock

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/poll"
)

// Acquire takes the exclusive lock on path and returns a function that releases
// it. The kernel releases it too when the process ends, whatever way it ends;
// the file itself stays, since removing it would let two holders in.
func Acquire(ctx context.Context, path string) (release func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = poll.Until(ctx, 100*time.Millisecond, func() error {
		return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	})
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s, which another process holds: %w", path, err)
	}
	return func() { f.Close() }, nil
}
