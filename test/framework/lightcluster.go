// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// logTail is how much of each log WriteLogs shows.
const logTail = 16 << 10

// LightCluster is a control plane with simulated nodes, and the programs of the project that were started beside it as processes.
// Its methods may be called at the same time, for different processes.
type LightCluster struct {
	Programs Programs
	// Dir has all that belongs to the cluster.
	Dir string

	ports io.Closer
	// reaper removes the cluster as soon as this process closes its standard input, or ends in whatever way.
	reaper      *exec.Cmd
	reaperInput io.Closer
}

// LightClusterOptions say what cluster to start. Only Programs is required.
type LightClusterOptions struct {
	Programs Programs
	// Dir is the directory of the cluster. A cluster that is in it already is removed. Default: a new one for temporary files.
	Dir string
	// Port is the first of the ports. Default: that of a range that is free.
	Port uint16
	// Nodes is the number of simulated nodes. Default: 1.
	Nodes int
}

// StartLightCluster starts a cluster without any program of the project, which takes seconds, and needs root. The cluster goes with
// this process, if Remove was not called before.
func StartLightCluster(ctx context.Context, o LightClusterOptions) (*LightCluster, error) {
	if err := o.Programs.Check(localcluster, kubectl, kubectlSandbox, SandboxAPIServer, SandboxController); err != nil {
		return nil, err
	}
	c := &LightCluster{Programs: o.Programs, Dir: o.Dir}
	if err := c.makeDir(ctx); err != nil {
		return nil, err
	}
	if err := c.startReaper(); err != nil {
		return nil, err
	}
	port := int(o.Port)
	if port == 0 {
		var err error
		if port, c.ports, err = reservePorts(); err != nil {
			return nil, errors.Join(err, c.Remove())
		}
	}
	if _, err := c.localcluster(ctx, "up", "light", "--dir", c.Dir, "--port", strconv.Itoa(port), "--nodes", strconv.Itoa(max(o.Nodes, 1)),
		"--kubeconfig", c.Kubeconfig()); err != nil {
		return nil, errors.Join(err, c.Remove())
	}
	return c, nil
}

// makeDir makes the directory, with no cluster in it.
func (c *LightCluster) makeDir(ctx context.Context) (err error) {
	if c.Dir == "" {
		c.Dir, err = os.MkdirTemp("", "sandbox-test-")
		return err
	}
	if c.Dir, err = filepath.Abs(c.Dir); err != nil {
		return err
	}
	if _, err := c.localcluster(ctx, "down", "light", "--dir", c.Dir); err != nil {
		return err
	}
	return os.MkdirAll(c.Dir, 0o755)
}

// startReaper starts what removes the cluster. A deferred call would not be made after a timeout of go test.
func (c *LightCluster) startReaper() error {
	const script = `cat >/dev/null; "$0" down light --dir "$1" >/dev/null 2>&1; status=$?; rm -rf "$1"; exit $status`
	c.reaper = exec.Command("sh", "-c", script, c.Programs.File(localcluster), c.Dir)
	// An interrupt at the terminal is meant for the tests; the reaper has its work to do then.
	c.reaper.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	input, err := c.reaper.StdinPipe()
	if err != nil {
		return err
	}
	c.reaperInput = input
	return c.reaper.Start()
}

// Remove ends all processes of the cluster, removes its directory, and returns when they are gone. It is to be called once.
func (c *LightCluster) Remove() error {
	err := errors.Join(c.reaperInput.Close(), c.reaper.Wait())
	if c.ports != nil {
		err = errors.Join(err, c.ports.Close())
	}
	if err != nil {
		return fmt.Errorf("removing the light cluster in %s: %w", c.Dir, err)
	}
	return nil
}

// Process is a program that runs beside a cluster.
type Process struct {
	// Name is that of the program, with the number of the instance if that is not the first.
	Name string `json:"process"`
	// PID is its process ID, for signals other than those of Stop and Kill.
	PID int `json:"pid"`
	// URL is where it serves: its API, or the metrics of the controller, in both cases with the path /metrics. The API takes the
	// client certificates of the cluster; see Clients.At.
	URL string `json:"url"`
}

// Start starts a program and returns when it serves. The instances of a program count from 1; of a server there may be three if they
// share an ExternalEtcd. The first server is the one that kube-apiserver passes requests on to. More arguments of the program
// follow those that it needs, and win over them.
func (c *LightCluster) Start(ctx context.Context, program string, instance int, args ...string) (*Process, error) {
	command := []string{"start", program, "--dir", c.Dir, "--instance", strconv.Itoa(instance), "--json"}
	if program != ExternalEtcd {
		command = append(command, "--bin", c.Programs.File(program))
	}
	output, err := c.localcluster(ctx, slices.Concat(command, []string{"--"}, args)...)
	if err != nil {
		return nil, err
	}
	process := &Process{}
	return process, json.Unmarshal(output, process)
}

// Kill ends a program with SIGKILL and returns when it is gone. It is no error if it is gone already.
func (c *LightCluster) Kill(ctx context.Context, program string, instance int) error {
	_, err := c.localcluster(ctx, "stop", program, "--dir", c.Dir, "--instance", strconv.Itoa(instance), "--kill")
	return err
}

// Stop ends a program with SIGTERM, and after half a minute with SIGKILL, and returns when it is gone.
func (c *LightCluster) Stop(ctx context.Context, program string, instance int) error {
	_, err := c.localcluster(ctx, "stop", program, "--dir", c.Dir, "--instance", strconv.Itoa(instance))
	return err
}

// Route makes kube-apiserver pass requests on to another server, as a Service would after the end of one, and returns when the API
// is available. Requests and watches that are under way stay where they are.
func (c *LightCluster) Route(ctx context.Context, instance int) error {
	_, err := c.localcluster(ctx, "route", SandboxAPIServer, "--dir", c.Dir, "--instance", strconv.Itoa(instance))
	return err
}

// PIDs returns the process IDs of all processes of the cluster, and of the programs beside it, by the names that their logs have too.
func (c *LightCluster) PIDs() (map[string]int, error) {
	dir := filepath.Join(c.Dir, "processes")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	pids := map[string]int{}
	for _, entry := range entries {
		record, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		// What follows tells the process from a later one of the same number.
		number, _, _ := strings.Cut(string(record), " ")
		if pids[entry.Name()], err = strconv.Atoi(number); err != nil {
			return nil, err
		}
	}
	return pids, nil
}

// Kubeconfig is the file of an administrator.
func (c *LightCluster) Kubeconfig() string { return filepath.Join(c.Dir, "kubeconfig") }

// EmbeddedEtcd is the endpoint of the etcd inside the server, where there is no ExternalEtcd.
func (c *LightCluster) EmbeddedEtcd() string {
	return "unix://" + filepath.Join(c.Dir, "sandbox-etcd", "client.sock")
}

// WriteLogs writes the ends of the logs of all instances of some programs, or of all processes of the cluster if none is named.
func (c *LightCluster) WriteLogs(to io.Writer, programs ...string) {
	if len(programs) == 0 {
		programs = []string{""}
	}
	for _, program := range programs {
		logs, err := filepath.Glob(filepath.Join(c.Dir, "log", program+"*.log"))
		if err != nil {
			fmt.Fprintln(to, err)
		}
		for _, file := range logs {
			data, err := os.ReadFile(file)
			if err != nil {
				fmt.Fprintln(to, err)
				continue
			}
			fmt.Fprintf(to, "--- end of %s\n%s\n", filepath.Base(file), bytes.ToValidUTF8(data[max(0, len(data)-logTail):], nil))
		}
	}
}

// localcluster runs a command of localcluster and returns its standard output.
func (c *LightCluster) localcluster(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, c.Programs.File(localcluster), args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("localcluster %v: %w\n%s", args, err, stderr.String())
	}
	return output, nil
}
