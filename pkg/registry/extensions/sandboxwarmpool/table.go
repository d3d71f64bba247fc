// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxwarmpool

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/table"
)

// columns are the printer columns of upstream's CustomResourceDefinition, in its order; those of priority 1 are for -o wide.
var columns = []metav1.TableColumnDefinition{
	table.NameColumn(),
	{Name: "Ready", Type: "integer", Description: "Number of Sandboxes that are ready and that nobody has claimed."},
	{Name: "Desired", Type: "integer", Description: "Number of Sandboxes to keep that nobody has claimed."},
	{Name: "Template", Type: "string", Priority: 1, Description: "Template that the Sandboxes are made from."},
	table.AgeColumn(),
}

// NewTableConvertor returns what turns SandboxWarmPools into the rows that kubectl get prints.
func NewTableConvertor(clock clock.PassiveClock) rest.TableConvertor {
	return table.NewConvertor(columns, func(pool *extensions.SandboxWarmPool) []any {
		return []any{
			pool.Name,
			orEmpty(pool.Status.ReadyReplicas),
			int64(Replicas(pool)),
			pool.Spec.SandboxTemplateRef.Name,
			table.Age(clock, pool.CreationTimestamp),
		}
	})
}

// scaleColumns are those that custom resources have for their Scale.
var scaleColumns = []metav1.TableColumnDefinition{
	table.NameColumn(),
	{Name: "Desired", Type: "integer", Description: "Number of Sandboxes to keep that nobody has claimed."},
	{Name: "Available", Type: "integer", Description: "Number of Sandboxes that nobody has claimed."},
	table.AgeColumn(),
}

// NewScaleTableConvertor returns what turns Scales into the rows that kubectl get --subresource=scale prints.
func NewScaleTableConvertor(clock clock.PassiveClock) rest.TableConvertor {
	return table.NewConvertor(scaleColumns, func(scale *autoscalingv1.Scale) []any {
		return []any{scale.Name, int64(scale.Spec.Replicas), int64(scale.Status.Replicas), table.Age(clock, scale.CreationTimestamp)}
	})
}

// orEmpty returns nil for zero: that field is then left out, and a printer column of a custom resource shows an empty cell.
func orEmpty(n int32) any {
	if n == 0 {
		return nil
	}
	return int64(n)
}
