// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of processor time in /proc, USER_HZ, which is the same on all architectures that Go runs on.
const clockTick = time.Second / 100

// usage is what a process has used since it began.
type usage struct {
	cpu time.Duration
	// memory and peak are the resident set, and the largest it ever was, in bytes.
	memory, peak int64
}

// readUsage reads the usage of a process of this machine.
func readUsage(pid int) (usage, error) {
	dir := fmt.Sprintf("/proc/%d/", pid)
	stat, err := os.ReadFile(dir + "stat")
	if err != nil {
		return usage{}, err
	}
	status, err := os.ReadFile(dir + "status")
	if err != nil {
		return usage{}, err
	}
	var u usage
	var errs [3]error
	u.cpu, errs[0] = parseCPU(string(stat))
	u.memory, errs[1] = parseMemory(status, "VmRSS")
	u.peak, errs[2] = parseMemory(status, "VmHWM")
	return u, errors.Join(errs[:]...)
}

// parseCPU returns the processor time, in user and in kernel mode, from a stat file: see proc_pid_stat(5).
func parseCPU(stat string) (time.Duration, error) {
	// The second field, the name in brackets, may contain anything. It is followed by the third.
	const userTime, kernelTime = 14 - 3, 15 - 3
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	if len(fields) <= kernelTime {
		return 0, fmt.Errorf("not the stat of a process: %q", stat)
	}
	user, userErr := strconv.ParseInt(fields[userTime], 10, 64)
	kernel, kernelErr := strconv.ParseInt(fields[kernelTime], 10, 64)
	return time.Duration(user+kernel) * clockTick, errors.Join(userErr, kernelErr)
}

// parseMemory returns a size in bytes from a status file: see proc_pid_status(5).
func parseMemory(status []byte, name string) (int64, error) {
	lines := bufio.NewScanner(bytes.NewReader(status))
	for lines.Scan() {
		value, found := strings.CutPrefix(lines.Text(), name+":")
		if !found {
			continue
		}
		kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		return kilobytes << 10, err
	}
	return 0, fmt.Errorf("there is no %s", name)
}

// parseProcesses reads the arguments name=pid.
func parseProcesses(args []string) (map[string]int, error) {
	processes := map[string]int{}
	for _, arg := range args {
		name, number, found := strings.Cut(arg, "=")
		pid, err := strconv.Atoi(number)
		if !found || name == "" || err != nil || pid < 1 {
			return nil, fmt.Errorf("--process %q: must be a name and a process ID, name=1234", arg)
		}
		processes[name] = pid
	}
	return processes, nil
}
