// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned/fake"
	agentsclient "github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned/typed/agents/v1beta1"
)

// newSandbox returns a Sandbox of generation 2 in the given mode with the given conditions.
func newSandbox(mode v1beta1.SandboxOperatingMode, conditions ...metav1.Condition) *v1beta1.Sandbox {
	return &v1beta1.Sandbox{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "box", UID: "uid", Generation: 2},
		Spec:       v1beta1.SandboxSpec{OperatingMode: mode},
		Status:     v1beta1.SandboxStatus{Conditions: conditions},
	}
}

// newClient returns a client of a server that has the Sandbox. It enters it by hand, for the fakes guess the plural of Sandbox wrong.
func newClient(t *testing.T, sandbox *v1beta1.Sandbox) *fake.Clientset {
	t.Helper()
	client := fake.NewSimpleClientset()
	resource := v1beta1.SchemeGroupVersion.WithResource("sandboxes")
	if err := client.Tracker().Create(resource, sandbox, sandbox.Namespace); err != nil {
		t.Fatal(err)
	}
	return client
}

func condition(name string, status metav1.ConditionStatus, generation int64) metav1.Condition {
	return metav1.Condition{Type: name, Status: status, ObservedGeneration: generation, Reason: "SomeReason", Message: "some message"}
}

func TestGoalReached(t *testing.T) {
	const (
		run  = v1beta1.SandboxOperatingModeRunning
		halt = v1beta1.SandboxOperatingModeSuspended
	)
	tests := []struct {
		name    string
		goal    goal
		sandbox *v1beta1.Sandbox
		want    bool
		wantErr string
	}{
		{name: "ready", goal: ready, sandbox: newSandbox(run, condition("Ready", metav1.ConditionTrue, 2)), want: true},
		{name: "ready with the mode left out", goal: ready, sandbox: newSandbox("", condition("Ready", metav1.ConditionTrue, 2)), want: true},
		{name: "not ready", goal: ready, sandbox: newSandbox(run, condition("Ready", metav1.ConditionFalse, 2))},
		{name: "ready unknown", goal: ready, sandbox: newSandbox(run, condition("Ready", metav1.ConditionUnknown, 2))},
		{name: "ready for an earlier spec", goal: ready, sandbox: newSandbox(run, condition("Ready", metav1.ConditionTrue, 1))},
		{name: "no condition", goal: ready, sandbox: newSandbox(run)},
		{name: "another condition", goal: ready, sandbox: newSandbox(run, condition("PodScheduled", metav1.ConditionTrue, 2))},
		{
			name: "never ready while suspended", goal: ready, sandbox: newSandbox(halt, condition("Ready", metav1.ConditionTrue, 2)),
			wantErr: `sandbox "box" has operating mode Suspended and will not become Ready; use "kubectl sandbox resume box" first`,
		},
		{name: "suspended", goal: suspended, sandbox: newSandbox(halt, condition("Suspended", metav1.ConditionTrue, 2)), want: true},
		{name: "suspending", goal: suspended, sandbox: newSandbox(halt, condition("Suspended", metav1.ConditionFalse, 2))},
		{name: "suspended in an earlier spec", goal: suspended, sandbox: newSandbox(halt, condition("Suspended", metav1.ConditionTrue, 1))},
		{
			name: "never suspended while running", goal: suspended, sandbox: newSandbox(run),
			wantErr: `sandbox "box" has operating mode Running and will not become Suspended; use "kubectl sandbox suspend box" first`,
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got, err := tc.goal.reached(tc.sandbox)
			if got != tc.want {
				t.Errorf("reached = %t, want %t", got, tc.want)
			}
			if (err == nil) != (tc.wantErr == "") || err != nil && err.Error() != tc.wantErr {
				t.Errorf("error = %v, want %q", err, tc.wantErr)
			}
		})
	}
}

func TestWaitFor(t *testing.T) {
	start := newSandbox(v1beta1.SandboxOperatingModeRunning)
	update := func(mutate func(*v1beta1.Sandbox)) func(context.Context, agentsclient.SandboxInterface) error {
		return func(ctx context.Context, client agentsclient.SandboxInterface) error {
			sandbox := start.DeepCopy()
			mutate(sandbox)
			_, err := client.Update(ctx, sandbox, metav1.UpdateOptions{})
			return err
		}
	}
	tests := []struct {
		name string
		// from is the state that the wait starts from, if it is not that on the server.
		from *v1beta1.Sandbox
		// event happens once the watch is on.
		event   func(context.Context, agentsclient.SandboxInterface) error
		wantErr string
	}{
		{
			name: "reached from the start",
			from: newSandbox(v1beta1.SandboxOperatingModeRunning, condition("Ready", metav1.ConditionTrue, 2)),
		},
		{
			name: "reached by an update",
			event: update(func(s *v1beta1.Sandbox) {
				s.Status.Conditions = []metav1.Condition{condition("Ready", metav1.ConditionTrue, 2)}
			}),
		},
		{
			name: "timeout names what was reported last",
			event: update(func(s *v1beta1.Sandbox) {
				s.Status.Conditions = []metav1.Condition{condition("Ready", metav1.ConditionFalse, 2)}
			}),
			wantErr: `timed out waiting for sandbox "box" to become Ready; last reported Ready=False, reason SomeReason: some message`,
		},
		{
			name:    "timeout with nothing reported",
			wantErr: `timed out waiting for sandbox "box" to become Ready; it has not reported whether it is ready`,
		},
		{
			name: "deleted",
			event: func(ctx context.Context, c agentsclient.SandboxInterface) error {
				return c.Delete(ctx, "box", metav1.DeleteOptions{})
			},
			wantErr: `sandbox "box" was deleted`,
		},
		{
			name:    "replaced by another of the name",
			event:   update(func(s *v1beta1.Sandbox) { s.UID = "other" }),
			wantErr: `sandbox "box" was deleted`,
		},
		{
			name:    "suspended meanwhile",
			event:   update(func(s *v1beta1.Sandbox) { s.Spec.OperatingMode = v1beta1.SandboxOperatingModeSuspended }),
			wantErr: `use "kubectl sandbox resume box" first`,
		},
		{
			name: "state older than that known does not count",
			from: func() *v1beta1.Sandbox {
				later := start.DeepCopy()
				later.Generation = 3
				return later
			}(),
			event: update(func(s *v1beta1.Sandbox) {
				s.Status.Conditions = []metav1.Condition{condition("Ready", metav1.ConditionTrue, 2)}
			}),
			wantErr: `timed out waiting for sandbox "box" to become Ready; it has not reported whether it is ready`,
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := newClient(t, start.DeepCopy())
				if tc.from == nil {
					tc.from = start
				}
				ctx, cancel := withTimeout(t.Context(), time.Minute)
				defer cancel()
				result := make(chan error, 1)
				go func() { result <- waitFor(ctx, client, tc.from, ready) }()
				synctest.Wait()
				if tc.event != nil {
					if err := tc.event(ctx, client.AgentsV1beta1().Sandboxes("ns")); err != nil {
						t.Fatal(err)
					}
				}
				err := <-result
				if (err == nil) != (tc.wantErr == "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("error = %v, want %q", err, tc.wantErr)
				}
			})
		})
	}
}

func TestWaitForSandboxThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := waitFor(t.Context(), fake.NewSimpleClientset(), newSandbox(v1beta1.SandboxOperatingModeRunning), ready)
		if want := `sandbox "box" was deleted`; err == nil || err.Error() != want {
			t.Errorf("error = %v, want %q", err, want)
		}
	})
}
