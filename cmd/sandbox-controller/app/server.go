// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package app holds the sandbox-controller command: its flags, its listeners and its leader election.
package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // rest_client_*, workqueue_*, leader_election_* and informer_*
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"

	"github.com/sandbox-apiserver/sandbox-apiserver/cmd/sandbox-controller/app/options"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned"
)

// NewCommand returns the sandbox-controller command.
func NewCommand() *cobra.Command {
	o := options.New()
	cmd := &cobra.Command{
		Use:   "sandbox-controller",
		Short: "Runs Sandboxes",
		Long: "sandbox-controller gives each Sandbox its Pod, volumes and Service, and reports in its status what becomes of them. " +
			"It keeps warm pools at their size, and makes Sandboxes for claims that find none there.",
		Version: version.Get().String(),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Complete(); err != nil {
				return err
			}
			if err := o.Validate(); err != nil {
				return err
			}
			if err := logsapi.ValidateAndApply(o.Logging, nil); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return run(ctx, o)
		},
	}
	o.AddFlags(cmd.Flags())
	return cmd
}

// run works until ctx ends, and returns nil then. Losing the lease is an error.
func run(ctx context.Context, o *options.Options) error {
	klog.FromContext(ctx).Info("Starting", "version", version.Get().GitVersion)
	kubeConfig, err := o.KubeConfig()
	if err != nil {
		return err
	}
	sandboxConfig, err := o.SandboxConfig()
	if err != nil {
		return err
	}
	kubeClient, err := kubernetes.NewForConfig(kubeConfig)
	if err != nil {
		return fmt.Errorf("making the client for the cluster: %w", err)
	}
	sandboxClient, err := versioned.NewForConfig(sandboxConfig)
	if err != nil {
		return fmt.Errorf("making the client for Sandboxes: %w", err)
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: kubeClient.EventsV1()})
	controllers, err := newControllers(kubeClient, sandboxClient, broadcaster, o)
	if err != nil {
		return err
	}
	buildInfo := newBuildInfo()
	legacyregistry.MustRegister(buildInfo)
	setBuildInfo(buildInfo)
	controllers.register(legacyregistry.MustRegister, legacyregistry.CustomMustRegister)

	var leading atomic.Bool
	leaseHealth := leaderelection.NewLeaderHealthzAdaptor(healthGrace)
	if err := errors.Join(
		serve(ctx, o.MetricsBindAddress, metricsHandler()),
		serve(ctx, o.HealthProbeBindAddress, healthHandler(leaseHealth, &leading, controllers.hasSynced)),
	); err != nil {
		return err
	}

	// Informers and events do not wait for the lease, so that a replica that takes over has its caches at hand.
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return fmt.Errorf("starting the event recorder: %w", err)
	}
	defer broadcaster.Shutdown()
	controllers.start(ctx)

	lead := func(ctx context.Context) {
		leading.Store(true)
		controllers.run(ctx)
	}
	if !o.LeaderElect {
		lead(ctx)
		return nil
	}
	lock, err := newLock(kubeConfig, o.LeaderElectionNamespace)
	if err != nil {
		return err
	}
	return runAsLeader(ctx, lock, leaseHealth, lead)
}

func metricsHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", legacyregistry.Handler())
	return mux
}

// healthHandler answers /healthz with whether the process does its part in leader election, and /readyz with whether it could
// work if asked to: a replica that stands by is ready, a leader is once it knows all objects.
func healthHandler(lease healthz.HealthChecker, leading *atomic.Bool, synced func() bool) http.Handler {
	mux := http.NewServeMux()
	healthz.InstallHandler(mux, healthz.PingHealthz, lease)
	healthz.InstallReadyzHandler(mux, healthz.PingHealthz, healthz.NamedCheck("informer-sync", func(*http.Request) error {
		if leading.Load() && !synced() {
			return errors.New("the caches are not filled yet")
		}
		return nil
	}))
	return mux
}
