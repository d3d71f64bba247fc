// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package progress prints what a long command is doing, so that it is never
// silent for long.
package progress

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Interval is how often Track repeats itself while one thing takes its time.
const Interval = 10 * time.Second

// Reporter prints lines that begin with the seconds since a given time.
type Reporter struct {
	mu    sync.Mutex
	out   io.Writer
	begin time.Time
}

// New returns a Reporter whose clock started at a given time.
func New(out io.Writer, begin time.Time) *Reporter {
	return &Reporter{out: out, begin: begin}
}

// Line prints one line.
func (r *Reporter) Line(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, "[%6.1fs] %s\n", time.Since(r.begin).Seconds(), fmt.Sprintf(format, args...))
}

// Track runs do, which may take minutes, and prints a line every Interval until
// it returns. If status is not nil, its result is added to those lines.
func (r *Reporter) Track(what string, status func() string, do func() error) error {
	begin := time.Now()
	done := make(chan struct{})
	var printer sync.WaitGroup
	printer.Go(func() {
		ticker := time.NewTicker(Interval)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				line := fmt.Sprintf("%s … %.0f s", what, time.Since(begin).Seconds())
				if status != nil {
					line += ", " + status()
				}
				r.Line("%s", line)
			}
		}
	})
	err := do()
	close(done)
	printer.Wait()
	return err
}
