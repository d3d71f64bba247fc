// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ktesting "k8s.io/client-go/testing"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
)

func TestExpiryIsReachedAtTheMomentItself(t *testing.T) {
	now := testTime()
	at := func(d time.Duration) *agentsv1beta1.Sandbox {
		return testSandbox(shutdownAt(now.Add(d), agentsv1beta1.ShutdownPolicyRetain))
	}
	for name, test := range map[string]struct {
		sandbox *agentsv1beta1.Sandbox
		expired bool
		left    time.Duration
	}{
		"never":        {testSandbox(), false, 0},
		"past":         {at(-time.Hour), true, 0},
		"now":          {at(0), true, 0},
		"a moment off": {at(time.Nanosecond), false, time.Nanosecond},
		"tomorrow":     {at(24 * time.Hour), false, 24 * time.Hour},
		"year 9999":    {testSandbox(shutdownAt(time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), agentsv1beta1.ShutdownPolicyRetain)), false, time.Duration(1<<63 - 1)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := expired(test.sandbox, now); got != test.expired {
				t.Errorf("expired is %v", got)
			}
			if got := untilExpiry(test.sandbox, now); got != test.left {
				t.Errorf("%v left, want %v", got, test.left)
			}
		})
	}
}

func TestTimeThatThePassTakesIsNotAddedToTheShutdownTime(t *testing.T) {
	const duration = 20 * time.Second
	for name, test := range map[string]struct{ left, want time.Duration }{
		"later":               {time.Minute, 40 * time.Second},
		"reached in the pass": {duration, time.Nanosecond},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t).Everywhere(testSandbox(shutdownAt(testTime().Add(test.left), agentsv1beta1.ShutdownPolicyRetain)))
			f.Server.PrependReactor("patch", "sandboxes", func(ktesting.Action) (bool, runtime.Object, error) {
				f.clock.Step(duration)
				return false, nil, nil
			})
			if got := f.MustPass(); got != test.want {
				t.Errorf("comes back after %v", got)
			}
		})
	}
}

func TestOnlyThePolicyDeleteDeletes(t *testing.T) {
	if !deletedOnExpiry(testSandbox(shutdownAt(testTime(), agentsv1beta1.ShutdownPolicyDelete))) {
		t.Error("Delete does not")
	}
	if deletedOnExpiry(testSandbox(shutdownAt(testTime(), agentsv1beta1.ShutdownPolicyRetain))) || deletedOnExpiry(testSandbox()) {
		t.Error("Retain or no policy does")
	}
}

func TestExpiryKeepsSuspendedAndFinished(t *testing.T) {
	sandbox := testSandbox(withStatus(
		metav1.Condition{Type: conditionSuspended, Status: metav1.ConditionTrue, Reason: "PodTerminated"},
		metav1.Condition{Type: conditionFinished, Status: metav1.ConditionTrue, Reason: "PodFailed"},
		metav1.Condition{Type: conditionPodScheduled, Status: metav1.ConditionTrue, Reason: "PodScheduled"},
		metav1.Condition{Type: conditionReady, Status: metav1.ConditionTrue, Reason: "DependenciesReady"},
	))
	sandbox.Status.PodIPs, sandbox.Status.Service = []string{"10.0.0.7"}, "s1"

	marked := expiredStatus(sandbox, testTime())
	want := sandbox.Status.DeepCopy()
	want.Conditions = append(want.Conditions[:2:2], metav1.Condition{
		Type: conditionReady, Status: metav1.ConditionFalse, Reason: "SandboxExpired", Message: "Sandbox has expired",
		ObservedGeneration: sandbox.Generation, LastTransitionTime: metav1.NewTime(testTime()),
	})
	if diff := cmp.Diff(want, marked); diff != "" {
		t.Errorf("announcement differs (-want +got):\n%s", diff)
	}
	if !markedExpired(marked) || markedExpired(&sandbox.Status) {
		t.Error("the announcement is not recognized")
	}
	if diff := cmp.Diff(&agentsv1beta1.SandboxStatus{Conditions: want.Conditions}, expiredAndClearedStatus(sandbox, testTime())); diff != "" {
		t.Errorf("final status differs (-want +got):\n%s", diff)
	}
}
