// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxpod

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
)

// FuzzSyncMetadata checks, for a Sandbox and a Pod of any metadata, that a second pass changes nothing, that the Pod has what the
// Sandbox prescribes, that a template has no say in reserved keys, and that what others have put on the Pod is kept.
func FuzzSyncMetadata(f *testing.F) {
	f.Add(`{}`, `{}`, `{}`, `{}`, `{}`)
	f.Add(`{"a":"1"}`, `{"b":"2"}`, `{"a":"0","c":"3"}`, `{"agents.x-k8s.io/propagated-labels":"a,gone","gone":"1"}`, `{}`)
	f.Add(`{}`, `{}`, `{"":""}`, `{"agents.x-k8s.io/propagated-labels":"a"}`, `{}`)
	f.Add(`{"agents.x-k8s.io/sandbox-name-hash":"victim"}`, `{"opentelemetry.io/trace-context":"{}","agents.x-k8s.io/propagated-labels":"c"}`,
		`{"agents.x-k8s.io/claim-uid":"1"}`, `{"agents.x-k8s.io/propagated-labels":"agents.x-k8s.io/claim-uid,agents.x-k8s.io/sandbox-name-hash"}`,
		`{"agents.x-k8s.io/created-by":"me","agents.x-k8s.io/claim-uid":"2"}`)

	f.Fuzz(func(t *testing.T, templateLabels, templateAnnotations, podLabels, podAnnotations, sandboxLabels string) {
		sandbox := &agentsv1beta1.Sandbox{ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: testName, Labels: entries(sandboxLabels)}}
		// The API server accepts no other keys.
		template := agentsv1beta1.PodMetadata{Labels: qualified(entries(templateLabels)), Annotations: qualified(entries(templateAnnotations))}
		sandbox.Spec.PodTemplate.Metadata = template
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: entries(podLabels), Annotations: entries(podAnnotations)}}
		before := pod.DeepCopy()

		SyncMetadata(sandbox, pod)

		system := systemLabels(sandbox)
		listed := before.Annotations[agentsv1beta1.PropagatedLabelsAnnotation]
		checkSynced(t, "label", template.Labels, before.Labels, pod.Labels, listed, func(key string) bool {
			_, ok := system[key]
			return ok
		})
		listed = before.Annotations[agentsv1beta1.PropagatedAnnotationsAnnotation]
		checkSynced(t, "annotation", template.Annotations, before.Annotations, pod.Annotations, listed, tracking)
		for key, value := range system {
			if pod.Labels[key] != value {
				t.Errorf("label %q is %q, want %q", key, pod.Labels[key], value)
			}
		}
		again := pod.DeepCopy()
		SyncMetadata(sandbox, again)
		if diff := cmp.Diff(pod, again); diff != "" {
			t.Errorf("a second pass changes it again:\n%s", diff)
		}
	})
}

// checkSynced compares every key but those that the system sets itself.
func checkSynced(t *testing.T, noun string, template, before, after map[string]string, listed string, system func(key string) bool) {
	t.Helper()
	keys := maps.Clone(template)
	if keys == nil {
		keys = map[string]string{}
	}
	maps.Copy(keys, before)
	maps.Copy(keys, after)
	for key := range keys {
		if system(key) {
			continue
		}
		want, wanted := before[key]
		if key != "" && slices.Contains(strings.Split(listed, ","), key) && !tracking(key) {
			want, wanted = "", false
		}
		if value, asked := template[key]; asked && !agentsv1beta1.IsReservedPodMetadataKey(key) {
			want, wanted = value, true
		}
		if got, has := after[key]; got != want || has != wanted {
			t.Errorf("%s %q is %q (present: %t), want %q (%t)", noun, key, got, has, want, wanted)
		}
	}
}

func entries(text string) map[string]string {
	var m map[string]string
	if json.Unmarshal([]byte(text), &m) != nil {
		return nil
	}
	return m
}

func qualified(m map[string]string) map[string]string {
	maps.DeleteFunc(m, func(key, _ string) bool { return len(validation.IsQualifiedName(key)) > 0 })
	return m
}
