// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Command claims measures how long claims take to get a Sandbox from a warm pool, alone, at a rate and in bursts, and what that costs.
// The same load of bare Pods tells how fast the cluster is by itself. It starts a light cluster with both programs of the project, or
// measures any cluster that serves SandboxClaims, whoever serves them: then it leaves out what only the programs of the project can
// tell. All requests are those of a user with a Role, through kube-apiserver. It fails on errors and on Sandboxes that two claims
// have, never on slowness.
//
// On a light cluster the comparison with Pods flatters the Pods: the etcd of the cluster does not wait for the disk, that of Sandboxes
// and claims does. Pods are not scheduled, while pools are refilled and controllers react to claims as they always do.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "claims:", err)
		os.Exit(1) //nolint:gocritic // Nothing but the signal handler is deferred.
	}
}

// settings are what the flags say.
type settings struct {
	kubeconfig, jsonFile, image, binDir, dir string
	port                                     uint16
	nodes, limit                             int
	scenarios, processes                     []string
	readyTimeout, fillTimeout, timeout       time.Duration
}

func newCommand() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:           "claims",
		Short:         "Measure claims on warm pools against bare Pods",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&s.kubeconfig, "kubeconfig", "", "Kubeconfig file of an administrator of the cluster to measure. Default: a light cluster is started.")
	flags.StringVar(&s.jsonFile, "json", "", "File to write the report to, as JSON.")
	flags.StringSliceVar(&s.scenarios, "scenario", nil, "Scenarios to measure: "+strings.Join(scenarioNames(), ", ")+". Default: all.")
	flags.IntVar(&s.limit, "limit", 0, "The most claims and pool members of any scenario. 0 means no limit.")
	flags.StringVar(&s.image, "image", framework.Image, "Image of the Pods.")
	flags.StringSliceVar(&s.processes, "process", nil, "Processes of this machine whose memory and processor time are reported too, as name=pid.")
	flags.StringVar(&s.binDir, "bin-dir", filepath.Join("_output", "bin"), "Directory of localcluster and of the programs to measure.")
	flags.StringVar(&s.dir, "dir", filepath.Join("_output", "bench"), "Directory of the light cluster, which is removed at the end.")
	flags.Uint16Var(&s.port, "port", 0, "First of the ports of the light cluster. Default: some that are free.")
	flags.IntVar(&s.nodes, "nodes", 20, "Number of simulated nodes of the light cluster.")
	flags.DurationVar(&s.readyTimeout, "ready-timeout", time.Minute, "When to give up waiting for the claims of a round to be ready.")
	flags.DurationVar(&s.fillTimeout, "fill-timeout", 5*time.Minute, "When to give up waiting for a pool to be full.")
	flags.DurationVar(&s.timeout, "timeout", 15*time.Minute, "When to give up altogether.")
	return cmd
}

// run measures, reports also what was found before an error, and returns what must not be.
func (s settings) run(ctx context.Context, out io.Writer) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout, fmt.Errorf("not done after %v", s.timeout))
	defer cancel()
	chosen, err := chooseScenarios(s.scenarios, s.limit)
	if err != nil {
		return err
	}
	processes, err := parseProcesses(s.processes)
	if err != nil {
		return err
	}
	t, err := s.target(ctx)
	if err != nil {
		return err
	}
	maps.Copy(t.processes, processes)
	t.processes["this program"] = os.Getpid()
	results, err := measure(ctx, t, s, chosen)
	err = errors.Join(err, t.remove())
	r := &report{Cluster: t.description, Results: results}
	return errors.Join(err, r.writeTable(out), r.save(s.jsonFile), r.check())
}

// save writes the report to a file, if one is named.
func (r *report) save(file string) error {
	if file == "" {
		return nil
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}
