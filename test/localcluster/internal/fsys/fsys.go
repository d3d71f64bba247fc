// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package fsys puts files in place in one step, so that nobody sees half of one.
package fsys

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Install makes a file available under another name, as a link if possible. A
// running program of that name is replaced and not written into.
func Install(from, to string) error {
	if same(from, to) {
		return nil
	}
	return replace(to, func(temp string) error {
		if os.Link(from, temp) == nil {
			return nil
		}
		return copyFile(from, temp) // another file system
	})
}

// CopyPrivate copies a file so that only its owner can read it, and leaves a
// copy that is right untouched.
func CopyPrivate(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if old, err := os.ReadFile(to); err == nil && bytes.Equal(old, data) {
		return nil
	}
	return replace(to, func(temp string) error { return os.WriteFile(temp, data, 0o600) })
}

// replace lets write make a file and then gives it its name.
func replace(to string, write func(temp string) error) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	temp := fmt.Sprintf("%s.%d", to, os.Getpid())
	defer os.Remove(temp)
	if err := write(temp); err != nil {
		return err
	}
	return os.Rename(temp, to)
}

// same reports whether two names are the same file, or copies by size and time.
func same(a, b string) bool {
	ai, errA := os.Stat(a)
	bi, errB := os.Stat(b)
	return errA == nil && errB == nil &&
		(os.SameFile(ai, bi) || ai.Size() == bi.Size() && ai.ModTime().Equal(bi.ModTime()))
}

// copyFile copies a program with its time, which same compares.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}
