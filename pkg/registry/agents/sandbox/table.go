// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/table"
)

// columns begins with the printer columns of upstream's CustomResourceDefinition, in its order; those of priority 1 are for -o wide.
var columns = []metav1.TableColumnDefinition{
	table.NameColumn(),
	{Name: "Ready", Type: "string", Description: "Status of the Ready condition."},
	{Name: "Reason", Type: "string", Description: "Reason of the Ready condition."},
	table.AgeColumn(),
	{Name: "Mode", Type: "string", Priority: 1, Description: "Run state that the Sandbox is meant to be in."},
	{Name: "IPs", Type: "string", Priority: 1, Description: "Addresses of the Pod."},
	{Name: "Node", Type: "string", Priority: 1, Description: "Node that the Pod is on."},
	{Name: "Expires", Type: "string", Priority: 1, Description: "Time until the shutdown time."},
}

// NewTableConvertor returns what turns Sandboxes into the rows that kubectl get prints.
func NewTableConvertor(clock clock.PassiveClock) rest.TableConvertor {
	return table.NewConvertor(columns, func(sandbox *agents.Sandbox) []any { return cells(sandbox, clock) })
}

func cells(sandbox *agents.Sandbox, clock clock.PassiveClock) []any {
	var ready metav1.Condition
	if condition := meta.FindStatusCondition(sandbox.Status.Conditions, v1beta1.SandboxConditionReady); condition != nil {
		ready = *condition
	}
	return []any{
		sandbox.Name,
		string(ready.Status),
		ready.Reason,
		table.Age(clock, sandbox.CreationTimestamp),
		string(sandbox.Spec.OperatingMode),
		orNone(strings.Join(sandbox.Status.PodIPs, ",")),
		orNone(sandbox.Status.NodeName),
		expiry(sandbox.Spec.ShutdownTime, clock),
	}
}

func expiry(shutdown *metav1.Time, clock clock.PassiveClock) string {
	if shutdown == nil {
		return "<none>"
	}
	if left := shutdown.Sub(clock.Now()); left > 0 {
		return duration.HumanDuration(left.Round(time.Second))
	}
	return "expired"
}

func orNone(s string) string {
	if s == "" {
		return "<none>"
	}
	return s
}
