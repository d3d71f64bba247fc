// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxwarmpool

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
)

type tweak = func(*extensions.SandboxWarmPool)

func newPool(tweaks ...tweak) *extensions.SandboxWarmPool {
	pool := &extensions.SandboxWarmPool{
		ObjectMeta: metav1.ObjectMeta{Name: "pool", Namespace: "default", Generation: 1},
		Spec: extensions.SandboxWarmPoolSpec{
			Replicas:           ptr.To[int32](3),
			SandboxTemplateRef: extensions.SandboxTemplateRef{Name: "template"},
		},
		Status: extensions.SandboxWarmPoolStatus{Replicas: 2, ReadyReplicas: 1},
	}
	for _, tweak := range tweaks {
		tweak(pool)
	}
	return pool
}

func withoutStatus(p *extensions.SandboxWarmPool) { p.Status = extensions.SandboxWarmPoolStatus{} }

// TestWarningOfALongName holds the warning against what the names of members, which are generated, are made of.
func TestWarningOfALongName(t *testing.T) {
	strategy := NewStrategy(runtime.NewScheme())
	for _, length := range []int{1, maxPrefixLength, maxPrefixLength + 1, 253} {
		name := strings.Repeat("a", length)
		warned := len(strategy.WarningsOnCreate(t.Context(), newPool(func(p *extensions.SandboxWarmPool) { p.Name = name }))) > 0
		if cut := !strings.HasPrefix(strategy.GenerateName(name+"-"), name+"-"); cut != warned {
			t.Errorf("%d characters: cut is %t, warned is %t", length, cut, warned)
		}
	}
}

func TestTableRow(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	clock := clocktesting.NewFakePassiveClock(now)
	created := metav1.NewTime(now.Add(-time.Hour))
	scale := &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: "pool", CreationTimestamp: created},
		Spec:       autoscalingv1.ScaleSpec{Replicas: 3}, Status: autoscalingv1.ScaleStatus{Replicas: 2},
	}
	for _, test := range []struct {
		name   string
		object runtime.Object
		want   []any
	}{
		{"ready", newPool(func(p *extensions.SandboxWarmPool) { p.CreationTimestamp = created }), []any{"pool", int64(1), int64(3), "template", "60m"}},
		{"none ready", newPool(withoutStatus), []any{"pool", nil, int64(3), "template", "<unknown>"}},
		{"none wanted", newPool(withoutStatus, func(p *extensions.SandboxWarmPool) { p.Spec.Replicas = new(int32) }),
			[]any{"pool", nil, int64(0), "template", "<unknown>"}},
		{"scale", scale, []any{"pool", int64(3), int64(2), "60m"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			convertor := NewTableConvertor(clock)
			if _, ok := test.object.(*autoscalingv1.Scale); ok {
				convertor = NewScaleTableConvertor(clock)
			}
			table, err := convertor.ConvertToTable(t.Context(), test.object, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, table.Rows[0].Cells); diff != "" {
				t.Errorf("cells (-want +got):\n%s", diff)
			}
			if len(table.ColumnDefinitions) != len(table.Rows[0].Cells) {
				t.Errorf("%d columns for %d cells", len(table.ColumnDefinitions), len(table.Rows[0].Cells))
			}
		})
	}
}
