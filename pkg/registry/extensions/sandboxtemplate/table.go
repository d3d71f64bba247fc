// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxtemplate

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/table"
)

// columns are those of a CustomResourceDefinition that declares none, as upstream's does.
var columns = []metav1.TableColumnDefinition{table.NameColumn(), table.AgeColumn()}

// NewTableConvertor returns what turns SandboxTemplates into the rows that kubectl get prints.
func NewTableConvertor(clock clock.PassiveClock) rest.TableConvertor {
	return table.NewConvertor(columns, func(template *extensions.SandboxTemplate) []any {
		return []any{template.Name, table.Age(clock, template.CreationTimestamp)}
	})
}
