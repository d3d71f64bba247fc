// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"

	controllermetrics "github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/metrics"
)

func TestPassesAreRepeatedAsTheirResultsAsk(t *testing.T) {
	conflict := fmt.Errorf("patching: %w", apierrors.NewConflict(corev1.Resource("pods"), "p", nil))
	// What the passes over the one object return, in this order; the last ends the test.
	answers := []struct {
		after time.Duration
		err   error
	}{{0, conflict}, {0, errors.New("broken")}, {time.Millisecond, nil}, {0, nil}}
	passes := controllermetrics.NewPasses()
	registry := metrics.NewKubeRegistry()
	passes.Register(registry.MustRegister)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	made := 0
	l := New(Config{Name: "thing", Passes: passes, Reconcile: func(context.Context, cache.ObjectName) (time.Duration, error) {
		answer := answers[made]
		if made++; made == len(answers) {
			cancel()
		}
		return answer.after, answer.err
	}})
	name := cache.NewObjectName("tenant", "t1")
	l.Queue.Add(name)
	l.Run(ctx, 1)
	if made != len(answers) {
		t.Fatalf("%d passes", made)
	}
	if got := l.Queue.NumRequeues(name); got != 0 {
		t.Errorf("%d failures are remembered after a success", got)
	}
	const want = `
# HELP controller_runtime_reconcile_total [ALPHA] Number of passes by controller and result.
# TYPE controller_runtime_reconcile_total counter
controller_runtime_reconcile_total{controller="thing",result="error"} 1
controller_runtime_reconcile_total{controller="thing",result="requeue"} 1
controller_runtime_reconcile_total{controller="thing",result="requeue_after"} 1
controller_runtime_reconcile_total{controller="thing",result="success"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "controller_runtime_reconcile_total"); err != nil {
		t.Error(err)
	}
}

func TestSoonest(t *testing.T) {
	if got := Soonest(0, 3*time.Second, 0, time.Second); got != time.Second {
		t.Errorf("soonest is %v", got)
	}
	if got := Soonest(0, 0); got != 0 {
		t.Errorf("soonest of nothing is %v", got)
	}
}
