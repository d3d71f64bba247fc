// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package fence keeps the server from answering out of a storage that lost data. Sandboxes own Pods and PersistentVolumeClaims of the
// main cluster; if etcd came back empty or in an earlier state, the garbage collector would find the owners absent and delete all
// those.
//
// The main cluster therefore remembers in a ConfigMap which storage the server last had, and a revision that storage had reached. A
// Fence is closed until it has found the storage to be that one and to hold that revision. It closes again when the connection to
// etcd is lost, because who answers next need not be who answered last. While it is closed the server is not ready and answers 503.
//
// The recorded revision follows the storage at intervals of Config.Period and at the end of Run. A rollback that loses less than the
// writes of about one period before a crash goes unnoticed, unless the server that saw those writes still runs.
package fence

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// DefaultPeriod is the usual Config.Period.
	DefaultPeriod = 10 * time.Second

	// checkPeriod is how often etcd is asked who it is, besides after each loss of the connection. It matters where a connection dies
	// without a sign.
	checkPeriod = time.Second
	// checkTimeout bounds what a check asks of etcd, and of kube-apiserver.
	checkTimeout = 5 * time.Second
)

// Config says where the record is kept and how closely it follows the storage.
type Config struct {
	// ConfigMap holds the record. It must not be lost together with the storage, nor shared by servers of different storages.
	ConfigMap types.NamespacedName
	// Period is the least time between two writes of the ConfigMap, and about the most by which the recorded high-water mark lags.
	Period time.Duration
}

// Fence decides whether the storage may be served from. It is safe for concurrent use.
type Fence struct {
	config Config
	marker marker
	ledger ledger
	conn   connection
	clock  clock.WithTicker
	closed *metrics.Gauge

	// disturbed asks for a check at once.
	disturbed chan struct{}

	mu sync.Mutex
	// reason says why the fence is closed; it is open if that is empty.
	reason string
	// disturbances counts the changes of the connection, so that no check opens the fence on what it heard before one.
	disturbances int

	// What follows belongs to Run.

	// seen is the last state of the storage, nil before the first check.
	seen *observation
	// admitted is set once the fence was opened for that storage.
	admitted bool
	// recorded is the high-water mark in the ConfigMap, as far as known.
	recorded int64
	// recordedAt is when the ConfigMap was last compared.
	recordedAt time.Time
	// renamed is the identity of a storage that was accepted but maybe not recorded yet.
	renamed identity
	// lost is set once the storage that was seen is gone. It is not unset, even if the storage comes back: the watch caches may have
	// filled from what was there in between.
	lost *loss
}

// loss is the end of a storage for the process that saw it.
type loss struct {
	reason string
	// held is the least that must be recorded of the storage, nil if nothing.
	held *record
}

// New returns a Fence that is closed, and stays so until Run opens it. It exposes whether it is closed as the metric
// sandbox_apiserver_storage_fence_closed (1 or 0), which it hands to register.
func New(etcd *clientv3.Client, configMaps corev1client.ConfigMapsGetter, config Config, clock clock.WithTicker, register func(metrics.Registerable) error) (*Fence, error) {
	closed := metrics.NewGauge(&metrics.GaugeOpts{
		Namespace:      "sandbox_apiserver",
		Name:           "storage_fence_closed",
		Help:           "1 while requests are refused because the storage is not known to hold all that it once held, else 0.",
		StabilityLevel: metrics.ALPHA,
	})
	if err := register(closed); err != nil {
		return nil, fmt.Errorf("registering the metric of the storage fence: %w", err)
	}
	closed.Set(1)
	return &Fence{
		config:    config,
		marker:    marker{kv: etcd.KV},
		ledger:    ledger{name: config.ConfigMap, configMaps: configMaps.ConfigMaps(config.ConfigMap.Namespace)},
		conn:      etcd.ActiveConnection(),
		clock:     clock,
		closed:    closed,
		disturbed: make(chan struct{}, 1),
		reason:    "the storage has not been verified yet",
	}, nil
}

// Run checks the storage, and opens and closes the fence accordingly, until ctx ends; then it records how far the storage got, which
// takes up to three times five seconds if etcd and kube-apiserver do not answer. End ctx after the last request and before etcd.
//
// It returns an error if another storage, or an earlier state of it, answers than before in the same process. The fence is closed for
// good then, and the process must end: its watch caches hold what is no longer stored. The next process finds the record that this
// one left.
func (f *Fence) Run(ctx context.Context) error {
	var watching sync.WaitGroup
	defer watching.Wait()
	watchCtx, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	watching.Go(func() { f.watchConnection(watchCtx) })

	ticker := f.clock.NewTicker(checkPeriod)
	defer ticker.Stop()
	for {
		if err := f.check(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return f.finish(context.WithoutCancel(ctx))
		case <-ticker.C():
		case <-f.disturbed:
		}
	}
}

// check compares the storage with what is known of it. Its error is that of Run.
func (f *Fence) check(ctx context.Context) error {
	if f.lost != nil {
		return f.leave(ctx)
	}
	disturbances := f.disturbancesSoFar()
	observed, err := f.observe(ctx)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		f.close(ctx, fmt.Sprintf("the storage cannot be verified: %v", err))
		return nil
	case f.seen != nil && !observed.continues(*f.seen):
		return f.lose(ctx, f.lossTo(observed))
	}
	f.seen = &observed
	if !f.admitted {
		f.admit(ctx, observed, disturbances)
		return nil
	}
	f.open(ctx, disturbances)
	if f.clock.Since(f.recordedAt) < f.config.Period {
		return nil
	}
	return f.keepRecord(ctx, observed)
}

// finish records the last state of a storage that was served from.
func (f *Fence) finish(ctx context.Context) error {
	switch {
	case f.lost != nil:
		return f.leave(ctx)
	case !f.admitted:
		return nil
	}
	observed, err := f.observe(ctx)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot record how far the storage got", "configMap", f.config.ConfigMap)
		return nil
	}
	if !observed.continues(*f.seen) {
		return f.lose(ctx, f.lossTo(observed))
	}
	return f.keepRecord(ctx, observed)
}

func (f *Fence) observe(ctx context.Context) (observation, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	return f.marker.observe(ctx)
}

// admit opens the fence for a storage that this process has not served from yet, if the record allows it.
func (f *Fence) admit(ctx context.Context, observed observation, disturbances int) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	c, err := f.compare(ctx, observed)
	if err != nil {
		f.close(ctx, fmt.Sprintf("the record of the storage is not available: %v", err))
		return
	}
	switch c.verdict {
	case replaced, rolledBack:
		f.closeForLoss(ctx, c.verdict, c.observed, c.recorded)
		return
	case accepted:
		err = f.accept(ctx, c.observed, c.configMap)
	case unrecorded:
		// A storage that is served from before it is recorded is not protected.
		err = f.record(ctx, c.observed, c.configMap)
	case intact:
		f.recorded = c.recorded.revision
	}
	if err != nil {
		f.close(ctx, fmt.Sprintf("the storage cannot be recorded: %v", err))
		return
	}
	f.admitted = true
	f.open(ctx, disturbances)
}

// keepRecord raises the recorded high-water mark of a storage that is being served from. That it cannot be raised is no reason to
// refuse requests; that the record is of something else is, and its error is that of Run.
func (f *Fence) keepRecord(ctx context.Context, observed observation) error {
	if observed.revision <= f.recorded {
		return nil
	}
	f.recordedAt = f.clock.Now()
	requestCtx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	c, err := f.compare(requestCtx, observed)
	if err == nil {
		switch {
		case c.verdict == unrecorded, c.verdict == intact && c.recorded.revision < c.observed.revision:
			err = f.record(requestCtx, c.observed, c.configMap)
		case c.verdict == intact:
			f.recorded = c.recorded.revision
		default:
			return f.lose(ctx, loss{reason: fmt.Sprintf("the storage %s is no longer the recorded one, which is %s", c.observed.token(), c.recorded)})
		}
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot raise the recorded high-water mark of the storage", "configMap", f.config.ConfigMap)
	}
	return nil
}

// comparison is that of the storage with the record of it. configMap is the one that has the record, nil if there is none.
type comparison struct {
	observed  observation
	configMap *corev1.ConfigMap
	verdict   verdict
	recorded  record
}

// compare reads the record, and compares the storage with it. Another server may have moved on the mark and then the record since the
// storage was observed. What seems lost is therefore looked at again: an intact storage has by then all that the record says.
func (f *Fence) compare(ctx context.Context, observed observation) (comparison, error) {
	configMap, err := f.ledger.read(ctx)
	if err != nil {
		return comparison{}, err
	}
	v, recorded := f.judge(observed, configMap)
	if v == replaced || v == rolledBack {
		again, err := f.marker.observe(ctx)
		if err != nil {
			return comparison{}, err
		}
		if !again.continues(observed) {
			return comparison{}, fmt.Errorf("the storage changed from %s to %s meanwhile", observed.token(), again.token())
		}
		observed = again
		v, recorded = f.judge(observed, configMap)
	}
	return comparison{observed, configMap, v, recorded}, nil
}

func (f *Fence) judge(observed observation, configMap *corev1.ConfigMap) (verdict, record) {
	if configMap == nil {
		return decide(observed, nil, ""), record{}
	}
	recorded := parseRecord(configMap.Data)
	token := configMap.Annotations[AcceptAnnotation]
	if observed.identity == f.renamed {
		token = observed.token()
	}
	return decide(observed, &recorded, token), recorded
}

// accept makes the observed storage the recorded one. It gets a new identity, so that neither a server that still remembers the lost
// state nor that state itself, should it turn up again, is taken for its continuation.
func (f *Fence) accept(ctx context.Context, observed observation, configMap *corev1.ConfigMap) error {
	if observed.identity != f.renamed {
		renamed, err := f.marker.rename(ctx, observed)
		if err != nil {
			return err
		}
		klog.FromContext(ctx).Info("The loss of storage was accepted", "token", observed.token(), "storage", renamed.identity)
		f.seen, f.renamed = &renamed, renamed.identity
		observed = renamed
	}
	return f.record(ctx, observed, configMap)
}

// record marks the current revision in the storage, then in the ConfigMap: a crash in between leaves a mark that is too low, never
// one that the storage has not reached.
func (f *Fence) record(ctx context.Context, observed observation, configMap *corev1.ConfigMap) error {
	f.recordedAt = f.clock.Now()
	if observed.marked < observed.revision {
		advanced, err := f.marker.advance(ctx, observed)
		if err != nil {
			return err
		}
		f.seen = &advanced
		observed = advanced
	}
	if err := f.ledger.write(ctx, configMap, record{identity: observed.identity, revision: observed.marked}); err != nil {
		return err
	}
	f.recorded = observed.marked
	return nil
}

// lossTo returns the loss of the storage that was seen to the one that is observed now.
func (f *Fence) lossTo(observed observation) loss {
	l := loss{reason: fmt.Sprintf("the storage changed under the running server: it was %s at revision %d, it is %s at revision %d",
		f.seen.identity, f.seen.revision, observed.identity, observed.revision)}
	if !f.admitted {
		return l
	}
	l.held = &record{identity: f.seen.identity, revision: f.seen.marked}
	if observed.identity == f.seen.identity {
		// The marker may have survived the rollback, and the next process would see nothing amiss. Of a storage that was replaced this must
		// not be recorded: should the right one come back, its marker would be too old.
		l.held.revision = f.seen.revision
	}
	return l
}

// lose closes the fence for the rest of the process. Its error is that of Run.
func (f *Fence) lose(ctx context.Context, l loss) error {
	f.lost = &l
	f.close(ctx, l.reason)
	return f.leave(ctx)
}

// leave returns the error that ends the process, once the record holds what the process knows. Until then it returns nil.
func (f *Fence) leave(ctx context.Context) error {
	if f.lost.held == nil {
		return errors.New(f.lost.reason)
	}
	requestCtx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if err := f.leaveRecord(requestCtx, *f.lost.held); err != nil {
		f.close(ctx, fmt.Sprintf("%s; what it held cannot be recorded: %v", f.lost.reason, err))
		return nil
	}
	return errors.New(f.lost.reason)
}

// leaveRecord makes sure that the record is no lower than the given one, unless it is of another storage by now.
func (f *Fence) leaveRecord(ctx context.Context, held record) error {
	configMap, err := f.ledger.read(ctx)
	if err != nil {
		return err
	}
	if configMap != nil {
		recorded := parseRecord(configMap.Data)
		if recorded.identity != held.identity || recorded.revision >= held.revision {
			return nil
		}
	}
	return f.ledger.write(ctx, configMap, held)
}
