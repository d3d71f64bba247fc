// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	clocktesting "k8s.io/utils/clock/testing"
)

func named(name string) cache.ObjectName { return cache.NewObjectName("tenant", name) }

func TestOutage(t *testing.T) {
	o := newOutage()
	for _, name := range []string{"a", "b", "a", "c"} {
		o.failed(named(name))
	}
	var probed []string
	for range 4 {
		name, _ := o.probe()
		probed = append(probed, name.Name)
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "a"}, probed); diff != "" {
		t.Errorf("probed (-want +got):\n%s", diff)
	}
	if others := o.ended(named("else")); len(others) != 0 {
		t.Errorf("an object that did not wait wakes %v", others)
	}
	if diff := cmp.Diff([]cache.ObjectName{named("b"), named("c")}, o.ended(named("a"))); diff != "" {
		t.Errorf("woken (-want +got):\n%s", diff)
	}
	if name, ok := o.probe(); ok {
		t.Errorf("%s still waits", name)
	}
}

// TestReturnOfTheServerIsNoticed: after a long outage each object alone would be tried minutes later.
func TestReturnOfTheServerIsNoticed(t *testing.T) {
	var away atomic.Bool
	away.Store(true)
	var answered atomic.Int64
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	l := New(Config{Name: "thing", Clock: clock, Reconcile: func(context.Context, cache.ObjectName) (time.Duration, error) {
		if away.Load() {
			return 0, apierrors.NewServiceUnavailable("no endpoints")
		}
		answered.Add(1)
		return 0, nil
	}})
	var objects []cache.ObjectName
	for i := range 20 {
		objects = append(objects, named(fmt.Sprint("t", i)))
		l.Queue.Add(objects[i])
	}
	ctx, stop := context.WithTimeout(klog.NewContext(t.Context(), klog.Logger{}), time.Minute)
	var running sync.WaitGroup
	running.Go(func() { l.Run(ctx, 4) })
	defer running.Wait()
	defer stop()
	await := func(what string, reached func() bool) {
		t.Helper()
		if err := wait.PollUntilContextCancel(ctx, time.Millisecond, true, func(context.Context) (bool, error) { return reached(), nil }); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}

	await("the longest delay of each", func() bool {
		for _, name := range objects {
			if failures := l.Queue.NumRequeues(name); failures == 0 || MinBackoff<<(failures-1) < MaxBackoff {
				clock.Step(MaxBackoff)
				return false
			}
		}
		return true
	})
	away.Store(false)
	clock.Step(probeInterval)
	await("an answer for each", func() bool { return answered.Load() >= int64(len(objects)) })
}
