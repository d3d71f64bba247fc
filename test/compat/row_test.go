// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
)

// row is one rule of the contract.
type row struct {
	// id names the row.
	id string
	// rule is what must be observed.
	rule string
	// beyond says, unless it is empty, why only this project promises the rule: since which release upstream does, or what is
	// better here. Another implementation that does not keep it is reported and does not fail.
	beyond string
	// run does what the rule is about, and fails t if something else is observed.
	run func(t *tester)
}

// runRows runs each row as a subtest, in parallel with all others.
func runRows(t *testing.T, rows ...row) {
	t.Parallel()
	for _, r := range rows {
		t.Run(r.id, func(t *testing.T) {
			t.Parallel()
			lenient := &tester{T: t, lenient: r.beyond != "" && !env.ours}
			t.Cleanup(func() {
				env.report.add(entry{test: t.Name(), row: r, failed: t.Failed(), differences: lenient.differences})
			})
			t.Log(r.rule)
			r.run(lenient)
			if len(lenient.differences) > 0 {
				t.SkipNow()
			}
		})
	}
}

// tester is a testing.T whose failures are noted and not counted where the rule need not hold.
type tester struct {
	*testing.T
	lenient bool

	mu          sync.Mutex
	differences []string
}

// Errorf notes a failure.
func (t *tester) Errorf(format string, args ...any) {
	t.Helper()
	if !t.lenient {
		t.T.Errorf(format, args...)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.differences = append(t.differences, fmt.Sprintf(format, args...))
	t.Logf("differs: "+format, args...)
}

// Fatalf notes a failure and ends the row.
func (t *tester) Fatalf(format string, args ...any) {
	t.Helper()
	t.Errorf(format, args...)
	if t.lenient {
		t.SkipNow()
	}
	t.FailNow()
}

// Error is Errorf without a format.
func (t *tester) Error(args ...any) {
	t.Helper()
	t.Errorf("%s", strings.TrimSuffix(fmt.Sprintln(args...), "\n"))
}

// Fatal is Fatalf without a format.
func (t *tester) Fatal(args ...any) {
	t.Helper()
	t.Fatalf("%s", strings.TrimSuffix(fmt.Sprintln(args...), "\n"))
}

// entry is how a row went.
type entry struct {
	test        string
	row         row
	failed      bool
	differences []string
}

// report collects how rows went.
type report struct {
	mu      sync.Mutex
	entries []entry
}

func (r *report) add(e entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries = append(r.entries, e)
}

// print writes one line for each row that did not hold, and for each that holds although nobody promised it.
func (r *report) print(to io.Writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortFunc(r.entries, func(a, b entry) int { return cmp.Compare(a.test, b.test) })
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	held := 0
	for _, e := range r.entries {
		switch {
		case e.failed:
			fmt.Fprintf(w, "FAILED\t%s\t%s\n", e.test, e.row.rule)
		case len(e.differences) > 0:
			fmt.Fprintf(w, "DIFFERS\t%s\t%s: %s\n", e.test, e.row.beyond, firstLine(e.differences[0]))
		case e.row.beyond != "":
			fmt.Fprintf(w, "HOLDS\t%s\tthough not promised: %s\n", e.test, e.row.beyond)
			held++
		default:
			held++
		}
	}
	fmt.Fprintf(w, "%d of %d rows hold\n", held, len(r.entries))
	if err := w.Flush(); err != nil {
		fmt.Fprintln(to, err)
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
