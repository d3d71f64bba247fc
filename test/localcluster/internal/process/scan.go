// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// KillBelow kills every process whose program is a file below a directory, and
// returns how many there were. It finds those that have lost their record.
func KillBelow(dir string) int {
	killed := 0
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, proc := range procs {
		exe, err := os.Readlink(proc + "/exe")
		if err != nil || !strings.HasPrefix(exe, dir+"/") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(proc))
		if err == nil && syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	return killed
}
