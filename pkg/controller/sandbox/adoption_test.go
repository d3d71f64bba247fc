// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/claimedsandbox"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
)

const hashOfPool, hashOfTemplate = "00375482", "374de8f5"

// pooled makes the Sandbox an idle member of a pool.
func pooled(sandbox *agentsv1beta1.Sandbox) {
	sandbox.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: extensionsv1beta1.SchemeGroupVersion.String(), Kind: "SandboxWarmPool", Name: "p1", UID: "pool-uid", Controller: ptr.To(true),
	}}
	sandbox.Labels = map[string]string{
		agentsv1beta1.WarmPoolSandboxLabel:        hashOfPool,
		agentsv1beta1.SandboxTemplateRefHashLabel: hashOfTemplate,
		agentsv1beta1.LaunchTypeLabel:             agentsv1beta1.LaunchTypeWarm,
		agentsv1beta1.CreatedByLabel:              agentsv1beta1.CreatedByController,
	}
	sandbox.Spec.PodTemplate.Metadata = agentsv1beta1.PodMetadata{
		Labels:      map[string]string{"app": "web"},
		Annotations: map[string]string{agentsv1beta1.SafeToEvictAnnotation: "true"},
	}
}

// TestClaimedMemberCostsOnePatchOfItsPod counts what becoming a claim's costs a member of a pool, once the API server has
// bound it.
func TestClaimedMemberCostsOnePatchOfItsPod(t *testing.T) {
	member := testSandbox(pooled)
	f := newFixture(t).Everywhere(member, testPod(member, ready))
	f.MustPass()
	f.Requests()
	f.WantEvents("Normal SandboxReady Sandbox is ready")
	wantLabels := map[string]string{
		"app":                              "web",
		agentsv1beta1.SandboxNameHashLabel: naming.Hash(testName),
		agentsv1beta1.SandboxTemplateRefHashLabel: hashOfTemplate,
		agentsv1beta1.WarmPoolSandboxLabel:        hashOfPool,
		agentsv1beta1.CreatedByLabel:              agentsv1beta1.CreatedByController,
	}
	if diff := cmp.Diff(wantLabels, f.livePod().Labels); diff != "" {
		t.Errorf("labels of the idle Pod differ (-want +got):\n%s", diff)
	}

	member = f.live().DeepCopy()
	claim := &extensionsv1beta1.SandboxClaim{ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: "c1", UID: "claim-uid"}}
	claim.Spec.AdditionalPodMetadata.Labels = map[string]string{"sandbox.users.io/team": "a"}
	if err := claimedsandbox.Adopt(member, claim, nil); err != nil {
		t.Fatal(err)
	}
	f.InCache(member)
	f.MustPass()
	f.WantRequests("patch pods")
	f.WantEvents()
	wantLabels["sandbox.users.io/team"] = "a"
	wantLabels[agentsv1beta1.ClaimUIDLabel] = "claim-uid"
	delete(wantLabels, agentsv1beta1.WarmPoolSandboxLabel)
	delete(wantLabels, agentsv1beta1.CreatedByLabel)
	pod := f.livePod()
	if diff := cmp.Diff(wantLabels, pod.Labels); diff != "" {
		t.Errorf("labels of the claimed Pod differ (-want +got):\n%s", diff)
	}
	if value, ok := pod.Annotations[agentsv1beta1.SafeToEvictAnnotation]; ok {
		t.Errorf("the claimed Pod is safe to evict: %q", value)
	}

	// Its Pod has arrived in the cache.
	f.InCache(f.livePod())
	f.MustPass()
	f.WantRequests()
	for _, condition := range member.Status.Conditions {
		if condition.ObservedGeneration != member.Generation {
			t.Errorf("%s was observed at generation %d", condition.Type, condition.ObservedGeneration)
		}
	}
}

func (f *fixture) livePod() *corev1.Pod {
	f.T.Helper()
	return f.Live(&corev1.Pod{}, testName).(*corev1.Pod)
}

// TestRushDelaysTheWorkOnAClaimedMember makes sure that a member which a claim has taken is not worked on at once while many claims come,
// and is otherwise.
func TestRushDelaysTheWorkOnAClaimedMember(t *testing.T) {
	member := testSandbox(pooled)
	taken := member.DeepCopy()
	if err := claimedsandbox.Adopt(taken, &extensionsv1beta1.SandboxClaim{ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: "c1", UID: "claim-uid"}}, nil); err != nil {
		t.Fatal(err)
	}
	changed := taken.DeepCopy()
	changed.Generation++
	for name, test := range map[string]struct {
		claims        int
		before, after *agentsv1beta1.Sandbox
		atOnce        int
	}{
		"taken in calm":         {1, member, taken, 1},
		"taken in a rush":       {100, member, taken, 0},
		"of a claim, in a rush": {100, taken, changed, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			for range test.claims {
				f.config.Rush.Note()
			}
			f.sandboxHandler().OnUpdate(test.before, test.after)
			if got := f.loop.Queue.Len(); got != test.atOnce {
				t.Errorf("%d passes are due at once, want %d", got, test.atOnce)
			}
		})
	}
}
