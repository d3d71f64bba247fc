// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/poll"
)

func TestParseStat(t *testing.T) {
	tail := " S 1 10 10 0 -1 4194560 100 0 0 0 5 6 0 0 20 0 1 0 4242 1000 200"
	for _, tc := range []struct {
		name, text string
		want       stat
		wantErr    bool
	}{
		{name: "plain name", text: "10 (etcd)" + tail, want: stat{'S', 4242}},
		{name: "name with spaces and parentheses", text: "10 (a) b (c)" + tail, want: stat{'S', 4242}},
		{name: "zombie", text: "10 (x)" + strings.Replace(tail, "S", "Z", 1), want: stat{'Z', 4242}},
		{name: "too short", text: "10 (x) S 1 2", wantErr: true},
		{name: "empty", text: "", wantErr: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := parseStat(tc.text)
			if (err != nil) != tc.wantErr {
				t.Fatalf("parseStat(%q): error %v, want error: %t", tc.text, err, tc.wantErr)
			}
			if err == nil && got != tc.want {
				t.Errorf("parseStat(%q) = %v, want %v", tc.text, got, tc.want)
			}
		})
	}
}

func TestRecordRoundTrip(t *testing.T) {
	want := record{pid: 7, start: 123456789, boot: "3b0c-11"}
	got, err := parseRecord(want.String())
	if err != nil || got != want {
		t.Errorf("parseRecord(%q) = %v, %v; want %v", want.String(), got, err, want)
	}
	if _, err := parseRecord("7"); err == nil {
		t.Error("parseRecord accepts a bare pid")
	}
}

func newGroup(t *testing.T) Group {
	t.Helper()
	dir := t.TempDir()
	return Group{Records: filepath.Join(dir, "processes"), Logs: filepath.Join(dir, "log")}
}

func TestGroupStartAndKill(t *testing.T) {
	g := newGroup(t)
	if _, err := g.Start(Spec{Name: "sleeper", Command: []string{"sleep", "1000"}}); err != nil {
		t.Fatal(err)
	}
	if !g.Running("sleeper") {
		t.Fatal("not running after start")
	}
	if err := g.Kill(t.Context(), "sleeper"); err != nil {
		t.Fatal(err)
	}
	if g.Running("sleeper") || len(g.Names()) != 0 {
		t.Errorf("running or recorded after kill: %v", g.Names())
	}
	if err := g.Kill(t.Context(), "sleeper"); err != nil {
		t.Errorf("second kill: %v", err)
	}
}

func TestGroupStopKillsWhatIgnoresTERM(t *testing.T) {
	g := newGroup(t)
	_, err := g.Start(Spec{Name: "stubborn", Command: []string{"sh", "-c", "trap '' TERM; echo on; while :; do read x; done"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Stop(t.Context(), "stubborn", 100*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if g.Running("stubborn") {
		t.Error("running after stop")
	}
}

// A record whose pid now belongs to another process must not lead to its end.
func TestGroupSparesRecycledPID(t *testing.T) {
	g := newGroup(t)
	if _, err := g.Start(Spec{Name: "other", Command: []string{"sleep", "1000"}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Kill(context.Background(), "other") }) //nolint:errcheck // The end of the test anyway.
	data, err := os.ReadFile(g.recordFile("other"))
	if err != nil {
		t.Fatal(err)
	}
	stale, err := parseRecord(string(data))
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*record){
		"earlier start": func(r *record) { r.start-- },
		"earlier boot":  func(r *record) { r.boot = "before" },
	} {
		r := stale
		change(&r)
		if err := os.WriteFile(g.recordFile("stale"), []byte(r.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		if g.Running("stale") {
			t.Errorf("%s: taken for the recorded process", name)
		}
		if err := g.Kill(t.Context(), "stale"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !g.Running("other") {
			t.Fatalf("%s: another process was killed", name)
		}
	}
}

func TestCheckRunningShowsLog(t *testing.T) {
	g := newGroup(t)
	if _, err := g.Start(Spec{Name: "failing", Command: []string{"sh", "-c", "echo port in use; exit 1"}}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var err error
	waitErr := poll.Until(ctx, 10*time.Millisecond, func() error {
		if err = g.CheckRunning("failing"); err == nil {
			return context.DeadlineExceeded
		}
		return nil
	})
	if waitErr != nil || !strings.Contains(err.Error(), "port in use") {
		t.Errorf("CheckRunning = %v, want the log's text (%v)", err, waitErr)
	}
}
