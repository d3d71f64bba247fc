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
// If some resources are stored in another etcd, that is guarded as well. The record says which resources those are: a server that looks
// for them elsewhere finds nothing, which is no different from a loss.
//
// The recorded revision follows the storage at intervals of Config.Period and at the end of Run. A rollback that loses less than the
// writes of about one period before a crash goes unnoticed, unless the server that saw those writes still runs.
package fence

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
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

// Storage is an etcd to guard.
type Storage struct {
	// Name says which resources are stored there, in letters, digits, '-', '_' and '.'. It is in the record, hence to be kept while they
	// are. That of the etcd for all other resources is empty.
	Name string
	// Client is a client of the etcd. Whoever made it closes it, after Run.
	Client *clientv3.Client
}

// Config says where the record is kept and how closely it follows the storage.
type Config struct {
	// ConfigMap holds the record. It must not be lost together with a storage, nor shared by servers of different storages.
	ConfigMap types.NamespacedName
	// Period is the least time between two writes of the ConfigMap, and about the most by which the recorded high-water mark lags.
	Period time.Duration
}

// Fence decides whether the storages may be served from. It is safe for concurrent use.
type Fence struct {
	config Config
	ledger ledger
	clock  clock.WithTicker
	closed *metrics.Gauge

	// disturbed asks for a check at once.
	disturbed chan struct{}

	mu sync.Mutex
	// reason says why the fence is closed; it is open if that is empty.
	reason string
	// disturbances counts the changes of the connections, so that no check opens the fence on what it heard before one.
	disturbances int

	// What follows belongs to Run.

	// storages are those to guard.
	storages []*guarded
	// admitted is set once the fence was opened for these storages.
	admitted bool
	// recordedAt is when the ConfigMap was last compared.
	recordedAt time.Time
	// lost is set once a storage that was seen is gone. It is not unset, even if the storage comes back: the watch caches may have filled
	// from what was there in between.
	lost *loss
}

// guarded is a storage and what is known of it.
type guarded struct {
	name   string
	marker marker
	conn   connection

	// seen is its last state, nil before the first check.
	seen *observation
	// recorded is the high-water mark in the ConfigMap, as far as known.
	recorded int64
	// renamed is its identity if it was accepted but maybe not recorded yet.
	renamed identity
}

// loss is the end of a storage for the process that saw it.
type loss struct {
	reason string
	// held is the least that must be recorded of the storage of the given name, nil if nothing.
	held *record
	name string
}

// New returns a Fence that is closed, and stays so until Run opens it. It exposes whether it is closed as the metric
// sandbox_apiserver_storage_fence_closed (1 or 0), which it hands to register.
func New(storages []Storage, configMaps corev1client.ConfigMapsGetter, config Config, clock clock.WithTicker, register func(metrics.Registerable) error) (*Fence, error) {
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
	f := &Fence{
		config:    config,
		ledger:    ledger{name: config.ConfigMap, configMaps: configMaps.ConfigMaps(config.ConfigMap.Namespace)},
		clock:     clock,
		closed:    closed,
		disturbed: make(chan struct{}, 1),
		reason:    "the storage has not been verified yet",
	}
	for _, storage := range storages {
		f.storages = append(f.storages, &guarded{
			name: storage.Name, marker: marker{kv: storage.Client.KV}, conn: storage.Client.ActiveConnection(),
		})
	}
	return f, nil
}

// Run checks the storages, and opens and closes the fence accordingly, until ctx ends; then it records how far they got, which
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
	for _, storage := range f.storages {
		watching.Go(func() { f.watchConnection(watchCtx, storage.conn) })
	}

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

// check compares the storages with what is known of them. Its error is that of Run.
func (f *Fence) check(ctx context.Context) error {
	if f.lost != nil {
		return f.leave(ctx)
	}
	disturbances := f.disturbancesSoFar()
	lost, err := f.observe(ctx)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		f.close(ctx, fmt.Sprintf("the storage cannot be verified: %v", err))
		return nil
	case lost != nil:
		return f.lose(ctx, *lost)
	}
	if !f.admitted {
		f.admit(ctx, disturbances)
		return nil
	}
	f.open(ctx, disturbances)
	if f.clock.Since(f.recordedAt) < f.config.Period {
		return nil
	}
	return f.keepRecord(ctx)
}

// finish records the last state of storages that were served from.
func (f *Fence) finish(ctx context.Context) error {
	switch {
	case f.lost != nil:
		return f.leave(ctx)
	case !f.admitted:
		return nil
	}
	lost, err := f.observe(ctx)
	switch {
	case err != nil:
		klog.FromContext(ctx).Error(err, "Cannot record how far the storage got", "configMap", f.config.ConfigMap)
		return nil
	case lost != nil:
		return f.lose(ctx, *lost)
	}
	return f.keepRecord(ctx)
}

// observe looks at every storage. It returns the loss of the first that does not continue what was seen of it before.
func (f *Fence) observe(ctx context.Context) (*loss, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	for _, storage := range f.storages {
		observed, err := storage.marker.observe(ctx)
		if err != nil {
			return nil, err
		}
		if storage.seen != nil && !observed.continues(*storage.seen) {
			return f.lossTo(observed, storage), nil
		}
		storage.seen = &observed
	}
	return nil, nil
}

// admit opens the fence for storages that this process has not served from yet, if the record allows it.
func (f *Fence) admit(ctx context.Context, disturbances int) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	c, err := f.compare(ctx)
	if err != nil {
		f.close(ctx, fmt.Sprintf("the record of the storage is not available: %v", err))
		return
	}
	if losses := c.losses(); len(losses) != 0 {
		f.closeForLoss(ctx, losses)
		return
	}
	if err := f.recordAdmission(ctx, c); err != nil {
		f.close(ctx, fmt.Sprintf("the storage cannot be recorded: %v", err))
		return
	}
	f.admitted = true
	f.open(ctx, disturbances)
}

// recordAdmission makes the storages the recorded ones, if they are not. A storage that is served from before it is recorded is not
// protected.
func (f *Fence) recordAdmission(ctx context.Context, c comparison) error {
	stale := false
	for _, finding := range c.findings {
		switch finding.verdict {
		case intact:
			finding.storage.recorded = finding.recorded.revision
			continue
		case accepted:
			if err := finding.storage.accept(ctx); err != nil {
				return err
			}
		}
		stale = true
	}
	if !stale {
		return nil
	}
	return f.record(ctx, c.configMap)
}

// keepRecord raises the recorded high-water marks of storages that are being served from. That they cannot be raised is no reason to
// refuse requests; that the record is of something else is, and its error is that of Run.
func (f *Fence) keepRecord(ctx context.Context) error {
	if !slices.ContainsFunc(f.storages, func(s *guarded) bool { return s.seen.revision > s.recorded }) {
		return nil
	}
	f.recordedAt = f.clock.Now()
	requestCtx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	c, err := f.compare(requestCtx)
	if err == nil {
		stale := false
		for _, finding := range c.findings {
			switch {
			case finding.verdict == unrecorded:
				stale = true
			case finding.verdict != intact:
				return f.lose(ctx, loss{reason: finding.storage.subject() + " is no longer the recorded one: " + finding.reason()})
			case finding.recorded.revision < finding.storage.seen.revision:
				stale = true
			default:
				finding.storage.recorded = finding.recorded.revision
			}
		}
		if stale {
			err = f.record(requestCtx, c.configMap)
		}
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot raise the recorded high-water mark of the storage", "configMap", f.config.ConfigMap)
	}
	return nil
}

// compare reads the record, and compares the storages with it. Another server may have moved on a mark and then the record since the
// storage was observed. What seems lost is therefore looked at again: an intact storage has by then all that the record says.
func (f *Fence) compare(ctx context.Context) (comparison, error) {
	configMap, err := f.ledger.read(ctx)
	if err != nil {
		return comparison{}, err
	}
	c := comparison{configMap: configMap}
	for _, storage := range f.storages {
		found := f.judge(storage, configMap)
		if found.isLoss() {
			again, err := storage.marker.observe(ctx)
			if err != nil {
				return comparison{}, err
			}
			if !again.continues(*storage.seen) {
				return comparison{}, fmt.Errorf("%s changed from %s to %s meanwhile", storage.subject(), storage.seen.token(), again.token())
			}
			storage.seen = &again
			found = f.judge(storage, configMap)
		}
		c.findings = append(c.findings, found)
	}
	return c, nil
}

// judge compares a storage, as it was last seen, with the record of it.
func (f *Fence) judge(storage *guarded, configMap *corev1.ConfigMap) finding {
	if configMap == nil {
		return finding{storage: storage, verdict: unrecorded}
	}
	token := ""
	if own := storage.seen.token(); storage.seen.identity == storage.renamed ||
		slices.Contains(strings.Split(configMap.Annotations[AcceptAnnotation], tokenSeparator), own) {
		token = own
	}
	recorded := parseRecord(configMap.Data, storage.name)
	found := finding{storage: storage, recorded: recorded, verdict: decide(*storage.seen, &recorded, token)}
	if storage.name == "" {
		found.elsewhere = f.recordedElsewhere(configMap)
		if found.verdict == intact && len(found.elsewhere) != 0 {
			found.verdict = displaced
			if token != "" {
				found.verdict = accepted
			}
		}
	}
	return found
}

// recordedElsewhere returns the names of the storages in the record that this server does not use. It looks for the resources that are
// stored there in another.
func (f *Fence) recordedElsewhere(configMap *corev1.ConfigMap) []string {
	names := recordedNames(configMap.Data)
	for _, storage := range f.storages {
		names.Delete(storage.name)
	}
	return sets.List(names)
}

// accept gives the storage a new identity, so that neither a server that still remembers the lost state nor that state itself, should it
// turn up again, is taken for its continuation.
func (s *guarded) accept(ctx context.Context) error {
	if s.seen.identity == s.renamed {
		return nil
	}
	renamed, err := s.marker.rename(ctx, *s.seen)
	if err != nil {
		return err
	}
	klog.FromContext(ctx).Info("The loss of storage was accepted", "token", s.seen.token(), "storage", renamed.identity)
	s.seen, s.renamed = &renamed, renamed.identity
	return nil
}

// record marks the current revisions in the storages, then in the ConfigMap: a crash in between leaves a mark that is too low, never
// one that the storage has not reached.
func (f *Fence) record(ctx context.Context, configMap *corev1.ConfigMap) error {
	f.recordedAt = f.clock.Now()
	for _, storage := range f.storages {
		if storage.seen.marked < storage.seen.revision {
			advanced, err := storage.marker.advance(ctx, *storage.seen)
			if err != nil {
				return err
			}
			storage.seen = &advanced
		}
	}
	if err := f.ledger.write(ctx, configMap, f.marks()); err != nil {
		return err
	}
	for _, storage := range f.storages {
		storage.recorded = storage.seen.marked
	}
	return nil
}

// marks returns what is to be recorded of the storages as they were last seen.
func (f *Fence) marks() map[string]string {
	data := map[string]string{}
	for _, storage := range f.storages {
		maps.Copy(data, record{identity: storage.seen.identity, revision: storage.seen.marked}.data(storage.name))
	}
	return data
}

// lossTo returns the loss of the storage that was seen to the one that is observed now.
func (f *Fence) lossTo(observed observation, storage *guarded) *loss {
	seen := storage.seen
	l := &loss{name: storage.name, reason: fmt.Sprintf("%s changed under the running server: it was %s at revision %d, it is %s at revision %d",
		storage.subject(), seen.identity, seen.revision, observed.identity, observed.revision)}
	if !f.admitted {
		return l
	}
	l.held = &record{identity: seen.identity, revision: seen.marked}
	if observed.identity == seen.identity {
		// The marker may have survived the rollback, and the next process would see nothing amiss. Of a storage that was replaced this must
		// not be recorded: should the right one come back, its marker would be too old.
		l.held.revision = seen.revision
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
	if err := f.leaveRecord(requestCtx, f.lost.name, *f.lost.held); err != nil {
		f.close(ctx, fmt.Sprintf("%s; what it held cannot be recorded: %v", f.lost.reason, err))
		return nil
	}
	return errors.New(f.lost.reason)
}

// leaveRecord makes sure that the record of the named storage is no lower than the given one, unless it is of another by now.
func (f *Fence) leaveRecord(ctx context.Context, name string, held record) error {
	configMap, err := f.ledger.read(ctx)
	if err != nil {
		return err
	}
	data := f.marks()
	if configMap != nil {
		recorded := parseRecord(configMap.Data, name)
		if recorded.identity != held.identity || recorded.revision >= held.revision {
			return nil
		}
		data = maps.Clone(configMap.Data)
	}
	maps.Copy(data, held.data(name))
	return f.ledger.write(ctx, configMap, data)
}
