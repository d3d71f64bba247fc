// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package cli holds the commands of localcluster: flags and their meaning. What
// they do is in the packages beside it.
package cli

import (
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/progress"
)

// app is what all commands share.
type app struct {
	report        *progress.Reporter
	componentsDir string
}

// New returns the root command.
func New() *cobra.Command {
	a := &app{report: progress.New(os.Stderr, started(os.Getenv("SANDBOX_STARTED"), time.Now()))}
	root := &cobra.Command{
		Use:           "localcluster",
		Short:         "Kubernetes clusters on this machine, built from Go modules",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentFlags().StringVar(&a.componentsDir, "components-dir", "",
		"Directory of the wrapper modules. Default: beside the source of this program.")
	root.AddCommand(a.newBuild(), a.newUp(), a.newDown(), a.newStart(), a.newStop(), a.newRoute(),
		a.newImage(), a.newLoad(), a.newContainerPID())
	return root
}

// started returns when the script began that calls this program, which it tells
// in seconds since 1970, so that all of its progress goes by one clock.
func started(seconds string, now time.Time) time.Time {
	s, err := strconv.ParseFloat(seconds, 64)
	if err != nil {
		return now
	}
	return time.UnixMicro(int64(s * 1e6))
}
