// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseCPU(t *testing.T) {
	t.Parallel()
	const times = " S 1 1 1 0 -1 4194560 1 2 3 4 150 25 0 0 20 0 1 0 100"
	for name, test := range map[string]struct {
		stat string
		want time.Duration
	}{
		"plain name":                  {"12 (etcd)" + times, 1750 * time.Millisecond},
		"name with what separates":    {"12 (a b) c)" + times, 1750 * time.Millisecond},
		"not the stat of a process":   {"12 (etcd) S 1", 0},
		"not the stat of anything":    {"", 0},
		"words where numbers must be": {"12 (etcd) a b c d e f g h i j k l m", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parseCPU(test.stat)
			if got != test.want || (err == nil) != (test.want > 0) {
				t.Errorf("got %v and error %v, want %v", got, err, test.want)
			}
		})
	}
}

func TestParseMemory(t *testing.T) {
	t.Parallel()
	status := []byte("Name:\tetcd\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n")
	for name, want := range map[string]int64{"VmRSS": 1 << 20, "VmHWM": 2 << 20, "VmSwap": 0} {
		got, err := parseMemory(status, name)
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("%s: got %d and error %v, want %d", name, got, err, want)
		}
	}
}

func TestReadUsage(t *testing.T) {
	t.Parallel()
	got, err := readUsage(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if got.memory < 1<<20 || got.peak < got.memory {
		t.Errorf("this process has %d bytes in memory and had %d", got.memory, got.peak)
	}
	if _, err := readUsage(-1); err == nil {
		t.Error("no error about a process that there is not")
	}
}

func TestParseProcesses(t *testing.T) {
	t.Parallel()
	got, err := parseProcesses([]string{"controller=12", "server=34"})
	if diff := cmp.Diff(map[string]int{"controller": 12, "server": 34}, got); diff != "" || err != nil {
		t.Errorf("error %v, processes (-want +got):\n%s", err, diff)
	}
	for _, arg := range []string{"controller", "=12", "controller=", "controller=x", "controller=0"} {
		if _, err := parseProcesses([]string{arg}); err == nil {
			t.Errorf("%q is taken", arg)
		}
	}
}
