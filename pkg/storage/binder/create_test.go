// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package binder_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
)

func TestClaimIsBoundInTheRequestThatCreatesIt(t *testing.T) {
	s := startServer(t, startEtcd(t))
	s.addPoolOf("pool", 1)
	before := s.sandbox("pool-00000")

	claim := newClaim("claim", "pool")
	claim.Labels = map[string]string{agentsv1beta1.CreatedByLabel: "go-client"}
	claim.Spec.AdditionalPodMetadata.Labels = map[string]string{"sandbox.users.io/a": "b"}
	got := s.mustCreate(claim)

	want := extensions.SandboxClaimStatus{
		Conditions: []metav1.Condition{{
			Type: "Ready", Status: metav1.ConditionTrue, Reason: "DependenciesReady", Message: "Pod is Ready", ObservedGeneration: 1,
			LastTransitionTime: before.Status.Conditions[0].LastTransitionTime,
		}},
		Sandbox: extensions.ClaimedSandboxStatus{Name: "pool-00000", PodIPs: []string{"10.0.0.1"}, ServiceFQDN: "member.test.svc.cluster.local"},
	}
	if diff := cmp.Diff(want, got.Status); diff != "" {
		t.Errorf("status in the response (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{extensionsv1beta1.SandboxNameAnnotation: "pool-00000"}, got.Annotations); diff != "" {
		t.Errorf("annotations in the response (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(s.claim("claim"), got); diff != "" {
		t.Errorf("the response is not what was stored (-stored +response):\n%s", diff)
	}

	sandbox := s.sandbox("pool-00000")
	identity := map[string]string{
		agentsv1beta1.ClaimUIDLabel:               string(got.UID),
		agentsv1beta1.CreatedByLabel:              "go-client",
		agentsv1beta1.SandboxTemplateRefHashLabel: naming.Hash("pool"),
	}
	after := before.DeepCopy()
	after.ResourceVersion = got.ResourceVersion
	after.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(got, extensionsv1beta1.SchemeGroupVersion.WithKind("SandboxClaim"))}
	after.Labels = with(identity, agentsv1beta1.LaunchTypeLabel, agentsv1beta1.LaunchTypeWarm)
	after.Spec.PodTemplate.Metadata = agents.PodMetadata{Labels: with(identity, "app", "agent", "sandbox.users.io/a", "b")}
	if diff := cmp.Diff(after, sandbox); diff != "" {
		t.Errorf("the Sandbox (-want +got):\n%s", diff)
	}
}

// with returns a copy of a map that also has the given keys and values.
func with(m map[string]string, pairs ...string) map[string]string {
	copied := map[string]string{}
	for key, value := range m {
		copied[key] = value
	}
	for i := 0; i < len(pairs); i += 2 {
		copied[pairs[i]] = pairs[i+1]
	}
	return copied
}
