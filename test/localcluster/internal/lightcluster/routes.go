// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package lightcluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/filelock"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/process"
)

// registryDir has one file for each light cluster of the machine: they share the
// routes to pods and Services, which the last one to go removes.
const registryDir = "/run/sandbox-localcluster-light"

// registryKey names the entry of a cluster's directory.
func registryKey(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return hex.EncodeToString(sum[:8])
}

// register adds a cluster and the routes.
func register(ctx context.Context, dir string) error {
	lock, err := filelock.Acquire(ctx, filepath.Join(registryDir, "lock"))
	if err != nil {
		return err
	}
	defer lock.Release()
	if err := os.WriteFile(filepath.Join(registryDir, registryKey(dir)+".dir"), []byte(dir), 0o644); err != nil {
		return err
	}
	if err := process.Run("ip", "route", "replace", "local", pods.String(), "dev", "lo"); err != nil {
		return err
	}
	return process.Run("ip", "route", "replace", "unreachable", services.String())
}

// unregister forgets a cluster, and removes the routes if it was the last.
func unregister(ctx context.Context, dir string) error {
	lock, err := filelock.Acquire(ctx, filepath.Join(registryDir, "lock"))
	if err != nil {
		return err
	}
	defer lock.Release()
	err = os.Remove(filepath.Join(registryDir, registryKey(dir)+".dir"))
	if errors.Is(err, os.ErrNotExist) {
		return nil // was not registered, or not any more
	}
	if err != nil {
		return err
	}
	if othersExist() {
		return nil
	}
	return errors.Join(
		process.Run("ip", "route", "del", "local", pods.String(), "dev", "lo"),
		process.Run("ip", "route", "del", "unreachable", services.String()))
}

// othersExist reports whether any registered cluster still has its directory,
// and forgets those that do not.
func othersExist() bool {
	exist := false
	entries, _ := filepath.Glob(filepath.Join(registryDir, "*.dir"))
	for _, entry := range entries {
		dir, err := os.ReadFile(entry)
		if err != nil {
			continue
		}
		if _, err := os.Stat(string(dir)); err != nil {
			os.Remove(entry) // It is looked at again next time.
			continue
		}
		exist = true
	}
	return exist
}
