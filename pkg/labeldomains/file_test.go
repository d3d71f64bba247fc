// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package labeldomains

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/wait"
	clocktesting "k8s.io/utils/clock/testing"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func mustOpen(t *testing.T, path string) *File {
	t.Helper()
	file, err := NewFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func wantList(t *testing.T, file *File, want List) {
	t.Helper()
	if diff := cmp.Diff(want, file.Current()); diff != "" {
		t.Errorf("list differs (-want +got):\n%s", diff)
	}
}

func TestFileIsReadAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "domains")
	write(t, path, "a.io\n")
	wantList(t, mustOpen(t, path), List{"a.io"})
}

func TestMissingFileStandsForTheDefault(t *testing.T) {
	wantList(t, mustOpen(t, filepath.Join(t.TempDir(), "none")), Default)
	wantList(t, mustOpen(t, ""), Default)
}

func TestUnreadableFileIsAnErrorAtStart(t *testing.T) {
	if _, err := NewFile(t.TempDir()); err == nil {
		t.Error("a directory was read")
	}
}

func TestUnreadableFileChangesNothingLater(t *testing.T) {
	path := filepath.Join(t.TempDir(), "domains")
	write(t, path, "a.io")
	file := mustOpen(t, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	file.reload(t.Context())
	wantList(t, file, List{"a.io"})
}

// TestSwapOfAConfigMapVolumeIsNoticed changes the file the way kubelet does: a link to a directory is replaced by another.
func TestSwapOfAConfigMapVolumeIsNoticed(t *testing.T) {
	dir := t.TempDir()
	for version, text := range map[string]string{"v1": "a.io", "v2": "b.io"} {
		if err := os.Mkdir(filepath.Join(dir, version), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, version, "domains"), text)
	}
	link := func(version string) {
		t.Helper()
		if err := os.Symlink(version, filepath.Join(dir, "tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "tmp"), filepath.Join(dir, "data")); err != nil {
			t.Fatal(err)
		}
	}
	link("v1")
	file := mustOpen(t, filepath.Join(dir, "data", "domains"))
	link("v2")
	file.reload(t.Context())
	wantList(t, file, List{"b.io"})
}

func TestListenersAreToldOfChangesOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "domains")
	write(t, path, "a.io")
	file := mustOpen(t, path)
	var told []List
	file.OnChange(func() { told = append(told, file.Current()) })
	file.reload(t.Context())
	write(t, path, "b.io")
	file.reload(t.Context())
	file.reload(t.Context())
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	file.reload(t.Context())
	if diff := cmp.Diff([]List{{"b.io"}, Default}, told); diff != "" {
		t.Errorf("told differs (-want +got):\n%s", diff)
	}
}

func TestRunReadsTheFileAgainAndAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "domains")
	fake := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	file := mustOpen(t, path)
	file.clock = fake
	changed := make(chan struct{})
	file.OnChange(func() { changed <- struct{}{} })
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		file.Run(ctx)
	}()
	for _, text := range []string{"a.io", "b.io"} {
		write(t, path, text)
		err := wait.PollUntilContextTimeout(ctx, time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) { return fake.HasWaiters(), nil })
		if err != nil {
			t.Fatal("nothing waits for the next reading")
		}
		fake.Step(reloadInterval)
		select {
		case <-changed:
			wantList(t, file, List{text})
		case <-time.After(10 * time.Second):
			t.Fatalf("not told of %s", text)
		}
	}
	cancel()
	<-stopped
}
