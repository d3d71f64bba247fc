// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Names of programs. The first three can be started beside a light cluster.
const (
	SandboxAPIServer  = "sandbox-apiserver"
	SandboxController = "sandbox-controller"
	// ExternalEtcd is an etcd that servers share instead of having one inside. It must be started before the first of them.
	ExternalEtcd = "external-etcd"

	localcluster   = "localcluster"
	kubectl        = "kubectl"
	kubectlSandbox = "kubectl-sandbox"
)

// binDirVariable names the environment variable that replaces the directory of the programs.
const binDirVariable = "SANDBOX_BIN_DIR"

// Programs is the directory of the programs of the project, of localcluster and of kubectl.
type Programs string

// FindPrograms returns the directory that SANDBOX_BIN_DIR names, or else _output/bin of the checkout, for a test in a directory two
// below its root.
func FindPrograms() (Programs, error) {
	dir := os.Getenv(binDirVariable)
	if dir == "" {
		// A test runs in the directory of its package.
		dir = filepath.Join("..", "..", "_output", "bin")
	}
	dir, err := filepath.Abs(dir)
	return Programs(dir), err
}

// File returns the file of a program.
func (p Programs) File(name string) string { return filepath.Join(string(p), name) }

// Check returns an error that tells what to do if one of the programs is not there.
func (p Programs) Check(names ...string) error {
	var missing []error
	for _, name := range names {
		if _, err := os.Stat(p.File(name)); err != nil {
			missing = append(missing, err)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("programs are missing; run \"make test-integration\", which builds them, or set %s to their directory: %w",
		binDirVariable, errors.Join(missing...))
}
