// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
)

var now = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

func TestTableRow(t *testing.T) {
	ready := func(s *agents.Sandbox) {
		s.Status.Conditions = []metav1.Condition{
			{Type: "Suspended", Status: metav1.ConditionFalse, Reason: "NotSuspended"},
			{Type: "Ready", Status: metav1.ConditionTrue, Reason: "DependenciesReady"},
		}
		s.Status.PodIPs = []string{"10.0.0.1", "fd00::1"}
	}
	for _, test := range []struct {
		name    string
		sandbox *agents.Sandbox
		want    []any
	}{
		{"new", newSandbox(withoutStatus, func(s *agents.Sandbox) { s.CreationTimestamp = metav1.NewTime(now.Add(-5 * time.Minute)) }),
			[]any{"sandbox", "", "", "5m", "Running", "<none>", "<none>", "<none>"}},
		{"ready", newSandbox(ready), []any{"sandbox", "True", "DependenciesReady", "<unknown>", "Running", "10.0.0.1,fd00::1", "node", "<none>"}},
		{"suspended", newSandbox(withoutStatus, suspended), []any{"sandbox", "", "", "<unknown>", "Suspended", "<none>", "<none>", "<none>"}},
		{"expiring", newSandbox(func(s *agents.Sandbox) { s.Spec.ShutdownTime = ptr.To(metav1.NewTime(now.Add(time.Hour))) }),
			[]any{"sandbox", "", "", "<unknown>", "Running", "<none>", "node", "60m"}},
		{"expired", newSandbox(func(s *agents.Sandbox) { s.Spec.ShutdownTime = ptr.To(metav1.NewTime(now)) }),
			[]any{"sandbox", "", "", "<unknown>", "Running", "<none>", "node", "expired"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			table, err := NewTableConvertor(clocktesting.NewFakePassiveClock(now)).ConvertToTable(t.Context(), test.sandbox, nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(table.Rows) != 1 || len(table.ColumnDefinitions) != len(table.Rows[0].Cells) {
				t.Fatalf("got %d rows under %d columns, want one row that fills them", len(table.Rows), len(table.ColumnDefinitions))
			}
			if diff := cmp.Diff(test.want, table.Rows[0].Cells); diff != "" {
				t.Errorf("cells (-want +got):\n%s", diff)
			}
			if table.Rows[0].Object.Object != runtime.Object(test.sandbox) {
				t.Error("the row does not carry its Sandbox, so labels and sort keys cannot be printed")
			}
		})
	}
}

func TestTableOfList(t *testing.T) {
	list := &agents.SandboxList{
		ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "more", RemainingItemCount: ptr.To[int64](3)},
		Items:    []agents.Sandbox{*newSandbox(), *newSandbox()},
	}
	table, err := NewTableConvertor(clocktesting.NewFakePassiveClock(now)).ConvertToTable(t.Context(), list, &metav1.TableOptions{NoHeaders: true})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(list.ListMeta, table.ListMeta); diff != "" {
		t.Errorf("list metadata (-want +got):\n%s", diff)
	}
	if len(table.Rows) != 2 || table.ColumnDefinitions != nil {
		t.Errorf("got %d rows and columns %v, want 2 rows and no columns", len(table.Rows), table.ColumnDefinitions)
	}
}

func TestTableOfAnotherType(t *testing.T) {
	if _, err := NewTableConvertor(clocktesting.NewFakePassiveClock(now)).ConvertToTable(t.Context(), &metav1.Status{}, nil); err == nil {
		t.Error("converted a Status, want an error")
	}
}
