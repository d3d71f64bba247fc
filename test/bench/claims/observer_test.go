// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
)

// claimWith returns a claim that has a Sandbox, with a Ready condition.
func claimWith(name string, status metav1.ConditionStatus) *extensionsv1beta1.SandboxClaim {
	claim := claimOf(name, "x")
	claim.Status.Conditions = []metav1.Condition{{Type: extensionsv1beta1.ClaimConditionReady, Status: status}}
	return &claim
}

func TestReadinessIsSeenOnce(t *testing.T) {
	t.Parallel()
	o := newObserver()
	first := time.Now()
	unbound := claimWith("a", metav1.ConditionTrue)
	unbound.Status.Sandbox.Name = ""
	o.see(unbound, first.Add(-2*time.Second))
	o.see(claimWith("a", metav1.ConditionFalse), first.Add(-time.Second))
	o.see(claimWith("a", metav1.ConditionTrue), first)
	o.see(claimWith("a", metav1.ConditionTrue), first.Add(time.Second))
	if got, err := o.await(t.Context(), "a"); err != nil || !got.Equal(first) {
		t.Errorf("got %v and error %v, want %v", got, err, first)
	}
}

func TestAwaitEnds(t *testing.T) {
	t.Parallel()
	expired := apierrors.NewResourceExpired("too old").Status()
	for name, test := range map[string]struct {
		do   func(watcher *watch.FakeWatcher, cancel func())
		want string
	}{
		"when the claim is ready": {
			func(watcher *watch.FakeWatcher, _ func()) {
				watcher.Add(claimWith("b", metav1.ConditionTrue))
				watcher.Modify(claimWith("a", metav1.ConditionTrue))
			}, "",
		},
		"not when the claim is created": {
			func(watcher *watch.FakeWatcher, cancel func()) {
				watcher.Add(claimWith("a", metav1.ConditionTrue))
				cancel()
			}, "no event",
		},
		"when its time is up":  {func(_ *watch.FakeWatcher, cancel func()) { cancel() }, "no event"},
		"when the watch ends":  {func(watcher *watch.FakeWatcher, _ func()) { watcher.Stop() }, "has ended"},
		"when the watch fails": {func(watcher *watch.FakeWatcher, _ func()) { watcher.Error(&expired) }, "too old"},
		"not when the claim is deleted": {
			func(watcher *watch.FakeWatcher, cancel func()) {
				watcher.Delete(claimWith("a", metav1.ConditionTrue))
				cancel()
			}, "no event",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			watcher := watch.NewFake()
			o := newObserver()
			go func() {
				defer close(o.ended)
				o.err = o.follow(watcher)
			}()
			defer func() {
				cancel()
				watcher.Stop()
				<-o.ended
			}()
			go test.do(watcher, cancel)
			_, err := o.await(ctx, "a")
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want one with %q", err, test.want)
			}
		})
	}
}
