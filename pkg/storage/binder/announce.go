// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package binder

import (
	"context"
	"errors"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
)

const (
	// announceDelay is how long an announcement waits, so that the answer to the request goes first. A client needs about that long to
	// begin to watch.
	announceDelay = 4 * time.Millisecond
	// While crowd claims are being created, announcements are put off by deferral at a time, but for no longer than maxDeferral: claims
	// go first.
	crowd       = 8
	deferral    = 25 * time.Millisecond
	maxDeferral = 500 * time.Millisecond
	// announcers is how many announcements are written at once.
	announcers = 16
)

// announcement is due for a claim that was bound in the request that created it. A client that watches from the answer to that request on
// waits for an event that says that the claim is ready, and the claim is so already: without another write there would be no event, and
// the client would give the claim up.
type announcement struct {
	// key is that of the claim in its storage.
	key string
	uid types.UID
	// at is when the claim was bound.
	at time.Time
}

// announcementQueue holds what is to be announced. It may be lost: the controller announces after a while what no server has.
type announcementQueue = workqueue.TypedDelayingInterface[announcement]

func newAnnouncementQueue(clock clock.WithTicker) announcementQueue {
	return workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[announcement]{Clock: clock})
}

// announceAll announces until ctx ends.
func (b *Binder) announceAll(ctx context.Context) {
	var workers wait.Group
	for range announcers {
		workers.Start(func() {
			for b.announceNext(ctx) {
			}
		})
	}
	<-ctx.Done()
	b.announcements.ShutDown()
	workers.Wait()
}

// announceNext makes the next announcement. It says false if there is none any more.
func (b *Binder) announceNext(ctx context.Context) bool {
	next, shutdown := b.announcements.Get()
	if shutdown {
		return false
	}
	defer b.announcements.Done(next)
	if b.creating.Load() >= crowd && b.clock.Since(next.at) < maxDeferral {
		b.announcements.AddAfter(next, deferral)
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	if err := b.announce(ctx, next); err != nil && !storage.IsNotFound(err) && !storage.IsInvalidObj(err) {
		klog.FromContext(ctx).V(2).Info("A claim that was bound is left for the controller to announce", "key", next.key, "err", err)
	}
	return true
}

// errAnnounced ends an update that has nothing to say.
var errAnnounced = errors.New("the claim says since when it is ready")

// announce writes into a claim since when it is ready, if it is still the same claim and does not say so. That is an event for all who
// watch it.
func (b *Binder) announce(ctx context.Context, a announcement) error {
	err := b.resources[claimResource].storage.GuaranteedUpdate(ctx, a.key, &extensions.SandboxClaim{}, false, &storage.Preconditions{UID: &a.uid},
		storage.SimpleUpdate(func(obj runtime.Object) (runtime.Object, error) {
			before, err := b.external(obj.(*extensions.SandboxClaim))
			if err != nil {
				return nil, err
			}
			if before.Annotations[extensionsv1beta1.ClaimFirstReadyAtAnnotation] != "" {
				return nil, errAnnounced
			}
			after := announcedClaim(before, a.at)
			ownClaim(before, after, b.clock.Now())
			return b.scheme.UnsafeConvertToVersion(after, extensions.SchemeGroupVersion)
		}), nil)
	if errors.Is(err, errAnnounced) {
		return nil
	}
	return err
}

// announcedClaim returns a copy of a claim that says since when it is ready.
func announcedClaim(claim *extensionsv1beta1.SandboxClaim, since time.Time) *extensionsv1beta1.SandboxClaim {
	return annotated(claim, extensionsv1beta1.ClaimFirstReadyAtAnnotation, timestamp(since))
}

// annotated returns a copy of a claim with another annotation. The copy shares all else.
func annotated(claim *extensionsv1beta1.SandboxClaim, key, value string) *extensionsv1beta1.SandboxClaim {
	copied := *claim
	copied.Annotations = maps.Clone(claim.Annotations)
	if copied.Annotations == nil {
		copied.Annotations = map[string]string{}
	}
	copied.Annotations[key] = value
	return &copied
}

// timestamp returns a time as annotations of claims have it.
func timestamp(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }
