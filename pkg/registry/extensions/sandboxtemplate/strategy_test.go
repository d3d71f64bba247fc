// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxtemplate

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
)

type tweak = func(*extensions.SandboxTemplate)

func newTemplate(tweaks ...tweak) *extensions.SandboxTemplate {
	template := &extensions.SandboxTemplate{ObjectMeta: metav1.ObjectMeta{Name: "template", Namespace: "default", Generation: 1}}
	template.Spec.PodTemplate.Spec.Containers = []corev1.Container{{Name: "main", Image: "image"}}
	for _, tweak := range tweaks {
		tweak(template)
	}
	return template
}

func labelled(t *extensions.SandboxTemplate) { t.Labels = map[string]string{"a": "b"} }
func reserved(t *extensions.SandboxTemplate) {
	t.Spec.PodTemplate.Metadata.Labels = map[string]string{"agents.x-k8s.io/a": ""}
}

// TestAnEmptyListIsNoChange: to spell out that there are no volumes is not to change the spec.
func TestAnEmptyListIsNoChange(t *testing.T) {
	spelledOut := func(t *extensions.SandboxTemplate) {
		t.Spec.VolumeClaimTemplates = []agents.PersistentVolumeClaimTemplate{}
	}
	got := newTemplate(spelledOut)
	NewStrategy(runtime.NewScheme()).PrepareForUpdate(t.Context(), got, newTemplate())
	if diff := cmp.Diff(newTemplate(spelledOut), got); diff != "" {
		t.Errorf("prepared (-want +got):\n%s", diff)
	}
}

func TestWarnings(t *testing.T) {
	want := []string{"spec.podTemplate.metadata.labels[agents.x-k8s.io/a]: reserved, ignored"}
	strategy := NewStrategy(runtime.NewScheme())
	if diff := cmp.Diff(want, strategy.WarningsOnCreate(t.Context(), newTemplate(reserved))); diff != "" {
		t.Errorf("on create (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, strategy.WarningsOnUpdate(t.Context(), newTemplate(reserved), newTemplate())); diff != "" {
		t.Errorf("when it comes (-want +got):\n%s", diff)
	}
	if got := strategy.WarningsOnUpdate(t.Context(), newTemplate(reserved, labelled), newTemplate(reserved)); len(got) > 0 {
		t.Errorf("warned again of what was there before: %v", got)
	}
}

func TestTableRow(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	template := newTemplate(func(t *extensions.SandboxTemplate) { t.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour)) })
	table, err := NewTableConvertor(clocktesting.NewFakePassiveClock(now)).ConvertToTable(t.Context(), template, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{"template", "60m"}, table.Rows[0].Cells); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
	if len(table.ColumnDefinitions) != len(table.Rows[0].Cells) {
		t.Errorf("%d columns for %d cells", len(table.ColumnDefinitions), len(table.Rows[0].Cells))
	}
}
