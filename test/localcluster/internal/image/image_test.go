// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

var testSpec = Spec{
	Name:       "sandbox.local/test:1",
	Entrypoint: []string{"/prog"},
	Files: []File{
		{Path: "tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
		{Path: "prog", Mode: 0o755, Data: []byte("program")},
		{Path: "link", Mode: fs.ModeSymlink | 0o777, Link: "prog"},
	},
}

func TestWriteIsReproducible(t *testing.T) {
	var archives [2][]byte
	for i := range archives {
		file := filepath.Join(t.TempDir(), "image.tar")
		if err := Write(testSpec, file); err != nil {
			t.Fatal(err)
		}
		var err error
		if archives[i], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("two archives of the same image differ")
	}
}

func TestReadFindsName(t *testing.T) {
	file := filepath.Join(t.TempDir(), "image.tar")
	if err := Write(testSpec, file); err != nil {
		t.Fatal(err)
	}
	refs, err := Read(file)
	if err != nil || len(refs) != 1 {
		t.Fatalf("Read = %v, %v", refs, err)
	}
	img, err := assemble(testSpec)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if want := (Reference{testSpec.Name, digest.String()}); refs[0] != want {
		t.Errorf("Read = %v, want %v", refs[0], want)
	}
}

func TestReadRefusesOtherFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "not-an-image")
	if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(file); err == nil {
		t.Error("Read accepts a file that is no archive")
	}
}

func TestTarMode(t *testing.T) {
	for mode, want := range map[fs.FileMode]int64{
		0o644:                              0o644,
		fs.ModeDir | 0o755:                 0o755,
		fs.ModeDir | fs.ModeSticky | 0o777: 0o1777,
		fs.ModeSymlink | fs.ModePerm:       0o777,
	} {
		if got := tarMode(mode); got != want {
			t.Errorf("tarMode(%v) = %o, want %o", mode, got, want)
		}
	}
}

func TestParents(t *testing.T) {
	var got []string
	for _, f := range parents("usr/local/bin/x", []File{{Path: "usr"}}) {
		got = append(got, f.Path)
	}
	if want := []string{"usr/local", "usr/local/bin"}; !slices.Equal(got, want) {
		t.Errorf("parents = %q, want %q", got, want)
	}
}
