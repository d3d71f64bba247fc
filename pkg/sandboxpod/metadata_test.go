// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxpod

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
)

func TestPodMetadataPropagation(t *testing.T) {
	const hash = "0851b8c9"
	type pairs = map[string]string
	ownedBy := func(apiVersion, kind string) []metav1.OwnerReference {
		yes := true
		return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "o", UID: "o", Controller: &yes}}
	}
	everySystemLabel := pairs{
		agentsv1beta1.WarmPoolSandboxLabel: "pool", agentsv1beta1.SandboxTemplateRefHashLabel: "template", agentsv1beta1.ClaimUIDLabel: "claim",
	}
	for name, test := range map[string]struct {
		template                    agentsv1beta1.PodMetadata
		sandboxLabels               pairs
		owners                      []metav1.OwnerReference
		labels, annotations         pairs
		wantLabels, wantAnnotations pairs
	}{
		"nothing asked": {
			wantLabels: pairs{agentsv1beta1.SandboxNameHashLabel: hash}, wantAnnotations: pairs{},
		},
		"keys are copied and remembered in order": {
			template:        agentsv1beta1.PodMetadata{Labels: pairs{"b": "2", "a": "1"}, Annotations: pairs{"d": "4", "c": "3"}},
			wantLabels:      pairs{agentsv1beta1.SandboxNameHashLabel: hash, "a": "1", "b": "2"},
			wantAnnotations: pairs{"c": "3", "d": "4", agentsv1beta1.PropagatedLabelsAnnotation: "a,b", agentsv1beta1.PropagatedAnnotationsAnnotation: "c,d"},
		},
		"reserved keys are ignored": {
			template: agentsv1beta1.PodMetadata{
				Labels:      pairs{agentsv1beta1.SandboxNameHashLabel: "victim", "extensions.agents.x-k8s.io/x": "y", "api.agents.x-k8s.io/ok": "z"},
				Annotations: pairs{agentsv1beta1.TraceContextAnnotation: "{}", agentsv1beta1.PropagatedLabelsAnnotation: "app"},
			},
			wantLabels:      pairs{agentsv1beta1.SandboxNameHashLabel: hash, "api.agents.x-k8s.io/ok": "z"},
			wantAnnotations: pairs{agentsv1beta1.PropagatedLabelsAnnotation: "api.agents.x-k8s.io/ok"},
		},
		"removed keys go, changed ones are restored, others' stay": {
			template:    agentsv1beta1.PodMetadata{Labels: pairs{"kept": "new"}},
			labels:      pairs{"kept": "edited", "gone": "1", "others": "2"},
			annotations: pairs{"gone": "1", "others": "2", agentsv1beta1.PropagatedLabelsAnnotation: "gone,kept", agentsv1beta1.PropagatedAnnotationsAnnotation: "gone"},
			wantLabels:  pairs{agentsv1beta1.SandboxNameHashLabel: hash, "kept": "new", "others": "2"},
			wantAnnotations: pairs{
				"others": "2", agentsv1beta1.PropagatedLabelsAnnotation: "kept", agentsv1beta1.PropagatedAnnotationsAnnotation: "",
			},
		},
		"a forged list does not remove what the system needs": {
			labels: pairs{"agents.x-k8s.io/old": "1"},
			annotations: pairs{
				agentsv1beta1.PropagatedLabelsAnnotation:      "agents.x-k8s.io/old," + agentsv1beta1.SandboxNameHashLabel,
				agentsv1beta1.PropagatedAnnotationsAnnotation: agentsv1beta1.PropagatedLabelsAnnotation,
			},
			wantLabels:      pairs{agentsv1beta1.SandboxNameHashLabel: hash},
			wantAnnotations: pairs{agentsv1beta1.PropagatedLabelsAnnotation: "", agentsv1beta1.PropagatedAnnotationsAnnotation: ""},
		},
		"labels of the extensions need an owner from there": {
			sandboxLabels: everySystemLabel,
			labels:        everySystemLabel,
			wantLabels:    pairs{agentsv1beta1.SandboxNameHashLabel: hash}, wantAnnotations: pairs{},
		},
		"an owner from elsewhere is none": {
			sandboxLabels: everySystemLabel, owners: ownedBy("example.com/v1", "SandboxWarmPool"),
			wantLabels: pairs{agentsv1beta1.SandboxNameHashLabel: hash}, wantAnnotations: pairs{},
		},
		"member of a pool": {
			sandboxLabels: everySystemLabel, owners: ownedBy("extensions.agents.x-k8s.io/v1alpha1", "SandboxWarmPool"),
			wantLabels: pairs{
				agentsv1beta1.SandboxNameHashLabel: hash, agentsv1beta1.WarmPoolSandboxLabel: "pool", agentsv1beta1.SandboxTemplateRefHashLabel: "template",
			},
			wantAnnotations: pairs{},
		},
		"claimed": {
			sandboxLabels: everySystemLabel, owners: ownedBy("extensions.agents.x-k8s.io/v1beta1", "SandboxClaim"), labels: everySystemLabel,
			wantLabels: pairs{
				agentsv1beta1.SandboxNameHashLabel: hash, agentsv1beta1.ClaimUIDLabel: "claim", agentsv1beta1.SandboxTemplateRefHashLabel: "template",
			},
			wantAnnotations: pairs{},
		},
		"known creator": {
			sandboxLabels: pairs{agentsv1beta1.CreatedByLabel: "python-client"},
			wantLabels:    pairs{agentsv1beta1.SandboxNameHashLabel: hash, agentsv1beta1.CreatedByLabel: "python-client"}, wantAnnotations: pairs{},
		},
		"unknown creator": {
			sandboxLabels: pairs{agentsv1beta1.CreatedByLabel: "me"},
			wantLabels:    pairs{agentsv1beta1.SandboxNameHashLabel: hash, agentsv1beta1.CreatedByLabel: "unknown"}, wantAnnotations: pairs{},
		},
		"creator no longer named": {
			labels:     pairs{agentsv1beta1.CreatedByLabel: "controller"},
			wantLabels: pairs{agentsv1beta1.SandboxNameHashLabel: hash}, wantAnnotations: pairs{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			sandbox := &agentsv1beta1.Sandbox{ObjectMeta: metav1.ObjectMeta{
				Namespace: testNamespace, Name: testName, Labels: test.sandboxLabels, OwnerReferences: test.owners,
			}}
			sandbox.Spec.PodTemplate.Metadata = test.template
			pod := (&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: test.labels, Annotations: test.annotations}}).DeepCopy()
			SyncMetadata(sandbox, pod)
			if diff := cmp.Diff(test.wantLabels, pod.Labels); diff != "" {
				t.Errorf("labels differ (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.wantAnnotations, pod.Annotations); diff != "" {
				t.Errorf("annotations differ (-want +got):\n%s", diff)
			}
			again := pod.DeepCopy()
			SyncMetadata(sandbox, again)
			if diff := cmp.Diff(pod, again); diff != "" {
				t.Errorf("a second pass changes it again:\n%s", diff)
			}
		})
	}
}
