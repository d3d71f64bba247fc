// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package filelock makes processes take turns.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/poll"
)

// Lock is held by one process at a time.
type Lock struct {
	path string
	file *os.File
}

// Acquire waits for the exclusive lock on a path. The kernel releases it when
// the process ends, whatever way it ends.
func Acquire(ctx context.Context, path string) (*Lock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	lock := &Lock{path: path}
	if err := poll.Until(ctx, 50*time.Millisecond, lock.try); err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return lock, nil
}

// try takes the lock if it is free.
func (l *Lock) try() error {
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return poll.Stop(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return errors.Join(errors.New("another process holds it"), f.Close())
	}
	// The holder before may have removed the file after it was opened here.
	mine, err := f.Stat()
	current, currentErr := os.Stat(l.path)
	if err != nil || currentErr != nil || !os.SameFile(mine, current) {
		return errors.Join(errors.New("the file was removed"), f.Close())
	}
	l.file = f
	return nil
}

// Release lets the next process have the lock.
func (l *Lock) Release() { l.file.Close() }

// Remove is Release for a lock that will not be needed soon: it leaves no file.
func (l *Lock) Remove() {
	os.Remove(l.path) // An empty file does no harm.
	l.file.Close()
}
