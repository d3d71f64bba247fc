// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package claimedsandbox

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/sandboxpod"
)

type (
	pairs    = map[string]string
	claim    = extensionsv1beta1.SandboxClaim
	template = extensionsv1beta1.SandboxTemplate
	pool     = extensionsv1beta1.SandboxWarmPool
	sandbox  = agentsv1beta1.Sandbox
)

const testNamespace = "tenant"

func testPool() *pool {
	return &pool{ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: "p1", UID: "pool-uid"}}
}

func testClaim(changes ...func(*claim)) *claim {
	c := &claim{ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: "c1", UID: "claim-uid", Generation: 4}}
	c.Spec.WarmPoolRef.Name = "p1"
	for _, change := range changes {
		change(c)
	}
	return c
}

func testTemplate(changes ...func(*template)) *template {
	t := &template{ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: "t1"}}
	t.Spec.PodTemplate = agentsv1beta1.PodTemplate{
		Metadata: agentsv1beta1.PodMetadata{Labels: pairs{"app": "web"}, Annotations: pairs{"note": "1"}},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "init", Image: "example"}},
			Containers: []corev1.Container{
				{Name: "main", Image: "example", Env: []corev1.EnvVar{
					{Name: "TOKEN", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}}},
					{Name: "MODE", Value: "a"},
				}},
				{Name: "side", Image: "example", EnvFrom: []corev1.EnvFromSource{{Prefix: "X"}}},
			},
		},
	}
	t.Spec.VolumeClaimTemplates = volumes("data", "logs")
	for _, change := range changes {
		change(t)
	}
	return t
}

// volumes returns volume claim templates of the names.
func volumes(names ...string) []agentsv1beta1.PersistentVolumeClaimTemplate {
	var templates []agentsv1beta1.PersistentVolumeClaimTemplate
	for _, name := range names {
		templates = append(templates, agentsv1beta1.PersistentVolumeClaimTemplate{Metadata: agentsv1beta1.EmbeddedObjectMetadata{Name: name}})
	}
	return templates
}

// testMember returns a member of the pool, as the pool makes it.
func testMember(changes ...func(*sandbox)) *sandbox {
	labels := pairs{
		agentsv1beta1.WarmPoolSandboxLabel: naming.Hash("p1"), agentsv1beta1.SandboxTemplateRefHashLabel: naming.Hash("t1"),
		agentsv1beta1.SandboxTemplateHashLabel: "hash", agentsv1beta1.SandboxPodTemplateHashLabel: "old",
		agentsv1beta1.LaunchTypeLabel: agentsv1beta1.LaunchTypeWarm, agentsv1beta1.CreatedByLabel: agentsv1beta1.CreatedByController,
	}
	s := &sandbox{ObjectMeta: metav1.ObjectMeta{
		Namespace: testNamespace, Name: "p1-x", UID: "sandbox-uid", Labels: labels,
		Annotations: pairs{agentsv1beta1.SandboxTemplateRefAnnotation: "t1"},
		OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(testPool(), extensionsv1beta1.SchemeGroupVersion.WithKind(sandboxpod.WarmPoolKind)),
		},
	}}
	s.Spec.OperatingMode = agentsv1beta1.SandboxOperatingModeRunning
	s.Spec.PodTemplate.Metadata = agentsv1beta1.PodMetadata{
		Labels: pairs{
			"app": "web", agentsv1beta1.WarmPoolSandboxLabel: naming.Hash("p1"), agentsv1beta1.SandboxTemplateRefHashLabel: naming.Hash("t1"),
			agentsv1beta1.SandboxTemplateHashLabel: "hash",
		},
		Annotations: pairs{"note": "1", agentsv1beta1.SafeToEvictAnnotation: "true"},
	}
	s.Status.PodIPs = []string{"10.0.0.7"}
	s.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "DependenciesReady"}}
	for _, change := range changes {
		change(s)
	}
	return s
}

func TestAdoptable(t *testing.T) {
	now := metav1.Now()
	for name, test := range map[string]struct {
		change func(*sandbox)
		want   bool
	}{
		"as made":                  {func(*sandbox) {}, true},
		"not ready":                {func(s *sandbox) { s.Status = agentsv1beta1.SandboxStatus{} }, true},
		"owner of another version": {func(s *sandbox) { s.OwnerReferences[0].APIVersion = "extensions.agents.x-k8s.io/v1alpha1" }, true},
		"owner of another group":   {func(s *sandbox) { s.OwnerReferences[0].APIVersion = "example.com/v1" }, false},
		"owner of another kind":    {func(s *sandbox) { s.OwnerReferences[0].Kind = "SandboxClaim" }, false},
		"owner of another name":    {func(s *sandbox) { s.OwnerReferences[0].Name = "p2" }, false},
		"an earlier pool's":        {func(s *sandbox) { s.OwnerReferences[0].UID = "earlier" }, false},
		"owner does not control":   {func(s *sandbox) { s.OwnerReferences[0].Controller = nil }, false},
		"no owner":                 {func(s *sandbox) { s.OwnerReferences = nil }, false},
		"another namespace":        {func(s *sandbox) { s.Namespace = "other" }, false},
		"being deleted":            {func(s *sandbox) { s.DeletionTimestamp = &now }, false},
		"suspended":                {func(s *sandbox) { s.Spec.OperatingMode = agentsv1beta1.SandboxOperatingModeSuspended }, false},
		"no pool label":            {func(s *sandbox) { delete(s.Labels, agentsv1beta1.WarmPoolSandboxLabel) }, false},
		"another pool's label":     {func(s *sandbox) { s.Labels[agentsv1beta1.WarmPoolSandboxLabel] = naming.Hash("p2") }, false},
		"no template label":        {func(s *sandbox) { delete(s.Labels, agentsv1beta1.SandboxTemplateRefHashLabel) }, false},
		"reserved":                 {func(s *sandbox) { s.Annotations[extensionsv1beta1.ReservedForClaimAnnotation] = "other" }, false},
		"W7: once claimed, given back the pool's owner and labels": {func(s *sandbox) { s.Labels[agentsv1beta1.ClaimUIDLabel] = "gone" }, false},
		"W7: once claimed, all labels edited": {
			func(s *sandbox) { s.Spec.PodTemplate.Metadata.Labels[agentsv1beta1.ClaimUIDLabel] = "gone" }, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Adoptable(testMember(test.change), testPool()); got != test.want {
				t.Errorf("adoptable is %v, want %v", got, test.want)
			}
		})
	}
}

func TestUsedBoxIsNeverAdoptableAgain(t *testing.T) {
	s := testMember()
	if err := Adopt(s, testClaim(), testTemplate()); err != nil {
		t.Fatal(err)
	}
	member := testMember()
	s.OwnerReferences = member.OwnerReferences
	for key, value := range member.Labels {
		s.Labels[key] = value
	}
	if Adoptable(s, testPool()) {
		t.Error("the pool could give it away again")
	}
}

func TestReady(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*sandbox)
		want   bool
	}{
		"ready":                   {func(*sandbox) {}, true},
		"W11: without an address": {func(s *sandbox) { s.Status.PodIPs = nil }, false},
		"not ready":               {func(s *sandbox) { s.Status.Conditions[0].Status = metav1.ConditionFalse }, false},
		"says nothing":            {func(s *sandbox) { s.Status.Conditions = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Ready(testMember(test.change)); got != test.want {
				t.Errorf("ready is %v, want %v", got, test.want)
			}
		})
	}
}

func TestControls(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*sandbox)
		want   bool
	}{
		"adopted":         {func(*sandbox) {}, true},
		"another version": {func(s *sandbox) { s.OwnerReferences[0].APIVersion = "extensions.agents.x-k8s.io/v1alpha1" }, true},
		"another name":    {func(s *sandbox) { s.OwnerReferences[0].Name = "renamed" }, true},
		"another UID":     {func(s *sandbox) { s.OwnerReferences[0].UID = "earlier" }, false},
		"another kind":    {func(s *sandbox) { s.OwnerReferences[0].Kind = "SandboxWarmPool" }, false},
		"another group":   {func(s *sandbox) { s.OwnerReferences[0].APIVersion = "agents.x-k8s.io/v1beta1" }, false},
		"no controller":   {func(s *sandbox) { s.OwnerReferences[0].Controller = ptr.To(false) }, false},
		"elsewhere":       {func(s *sandbox) { s.Namespace = "other" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := testMember()
			if err := Adopt(s, testClaim(), testTemplate()); err != nil {
				t.Fatal(err)
			}
			test.change(s)
			if got := Controls(testClaim(), s); got != test.want {
				t.Errorf("controls is %v, want %v", got, test.want)
			}
		})
	}
}

func wantDiff(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", what, diff)
	}
}
