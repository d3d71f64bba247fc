// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
)

// columns begins with the printer columns of upstream's CustomResourceDefinition, in its order; those of priority 1 are for -o wide.
var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"]},
	{Name: "Ready", Type: "string", Description: "Status of the Ready condition."},
	{Name: "Reason", Type: "string", Description: "Reason of the Ready condition."},
	{Name: "Age", Type: "string", Description: "Time since the Sandbox was created."},
	{Name: "Mode", Type: "string", Priority: 1, Description: "Run state that the Sandbox is meant to be in."},
	{Name: "IPs", Type: "string", Priority: 1, Description: "Addresses of the Pod."},
	{Name: "Node", Type: "string", Priority: 1, Description: "Node that the Pod is on."},
	{Name: "Expires", Type: "string", Priority: 1, Description: "Time until the shutdown time."},
}

type tableConvertor struct {
	clock clock.PassiveClock
}

// NewTableConvertor returns what turns Sandboxes into the rows that kubectl get prints.
func NewTableConvertor(clock clock.PassiveClock) rest.TableConvertor {
	return tableConvertor{clock}
}

// ConvertToTable converts a Sandbox or a SandboxList. It fails for any other type.
func (c tableConvertor) ConvertToTable(_ context.Context, object, tableOptions runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{}
	if options, ok := tableOptions.(*metav1.TableOptions); !ok || !options.NoHeaders {
		table.ColumnDefinitions = columns
	}
	switch obj := object.(type) {
	case *agents.Sandbox:
		table.ResourceVersion = obj.ResourceVersion
		table.Rows = []metav1.TableRow{c.row(obj)}
	case *agents.SandboxList:
		table.ListMeta = obj.ListMeta
		table.Rows = make([]metav1.TableRow, 0, len(obj.Items))
		for i := range obj.Items {
			table.Rows = append(table.Rows, c.row(&obj.Items[i]))
		}
	default:
		return nil, fmt.Errorf("not a Sandbox or a list of them: %T", object)
	}
	return table, nil
}

func (c tableConvertor) row(sandbox *agents.Sandbox) metav1.TableRow {
	var ready metav1.Condition
	if condition := meta.FindStatusCondition(sandbox.Status.Conditions, v1beta1.SandboxConditionReady); condition != nil {
		ready = *condition
	}
	return metav1.TableRow{
		Cells: []any{
			sandbox.Name,
			string(ready.Status),
			ready.Reason,
			c.age(sandbox.CreationTimestamp),
			string(sandbox.Spec.OperatingMode),
			orNone(strings.Join(sandbox.Status.PodIPs, ",")),
			orNone(sandbox.Status.NodeName),
			c.expiry(sandbox.Spec.ShutdownTime),
		},
		Object: runtime.RawExtension{Object: sandbox},
	}
}

func (c tableConvertor) age(created metav1.Time) string {
	if created.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(c.clock.Since(created.Time))
}

func (c tableConvertor) expiry(shutdown *metav1.Time) string {
	if shutdown == nil {
		return "<none>"
	}
	if left := shutdown.Sub(c.clock.Now()); left > 0 {
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
