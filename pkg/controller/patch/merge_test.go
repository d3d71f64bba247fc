// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestMergeIsBoundToTheObject(t *testing.T) {
	before := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "tenant", Name: "s1", UID: "pod-uid", ResourceVersion: "61", Labels: map[string]string{"b": "c"},
	}}
	after := before.DeepCopy()
	after.Labels = map[string]string{"a": "b"}
	for lock, want := range map[Lock]string{
		AnyVersion:  `{"metadata":{"labels":{"a":"b","b":null},"uid":"pod-uid"}}`,
		SameVersion: `{"metadata":{"labels":{"a":"b","b":null},"resourceVersion":"61","uid":"pod-uid"}}`,
	} {
		got, err := Merge(before, after, lock)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("patch differs (-want +got):\n%s", diff)
		}
	}
}
