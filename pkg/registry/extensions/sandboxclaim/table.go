// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxclaim

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/table"
)

// columns begins with the printer columns of upstream's CustomResourceDefinition, in its order; those of priority 1 are for -o wide.
var columns = []metav1.TableColumnDefinition{
	table.NameColumn(),
	{Name: "Ready", Type: "string", Description: "Status of the Ready condition."},
	{Name: "Sandbox", Type: "string", Description: "Sandbox that the claim has got."},
	{Name: "Reason", Type: "string", Description: "Reason of the Ready condition."},
	table.AgeColumn(),
	{Name: "WarmPool", Type: "string", Priority: 1, Description: "Pool that the claim is for."},
}

// NewTableConvertor returns what turns SandboxClaims into the rows that kubectl get prints.
func NewTableConvertor(clock clock.PassiveClock) rest.TableConvertor {
	return table.NewConvertor(columns, func(claim *extensions.SandboxClaim) []any {
		var ready metav1.Condition
		if condition := meta.FindStatusCondition(claim.Status.Conditions, v1beta1.ClaimConditionReady); condition != nil {
			ready = *condition
		}
		return []any{
			claim.Name,
			string(ready.Status),
			claim.Status.Sandbox.Name,
			ready.Reason,
			table.Age(clock, claim.CreationTimestamp),
			claim.Spec.WarmPoolRef.Name,
		}
	})
}
