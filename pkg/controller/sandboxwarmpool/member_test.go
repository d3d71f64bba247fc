// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxwarmpool

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/claimedsandbox"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/sandboxtemplate"
)

func metadata(template *extensionsv1beta1.SandboxTemplate) {
	template.Spec.PodTemplate.Metadata = agentsv1beta1.PodMetadata{
		Labels:      map[string]string{"app": "web"},
		Annotations: map[string]string{agentsv1beta1.SafeToEvictAnnotation: "false"},
	}
}

func TestNewMember(t *testing.T) {
	template := newTemplate(metadata)
	shared := map[string]string{
		agentsv1beta1.WarmPoolSandboxLabel:        naming.Hash(testName),
		agentsv1beta1.SandboxTemplateRefHashLabel: naming.Hash(testTemplate),
		agentsv1beta1.SandboxTemplateHashLabel:    sandboxtemplate.Hash(template),
		agentsv1beta1.CreatedByLabel:              "controller",
	}
	with := func(key, value string) map[string]string {
		labels := maps.Clone(shared)
		labels[key] = value
		return labels
	}
	want := &agentsv1beta1.Sandbox{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: testNamespace, Name: "p1-abcde", GenerateName: "p1-",
			Labels:      with(agentsv1beta1.LaunchTypeLabel, "warm"),
			Annotations: map[string]string{agentsv1beta1.SandboxTemplateRefAnnotation: testTemplate},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "extensions.agents.x-k8s.io/v1beta1", Kind: "SandboxWarmPool", Name: testName, UID: testUID,
				Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
			}},
		},
		Spec: agentsv1beta1.SandboxSpec{OperatingMode: agentsv1beta1.SandboxOperatingModeRunning, SandboxBlueprint: sandboxtemplate.Blueprint(template)},
	}
	want.Spec.PodTemplate.Metadata.Labels = with("app", "web")

	before := template.DeepCopy()
	got := newMember(newPool(1), template, "p1-abcde", true)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("member differs (-want +got):\n%s", diff)
	}
	if !claimedsandbox.Adoptable(got, newPool(1)) || !sandboxtemplate.Fresh(template, got) {
		t.Error("the member could not be given to a claim")
	}
	if diff := cmp.Diff(before, template); diff != "" {
		t.Errorf("the template in the cache has changed (-before +after):\n%s", diff)
	}
}

func TestMembersMayBeEvictedUnlessTemplateOrOperatorSayOtherwise(t *testing.T) {
	for name, test := range map[string]struct {
		template  *extensionsv1beta1.SandboxTemplate
		evictable bool
		want      string
	}{
		"nobody has an opinion":   {newTemplate(), true, "true"},
		"the operator is against": {newTemplate(), false, ""},
		"the template is against": {newTemplate(metadata), true, "false"},
		"both have the last word": {newTemplate(metadata), false, "false"},
	} {
		member := newMember(newPool(1), test.template, "p1-abcde", test.evictable)
		if got := member.Spec.PodTemplate.Metadata.Annotations[agentsv1beta1.SafeToEvictAnnotation]; got != test.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestNamesOfMembersFitWhateverThePoolIsCalled(t *testing.T) {
	pool := newPool(1)
	if name := newName(pool).Name; !strings.HasPrefix(name, "p1-") || len(name) != len("p1-")+5 {
		t.Errorf("name is %q", name)
	}
	pool.Name = strings.Repeat("p", 100)
	if name := newName(pool).Name; len(name) != 63 {
		t.Errorf("name is %q", name)
	}
}

func TestIndexTellsMembersFromOrphans(t *testing.T) {
	index := memberIndexers()[memberIndex]
	for name, test := range map[string]struct {
		change memberChange
		want   []string
	}{
		"member": {func(*agentsv1beta1.Sandbox) {}, []string{"member/tenant/pool-uid"}},
		"of an old version": {func(m *agentsv1beta1.Sandbox) {
			m.OwnerReferences[0].APIVersion = "extensions.agents.x-k8s.io/v1alpha1"
		}, []string{"member/tenant/pool-uid"}},
		"member without label": {func(m *agentsv1beta1.Sandbox) { m.Labels = nil }, []string{"member/tenant/pool-uid"}},
		"orphan":               {orphaned, []string{"orphan/tenant/" + testMember("m").Labels[agentsv1beta1.WarmPoolSandboxLabel]}},
		"claimed":              {claimed, nil},
		"of another group":     {func(m *agentsv1beta1.Sandbox) { m.OwnerReferences[0].APIVersion = "example.com/v1" }, nil},
		"nobody's":             {func(m *agentsv1beta1.Sandbox) { m.OwnerReferences, m.Labels = nil, nil }, nil},
	} {
		got, err := index(testMember("m", test.change))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: keys differ (-want +got):\n%s", name, diff)
		}
	}
}

func TestOrphansThatMayBeAdopted(t *testing.T) {
	for name, test := range map[string]struct {
		change memberChange
		want   bool
	}{
		"what the pool would make": {func(*agentsv1beta1.Sandbox) {}, true},
		"without a launch type":    {func(m *agentsv1beta1.Sandbox) { delete(m.Labels, agentsv1beta1.LaunchTypeLabel) }, true},
		"of another template":      {func(m *agentsv1beta1.Sandbox) { m.Labels[agentsv1beta1.SandboxTemplateRefHashLabel] = "other" }, false},
		"edited":                   {func(m *agentsv1beta1.Sandbox) { m.Spec.PodTemplate.Spec.Containers[0].Image = "evil" }, false},
		"used before (W7)":         {func(m *agentsv1beta1.Sandbox) { m.Labels[agentsv1beta1.ClaimUIDLabel] = "claim-uid" }, false},
		"suspended":                {suspended, false},
		"terminating":              {terminating, false},
	} {
		if got := adoptable(newPool(1), newTemplate(), testMember("m", orphaned, test.change)); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
