// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package fsys

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestInstall(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "sub", "to")
	for _, content := range []string{"one", "two, after an update"} {
		// An update is a new file, as in a new cache directory.
		os.Remove(from) // The first time, there is none.
		if err := os.WriteFile(from, []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := Install(from, to); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(to); err != nil || string(got) != content {
			t.Errorf("installed %q, %v; want %q", got, err, content)
		}
	}
}

func TestCopyPrivateLeavesRightCopy(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	if err := os.WriteFile(from, []byte("kubeconfig"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := CopyPrivate(from, to); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(to, long, long); err != nil {
		t.Fatal(err)
	}
	if err := CopyPrivate(from, to); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(to)
	if err != nil {
		t.Fatal(err)
	}
	if !info.ModTime().Equal(long) {
		t.Error("the copy was written again")
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
}
