// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

const (
	leaseName     = "sandbox-controller"
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second

	// healthGrace is how long past its end an unrenewed lease is not yet held against the process.
	healthGrace = 20 * time.Second
)

// errLeaseLost makes the process exit: another replica may be at work already, and a restart is the surest way to stop.
var errLeaseLost = errors.New("the leader election lease was lost")

// runAsLeader waits for the lease, calls run, and keeps the lease until run has returned. It returns nil if ctx has ended by then,
// after it has released the lease, and errLeaseLost if the lease could not be kept.
func runAsLeader(ctx context.Context, lock resourcelock.Interface, health *leaderelection.HealthzAdaptor, run func(context.Context)) error {
	// The lease outlives ctx until run has returned, so that no other replica starts while workers still finish.
	leaseCtx, release := context.WithCancel(context.WithoutCancel(ctx))
	defer release()
	started := make(chan struct{})
	stopped := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name:            leaseName,
		Lock:            lock,
		LeaseDuration:   leaseDuration,
		RenewDeadline:   renewDeadline,
		RetryPeriod:     retryPeriod,
		ReleaseOnCancel: true,
		WatchDog:        health,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				close(started)
				defer close(stopped)
				working, stop := context.WithCancel(leading)
				defer stop()
				defer context.AfterFunc(ctx, stop)()
				run(working)
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("setting up leader election: %w", err)
	}
	context.AfterFunc(ctx, func() {
		select {
		case <-started:
			<-stopped
		default:
		}
		release()
	})
	klog.FromContext(ctx).Info("Waiting for the lease", "lease", lock.Describe())
	elector.Run(leaseCtx)
	if ctx.Err() == nil {
		return errLeaseLost
	}
	return nil
}

func newLock(config *rest.Config, namespace string) (resourcelock.Interface, error) {
	hostname, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("getting the host name: %w", err)
	}
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, leaseName,
		resourcelock.ResourceLockConfig{Identity: hostname + "_" + string(uuid.NewUUID())}, config, renewDeadline)
	if err != nil {
		return nil, fmt.Errorf("setting up the lease: %w", err)
	}
	return lock, nil
}
