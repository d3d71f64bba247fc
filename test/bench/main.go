// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Command bench measures, on a running cluster, what people wait for: a Sandbox against a bare Pod, suspend and resume, and the
// first byte of a command in a Sandbox against that of one in its Pod. All are measured in turn within one run, so that what else
// the machine does touches all alike. It fails on errors, never on slowness.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1) //nolint:gocritic // Nothing but the signal handler is deferred.
	}
}

// settings are what the flags say.
type settings struct {
	kubeconfig, output, image, binDir string
	iterations, warmup                int
}

func newCommand() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:           "bench",
		Short:         "Measure Sandboxes against Pods on a running cluster",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.validate(); err != nil {
				return err
			}
			report, err := s.measure(cmd.Context())
			if err != nil {
				return err
			}
			if s.output == outputJSON {
				return report.writeJSON(cmd.OutOrStdout())
			}
			return report.writeTable(cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&s.kubeconfig, "kubeconfig", filepath.Join("_output", "local", "kubeconfig"), "Kubeconfig file of an administrator of the cluster.")
	flags.StringVarP(&s.output, "output", "o", outputTable, "Form of the report: table or json.")
	flags.IntVar(&s.iterations, "iterations", 20, "How often everything is measured.")
	flags.IntVar(&s.warmup, "warmup", 2, "How often everything is done before it is measured.")
	flags.StringVar(&s.image, "image", framework.Image, "Image of the Pods.")
	flags.StringVar(&s.binDir, "bin-dir", filepath.Join("_output", "bin"), "Directory of kubectl and kubectl-sandbox.")
	return cmd
}

const (
	outputTable = "table"
	outputJSON  = "json"
)

func (s settings) validate() error {
	if s.output != outputTable && s.output != outputJSON {
		return fmt.Errorf("--output %q: must be %s or %s", s.output, outputTable, outputJSON)
	}
	if s.iterations < 1 || s.warmup < 0 {
		return fmt.Errorf("--iterations %d must be at least 1, --warmup %d at least 0", s.iterations, s.warmup)
	}
	return nil
}

// measure runs the benchmark and removes what it made.
func (s settings) measure(ctx context.Context) (*report, error) {
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	if err != nil {
		return nil, err
	}
	// A limit of the client's own would be measured too.
	config.QPS = -1
	b, err := newBenchmark(config, s)
	if err != nil {
		return nil, err
	}
	return b.run(ctx)
}
