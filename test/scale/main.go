// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Command scale starts a light cluster, creates many Sandboxes in it at once, lets them rest, deletes them, and prints what that
// cost: requests, writes, passes, time, memory and processor time. It fails if a Sandbox costs more than it must, if anything is
// written while nothing happens, or if something is left over. It does not judge times, which are the machine's.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1) //nolint:gocritic // Nothing but the signal handler is deferred.
	}
}

// settings are what the flags say.
type settings struct {
	binDir, dir                          string
	port                                 uint16
	nodes, sandboxes, concurrency        int
	rest, createTimeout, deletionTimeout time.Duration
}

func newCommand() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:           "scale",
		Short:         "Count what many Sandboxes cost, on a light cluster of its own",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.validate(); err != nil {
				return err
			}
			return s.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&s.binDir, "bin-dir", filepath.Join("_output", "bin"), "Directory of localcluster and of the programs to measure.")
	flags.StringVar(&s.dir, "dir", filepath.Join("_output", "scale"), "Directory of the cluster, which is removed at the end.")
	flags.Uint16Var(&s.port, "port", 15443, "First of the ports of the cluster.")
	flags.IntVar(&s.nodes, "nodes", 20, "Number of simulated nodes.")
	flags.IntVar(&s.sandboxes, "sandboxes", 2000, "Number of Sandboxes.")
	flags.IntVar(&s.concurrency, "concurrency", 20, "Number of requests that are made at the same time.")
	flags.DurationVar(&s.rest, "rest", 2*time.Minute, "How long nothing must be written once all Sandboxes are ready.")
	flags.DurationVar(&s.createTimeout, "create-timeout", 15*time.Minute, "When to give up waiting for all Sandboxes to be ready.")
	flags.DurationVar(&s.deletionTimeout, "deletion-timeout", 15*time.Minute, "When to give up waiting for everything to be gone.")
	return cmd
}

func (s settings) validate() error {
	if s.nodes < 1 || s.sandboxes < 1 || s.concurrency < 1 {
		return fmt.Errorf("--nodes %d, --sandboxes %d and --concurrency %d must be at least 1", s.nodes, s.sandboxes, s.concurrency)
	}
	return nil
}

// run measures on a cluster that exists only for that.
func (s settings) run(ctx context.Context, out io.Writer) (err error) {
	c, err := startCluster(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.remove()) }()
	m, err := newMeasurement(c, s)
	if err != nil {
		return err
	}
	stages, err := m.run(ctx)
	writeReport(out, s.sandboxes, stages)
	if err != nil {
		c.printLogs(os.Stderr)
		return err
	}
	return check(s.sandboxes, stages)
}
