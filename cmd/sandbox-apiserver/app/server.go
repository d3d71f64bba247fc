// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package app is the command line of sandbox-apiserver.
package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	genericapiserver "k8s.io/apiserver/pkg/server"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/term"
	"k8s.io/component-base/version"
	"k8s.io/component-base/version/verflag"
	"k8s.io/klog/v2"

	"github.com/sandbox-apiserver/sandbox-apiserver/cmd/sandbox-apiserver/app/options"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apiserver"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/storage/embedded"
)

// NewCommand returns the command. It runs until ctx ends.
func NewCommand(ctx context.Context) *cobra.Command {
	o := options.New()
	cmd := &cobra.Command{
		Use:   "sandbox-apiserver",
		Short: "Serve Sandboxes as an aggregated Kubernetes API",
		Long: "sandbox-apiserver serves the API groups agents.x-k8s.io and extensions.agents.x-k8s.io behind the aggregation layer of a " +
			"Kubernetes cluster. It keeps its objects in an etcd of its own: one inside the process, unless --etcd-servers names another.",
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			verflag.PrintAndExitIfRequested()
			if err := o.ComponentGlobals.Set(); err != nil {
				return err
			}
			if err := logsapi.ValidateAndApply(o.Logs, o.FeatureGate()); err != nil {
				return err
			}
			if err := o.Validate(); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	cmd.SetContext(ctx)
	flags := o.Flags()
	verflag.AddFlags(flags.FlagSet("global"))
	globalflag.AddGlobalFlags(flags.FlagSet("global"), cmd.Name(), logs.SkipLoggingConfigurationFlags())
	for _, set := range flags.FlagSets {
		cmd.Flags().AddFlagSet(set)
	}
	columns, _, _ := term.TerminalSize(cmd.OutOrStdout())
	cliflag.SetUsageAndHelpFunc(cmd, flags, columns)
	return cmd
}

// run serves until ctx ends or the embedded etcd fails. etcd is up before the first request can come and stays until the last is
// answered.
func run(ctx context.Context, o *options.Options) error {
	klog.FromContext(ctx).Info("Starting", "version", version.Get())
	if !o.UsesEmbeddedEtcd() {
		return serve(ctx, o)
	}
	etcd, err := embedded.Start(ctx, o.EmbeddedEtcd)
	if err != nil {
		return err
	}
	defer etcd.Stop()
	o.Recommended.Etcd.StorageConfig.Transport.ServerList = []string{etcd.Endpoint()}
	o.Extra.Etcd = etcd.NewClient

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stopped := make(chan struct{})
	defer close(stopped)
	go func() {
		select {
		case err := <-etcd.Err():
			cancel(fmt.Errorf("embedded etcd failed: %w", err))
		case <-stopped:
		}
	}()
	err = serve(ctx, o)
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return errors.Join(cause, err)
	}
	return err
}

func serve(ctx context.Context, o *options.Options) error {
	serialization := apiserver.NewSerialization()
	config := apiserver.NewConfig(serialization, o.Extra)
	companions, err := o.ApplyTo(ctx, config.GenericConfig, serialization)
	if err != nil {
		return err
	}
	config.ClientCA = companions.ClientCA
	awaitAuthorities := config.FollowAuthorities(ctx)
	server, err := config.New()
	if err != nil {
		return err
	}
	if certificates := companions.Certificates; certificates != nil {
		if err := server.AddPostStartHook("keep-serving-certificate", func(hook genericapiserver.PostStartHookContext) error {
			go certificates.Run(hook)
			return nil
		}); err != nil {
			return err
		}
	}
	awaitAuthorities()
	if companions.Fence == nil {
		return server.PrepareRun().RunWithContext(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stopFence := runFence(ctx, companions.Fence, cancel)
	return errors.Join(server.PrepareRun().RunWithContext(ctx), stopFence())
}

// runFence runs the fence until the returned function is called, which returns its error. If it ends before, it cancels the server: the
// storage is not the one that the watch caches were filled from.
func runFence(ctx context.Context, run func(context.Context) error, cancel context.CancelCauseFunc) (stop func() error) {
	fenceCtx, stopFence := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() {
		err := run(fenceCtx)
		if err != nil {
			cancel(err)
		}
		ended <- err
	}()
	return func() error {
		stopFence()
		return <-ended
	}
}
