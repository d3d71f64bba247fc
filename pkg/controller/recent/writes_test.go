// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package recent

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
)

func testTime() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func TestWritesBridgeTheLagOfTheCache(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(testTime())
	version := func(v string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "s1", UID: "pod-uid", ResourceVersion: v}}
	}
	name := cache.MetaObjectToName(version("1"))
	for title, test := range map[string]struct {
		write func(*Writes[*corev1.Pod])
		// cached is the version in the cache, empty if there is none.
		cached, want string
	}{
		"no write":                             {func(*Writes[*corev1.Pod]) {}, "5", "5"},
		"cache behind an update":               {func(w *Writes[*corev1.Pod]) { w.Updated(version("10")) }, "9", "10"},
		"cache caught up":                      {func(w *Writes[*corev1.Pod]) { w.Updated(version("10")) }, "10", "10"},
		"cache ahead":                          {func(w *Writes[*corev1.Pod]) { w.Updated(version("10")) }, "11", "11"},
		"created, not in the cache":            {func(w *Writes[*corev1.Pod]) { w.Created(version("10")) }, "", "10"},
		"updated, no longer in the cache":      {func(w *Writes[*corev1.Pod]) { w.Updated(version("10")) }, "", ""},
		"created, delivered and deleted again": {func(w *Writes[*corev1.Pod]) { w.Created(version("10")); w.Delivered(version("12")) }, "", ""},
		"created, then seen to be deleted":     {func(w *Writes[*corev1.Pod]) { w.Created(version("10")); w.Deleted(version("11")) }, "", ""},
		"created, an older version delivered":  {func(w *Writes[*corev1.Pod]) { w.Created(version("10")); w.Delivered(version("9")) }, "", "10"},
		"created, an earlier Pod deleted": {func(w *Writes[*corev1.Pod]) {
			w.Created(version("10"))
			earlier := version("9")
			earlier.UID = "earlier"
			w.Deleted(earlier)
		}, "", "10"},
		"created long ago": {func(w *Writes[*corev1.Pod]) {
			w.Created(version("10"))
			clock.SetTime(testTime().Add(CreationTimeout))
		}, "", ""},
		"versions that cannot be compared": {func(w *Writes[*corev1.Pod]) { w.Updated(version("x")) }, "5", "5"},
	} {
		t.Run(title, func(t *testing.T) {
			clock.SetTime(testTime())
			writes := NewWrites[*corev1.Pod](clock)
			test.write(writes)
			var cached *corev1.Pod
			if test.cached != "" {
				cached = version(test.cached)
			}
			got, found := writes.Latest(name, cached, cached != nil)
			if found != (test.want != "") || found && got.ResourceVersion != test.want {
				t.Errorf("found %v, %v", found, got)
			}
		})
	}
}
