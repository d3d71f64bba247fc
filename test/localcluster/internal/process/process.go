// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package process starts programs that outlive this one and finds them again.
//
// A pid alone proves nothing: by the time it is read from a file the process
// may have ended and its number may belong to another. A record therefore also
// has the start time of the process and the boot it is counted from.
package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/poll"
)

// stopTimeout is how long a killed process may take to be gone.
const stopTimeout = 20 * time.Second

// Group is a set of named processes with a directory for their records and one
// for their output.
type Group struct {
	Records string
	Logs    string
}

// Spec is a program to start.
type Spec struct {
	Name    string
	Command []string
	// Env is the environment; nil means one that does not depend on who starts the program.
	Env []string
}

var defaultEnv = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/"}

// Start starts a program in a session of its own, with its output in the
// group's log directory, and records it.
func (g Group) Start(spec Spec) (pid int, err error) {
	if err := errors.Join(os.MkdirAll(g.Records, 0o755), os.MkdirAll(g.Logs, 0o755)); err != nil {
		return 0, err
	}
	log, err := os.OpenFile(g.LogFile(spec.Name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	cmd := exec.Command(spec.Command[0], spec.Command[1:]...)
	cmd.Dir = "/"
	if cmd.Env = spec.Env; cmd.Env == nil {
		cmd.Env = defaultEnv
	}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	go cmd.Wait() //nolint:errcheck // Only so that it is no zombie if it ends before this program does.
	stat, err := readStat(cmd.Process.Pid)
	if err != nil {
		return 0, fmt.Errorf("%s ended at once:\n%s", spec.Name, g.Tail(spec.Name))
	}
	boot, err := bootID()
	if err != nil {
		return 0, err
	}
	r := record{cmd.Process.Pid, stat.start, boot}
	return r.pid, os.WriteFile(g.recordFile(spec.Name), []byte(r.String()), 0o644)
}

// LogFile is where the output of a process goes.
func (g Group) LogFile(name string) string { return filepath.Join(g.Logs, name+".log") }

// Names lists the processes that have a record, running or not.
func (g Group) Names() []string {
	entries, _ := os.ReadDir(g.Records)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

// Running reports whether the recorded process still runs.
func (g Group) Running(name string) bool {
	_, ok := g.find(name)
	return ok
}

// CheckRunning returns an error that shows the log of the first of the named
// processes that does not run, or nil.
func (g Group) CheckRunning(names ...string) error {
	for _, name := range names {
		if !g.Running(name) {
			return fmt.Errorf("%s is not running%s", name, g.Tail(name))
		}
	}
	return nil
}

// Kill ends a process with SIGKILL and forgets it.
func (g Group) Kill(ctx context.Context, name string) error {
	return g.end(ctx, name, syscall.SIGKILL, stopTimeout)
}

// Stop asks a process to end, and kills it if it has not done so within the grace period.
func (g Group) Stop(ctx context.Context, name string, grace time.Duration) error {
	if err := g.end(ctx, name, syscall.SIGTERM, grace); err == nil {
		return nil
	}
	return g.Kill(ctx, name)
}

// end signals a process and waits until it is gone.
func (g Group) end(ctx context.Context, name string, signal syscall.Signal, timeout time.Duration) error {
	if r, ok := g.find(name); ok {
		if err := r.signal(signal); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		err := poll.Until(ctx, 20*time.Millisecond, func() error {
			if r.running() {
				return fmt.Errorf("%s (pid %d) still runs after %s", name, r.pid, signal)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if err := os.Remove(g.recordFile(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Tail returns the last lines of a process's log, introduced for use at the end
// of an error message.
func (g Group) Tail(name string) string {
	const size = 3000
	f, err := os.Open(g.LogFile(name))
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > size {
		f.Seek(-size, io.SeekEnd) //nolint:errcheck // Then the whole file is shown.
	}
	data, _ := io.ReadAll(f)
	if _, whole, ok := bytes.Cut(data, []byte("\n")); ok && len(data) == size {
		data = whole
	}
	return fmt.Sprintf("\n--- end of %s:\n%s", f.Name(), data)
}

func (g Group) recordFile(name string) string { return filepath.Join(g.Records, name) }

// find returns the record of a process that runs.
func (g Group) find(name string) (record, bool) {
	data, err := os.ReadFile(g.recordFile(name))
	if err != nil {
		return record{}, false
	}
	r, err := parseRecord(string(data))
	return r, err == nil && r.running()
}

// record identifies a process for as long as the machine runs.
type record struct {
	pid   int
	start uint64
	boot  string
}

func (r record) String() string { return fmt.Sprintf("%d %d %s\n", r.pid, r.start, r.boot) }

func parseRecord(text string) (record, error) {
	var r record
	_, err := fmt.Sscanf(text, "%d %d %s", &r.pid, &r.start, &r.boot)
	return r, err
}

func (r record) running() bool {
	stat, err := readStat(r.pid)
	boot, bootErr := bootID()
	return err == nil && bootErr == nil && stat.start == r.start && boot == r.boot && !stat.dead()
}

// signal sends a signal to the process, and never to another one with its pid:
// os.FindProcess holds the process through a pidfd while its identity is checked.
func (r record) signal(s syscall.Signal) error {
	p, err := os.FindProcess(r.pid)
	if err != nil {
		return err
	}
	defer p.Release() //nolint:errcheck // It cannot fail on Linux.
	if !r.running() {
		return nil
	}
	if err := p.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// stat is what /proc/PID/stat tells of a process.
type stat struct {
	state byte
	start uint64 // in clock ticks after boot
}

// dead is true for what only waits for its parent to notice.
func (s stat) dead() bool { return s.state == 'Z' || s.state == 'X' }

func readStat(pid int) (stat, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return stat{}, err
	}
	return parseStat(string(data))
}

// parseStat reads fields 3 and 22. Field 2, the name in parentheses, may itself
// contain spaces and parentheses.
func parseStat(text string) (stat, error) {
	rest := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(rest) < 20 {
		return stat{}, fmt.Errorf("unexpected process status %q", text)
	}
	start, err := strconv.ParseUint(rest[19], 10, 64)
	return stat{rest[0][0], start}, err
}

func bootID() (string, error) {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(data)), err
}
