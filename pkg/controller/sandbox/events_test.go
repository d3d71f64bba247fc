// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ktesting "k8s.io/client-go/testing"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/message"
)

func TestEventsTellOfEachTransitionOnce(t *testing.T) {
	condition := func(conditionType, status, reason string) metav1.Condition {
		return metav1.Condition{Type: conditionType, Status: metav1.ConditionStatus(status), Reason: reason, Message: "m"}
	}
	retain := testSandbox(shutdownAt(testTime(), agentsv1beta1.ShutdownPolicyRetain))
	remove := testSandbox(shutdownAt(testTime(), agentsv1beta1.ShutdownPolicyDelete))
	for name, test := range map[string]struct {
		sandbox       *agentsv1beta1.Sandbox
		before, after []metav1.Condition
		want          []event
	}{
		"ready":               {retain, nil, []metav1.Condition{condition("Ready", "True", "DependenciesReady")}, []event{{"Normal", "SandboxReady", "Reconciling", "Sandbox is ready"}}},
		"still ready":         {retain, []metav1.Condition{condition("Ready", "True", "DependenciesReady")}, []metav1.Condition{condition("Ready", "True", "DependenciesReady")}, nil},
		"not ready":           {retain, nil, []metav1.Condition{condition("Ready", "False", "DependenciesNotReady")}, nil},
		"two Pods":            {retain, nil, []metav1.Condition{condition("Ready", "False", "MultiplePods")}, []event{{"Warning", "MultiplePods", "Reconciling", "m"}}},
		"suspending":          {retain, nil, []metav1.Condition{condition("Suspended", "False", "PodTerminating")}, nil},
		"suspended":           {retain, nil, []metav1.Condition{condition("Suspended", "True", "PodTerminated")}, []event{{"Normal", "SandboxSuspended", "Reconciling", "Sandbox is suspended"}}},
		"succeeded":           {retain, nil, []metav1.Condition{condition("Finished", "True", "PodSucceeded")}, []event{{"Normal", "PodSucceeded", "Reconciling", "m"}}},
		"failed":              {retain, nil, []metav1.Condition{condition("Finished", "True", "PodFailed")}, []event{{"Warning", "PodFailed", "Reconciling", "m"}}},
		"expired":             {retain, nil, []metav1.Condition{condition("Ready", "False", "SandboxExpired")}, []event{{"Normal", "SandboxExpired", "Expiry", "m"}}},
		"expired and deleted": {remove, nil, []metav1.Condition{condition("Ready", "False", "SandboxExpired")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := transitionEvents(test.sandbox, &agentsv1beta1.SandboxStatus{Conditions: test.before}, &agentsv1beta1.SandboxStatus{Conditions: test.after})
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(event{})); diff != "" {
				t.Errorf("events differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEventsFollowTheStatusTheyTellOf(t *testing.T) {
	f := newFixture(t).Everywhere(testSandbox())
	f.Server.PrependReactor("patch", "sandboxes", func(ktesting.Action) (bool, runtime.Object, error) {
		if len(f.Recorder.Events) != 0 {
			t.Error("there was an event before the status was written")
		}
		return false, nil, nil
	})
	f.MustPass()
	f.WantEvents("Normal SandboxPodCreated Created Pod s1")
}

func TestPodCreatedIsToldEvenIfTheStatusCannotBeWritten(t *testing.T) {
	f := newFixture(t).Everywhere(testSandbox())
	f.Refuse("patch", "sandboxes", unavailable())
	if _, err := f.Pass(); err == nil {
		t.Error("no error")
	}
	f.WantEvents("Normal SandboxPodCreated Created Pod s1")
}

func TestNoteOfAnEventIsAsLongAsServersAccept(t *testing.T) {
	f := newFixture(t)
	f.record(testSandbox(), nil, []event{{corev1.EventTypeWarning, "R", "A", strings.Repeat("x", 2*message.MaxEventNote)}})
	f.WantEvents("Warning R " + strings.Repeat("x", message.MaxEventNote))
}
