// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"testing"
	"time"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/lightcluster"
)

func TestStarted(t *testing.T) {
	now := time.Unix(2000, 0)
	for text, want := range map[string]time.Time{
		"":            now,
		"yesterday":   now,
		"1000.250000": time.UnixMilli(1000250),
	} {
		if got := started(text, now); !got.Equal(want) {
			t.Errorf("started(%q) = %v, want %v", text, got, want)
		}
	}
}

func TestBinaryPairs(t *testing.T) {
	got := binaryPairs([]string{"/out/server", "/out/tool:/usr/bin/t"})
	want := [][2]string{{"/out/server", "/server"}, {"/out/tool", "/usr/bin/t"}}
	if !slices.Equal(got, want) {
		t.Errorf("binaryPairs = %q, want %q", got, want)
	}
}

func TestCheckOptions(t *testing.T) {
	for _, tc := range []struct {
		port  uint16
		nodes int
		ok    bool
	}{
		{16443, 1, true},
		{0, 1, false},
		{65530, 1, false},
		{16443, 0, false},
	} {
		if err := checkOptions(lightcluster.Options{Port: tc.port, Nodes: tc.nodes}); (err == nil) != tc.ok {
			t.Errorf("port %d, nodes %d: %v", tc.port, tc.nodes, err)
		}
	}
}

// Commands must say what is wrong instead of showing help and success.
func TestUsageErrors(t *testing.T) {
	for _, args := range [][]string{
		{"up"}, {"up", "imaginary"}, {"down"}, {"build", "imaginary"}, {"up", "light"}, {"image"}, {"load"}, {"start"},
		{"start", "sandbox-apiserver", "--dir=/nonexistent"}, {"route", "sandbox-controller", "--dir=/nonexistent"},
	} {
		root := New()
		root.SetArgs(args)
		if err := root.ExecuteContext(t.Context()); err == nil {
			t.Errorf("%q succeeds", args)
		}
	}
}
