// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package poll waits for conditions.
package poll

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// stop marks an error that no further attempt will mend.
type stop struct{ error }

func (s stop) Unwrap() error { return s.error }

// Stop makes Until return err at once.
func Stop(err error) error { return stop{err} }

// Until calls condition until it returns nil or a Stop error, or ctx ends. In
// the last case the error tells what condition said last.
func Until(ctx context.Context, interval time.Duration, condition func() error) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		err := condition()
		if err == nil {
			return nil
		}
		if s, ok := errors.AsType[stop](err); ok {
			return s.error
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; last: %w", context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}
