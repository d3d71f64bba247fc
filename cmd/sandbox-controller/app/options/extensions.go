// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/spf13/pflag"
)

// ExtensionsOptions are the options about templates, warm pools and claims. The flags have upstream's names and defaults, but for
// Enabled: a server of Sandboxes serves these kinds too, and without their controllers claims would wait for ever.
type ExtensionsOptions struct {
	// Enabled is whether templates, pools and claims are reconciled.
	Enabled bool

	ClaimConcurrentWorkers    int
	WarmPoolConcurrentWorkers int
	TemplateConcurrentWorkers int

	// ClaimWarmCandidateGracePeriod is how long a claim waits for members of its pool that are about to become ready.
	ClaimWarmCandidateGracePeriod time.Duration
	// DisableClaimEvents suppresses the events about claims.
	DisableClaimEvents bool
	// AllowedLabelDomainsFile holds the prefixes that labels of claims may have. Empty or missing: sandbox.users.io.
	AllowedLabelDomainsFile string

	// WarmPoolMaxBatchSize is how many members of a pool are made, or deleted, in one pass at most.
	WarmPoolMaxBatchSize int
	// WarmPoolReplenishDelay is how long after the last claim its replacement is made. 0: as fits the load.
	WarmPoolReplenishDelay time.Duration
	// WarmPoolMaxRefillRate is how many members of a pool are made per second at most. 0: no limit.
	WarmPoolMaxRefillRate float64
	// WarmPoolReadinessGracePeriod is how long a member may take to become ready.
	WarmPoolReadinessGracePeriod time.Duration
	// WarmPoolUnschedulableRecheckInterval is how often members are looked at that the cluster has no place for.
	WarmPoolUnschedulableRecheckInterval time.Duration
	// EnableWarmPoolEviction lets the cluster autoscaler evict idle members.
	EnableWarmPoolEviction bool
}

func newExtensionsOptions() *ExtensionsOptions {
	return &ExtensionsOptions{
		Enabled:                              true,
		ClaimConcurrentWorkers:               50,
		WarmPoolConcurrentWorkers:            1,
		TemplateConcurrentWorkers:            1,
		ClaimWarmCandidateGracePeriod:        2 * time.Second,
		WarmPoolMaxBatchSize:                 300,
		WarmPoolReadinessGracePeriod:         5 * time.Minute,
		WarmPoolUnschedulableRecheckInterval: time.Minute,
		EnableWarmPoolEviction:               true,
	}
}

func (o *ExtensionsOptions) addFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.Enabled, "extensions", o.Enabled, "Reconcile SandboxTemplates, SandboxWarmPools and SandboxClaims. Upstream's manifests set it; here it is the default. With --extensions=false only Sandboxes are reconciled.")
	fs.IntVar(&o.ClaimConcurrentWorkers, "sandbox-claim-concurrent-workers", o.ClaimConcurrentWorkers, "Number of SandboxClaims that are reconciled at the same time.")
	fs.IntVar(&o.WarmPoolConcurrentWorkers, "sandbox-warm-pool-concurrent-workers", o.WarmPoolConcurrentWorkers, "Number of SandboxWarmPools that are reconciled at the same time.")
	fs.IntVar(&o.TemplateConcurrentWorkers, "sandbox-template-concurrent-workers", o.TemplateConcurrentWorkers, "Number of SandboxTemplates that are reconciled at the same time.")
	fs.DurationVar(&o.ClaimWarmCandidateGracePeriod, "sandbox-claim-warm-candidate-grace-period", o.ClaimWarmCandidateGracePeriod, "How long a claim waits for members of its pool that are about to become ready before a Sandbox is made for it. 0: not at all.")
	fs.BoolVar(&o.DisableClaimEvents, "disable-claim-events", o.DisableClaimEvents, "Record no events about SandboxClaims.")
	fs.StringVar(&o.AllowedLabelDomainsFile, "allowed-label-domains-file", o.AllowedLabelDomainsFile, "File with the prefixes that labels of claims may have, read again when it changes. The server has to have the same. Empty or missing: sandbox.users.io.")
	fs.IntVar(&o.WarmPoolMaxBatchSize, "sandbox-warm-pool-max-batch-size", o.WarmPoolMaxBatchSize, "Number of Sandboxes of a pool that are made, or deleted, in one pass at most.")
	fs.DurationVar(&o.WarmPoolReplenishDelay, "sandbox-warm-pool-replenish-delay", o.WarmPoolReplenishDelay, "How long after the last claim took a Sandbox of a pool it is replaced. Claims that keep coming put it off by no more than that, or 5s if that is more. 0: once claims pause for half a second; while they keep coming, little by little after 5s, and faster from when less than a quarter of the pool is ready.")
	fs.Float64Var(&o.WarmPoolMaxRefillRate, "sandbox-warm-pool-max-refill-rate", o.WarmPoolMaxRefillRate, "Number of Sandboxes of a pool that are made per second at most. 0: no limit.")
	fs.DurationVar(&o.WarmPoolReadinessGracePeriod, "sandbox-warm-pool-readiness-grace-period", o.WarmPoolReadinessGracePeriod, "How long a Sandbox of a pool may take to become ready, or to become ready again, before it is replaced.")
	fs.DurationVar(&o.WarmPoolUnschedulableRecheckInterval, "sandbox-warm-pool-unschedulable-recheck-interval", o.WarmPoolUnschedulableRecheckInterval, "How often the Sandboxes of a pool are looked at that are kept past the grace period because the cluster has no place for them.")
	fs.BoolVar(&o.EnableWarmPoolEviction, "enable-warm-pool-eviction", o.EnableWarmPoolEviction, "Mark the Pods of idle Sandboxes of a pool as safe to evict, unless their template says otherwise.")
}

func (o *ExtensionsOptions) validate() error {
	var errs []error
	for flag, value := range map[string]int{
		"--sandbox-claim-concurrent-workers":     o.ClaimConcurrentWorkers,
		"--sandbox-warm-pool-concurrent-workers": o.WarmPoolConcurrentWorkers,
		"--sandbox-template-concurrent-workers":  o.TemplateConcurrentWorkers,
		"--sandbox-warm-pool-max-batch-size":     o.WarmPoolMaxBatchSize,
	} {
		if value <= 0 {
			errs = append(errs, fmt.Errorf("%s must be greater than 0, not %d", flag, value))
		}
	}
	for flag, value := range map[string]time.Duration{
		"--sandbox-warm-pool-readiness-grace-period":         o.WarmPoolReadinessGracePeriod,
		"--sandbox-warm-pool-unschedulable-recheck-interval": o.WarmPoolUnschedulableRecheckInterval,
	} {
		if value <= 0 {
			errs = append(errs, fmt.Errorf("%s must be greater than 0, not %v", flag, value))
		}
	}
	for flag, value := range map[string]time.Duration{
		"--sandbox-warm-pool-replenish-delay":         o.WarmPoolReplenishDelay,
		"--sandbox-claim-warm-candidate-grace-period": o.ClaimWarmCandidateGracePeriod,
	} {
		if value < 0 {
			errs = append(errs, fmt.Errorf("%s must not be negative, as %v is", flag, value))
		}
	}
	if rate := o.WarmPoolMaxRefillRate; rate < 0 || math.IsNaN(rate) || math.IsInf(rate, 0) {
		errs = append(errs, fmt.Errorf("--sandbox-warm-pool-max-refill-rate must be a finite number that is not negative, not %v", rate))
	}
	return errors.Join(errs...)
}
