// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"os/exec"
	"strings"
)

// Run runs a short command; its output is part of the error if it fails.
func Run(command ...string) error {
	_, err := Output(command...)
	return err
}

// Output runs a short command and returns what it prints.
func Output(command ...string) (string, error) {
	out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}
