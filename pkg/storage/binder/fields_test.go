// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package binder

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	agentsinstall "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/install"
	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsinstall "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/install"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/claimedsandbox"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/registrytest"
)

func newTestFields(tb testing.TB) *fields {
	tb.Helper()
	scheme := runtime.NewScheme()
	agentsinstall.Install(scheme)
	extensionsinstall.Install(scheme)
	types := registrytest.TypeConverter(tb, scheme, agentsv1beta1.Sandbox{}.OpenAPIModelName(), extensionsv1beta1.SandboxClaim{}.OpenAPIModelName())
	f, err := newFields(scheme, types)
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

// newMember returns a member of a pool, all of whose fields have owners, and what becomes of it when a claim gets it.
func newMember(tb testing.TB, f *fields) (before, after *agentsv1beta1.Sandbox) {
	tb.Helper()
	before = &agentsv1beta1.Sandbox{ObjectMeta: metav1.ObjectMeta{
		Name: "member", Namespace: "test",
		Labels:      map[string]string{agentsv1beta1.WarmPoolSandboxLabel: "pool", agentsv1beta1.LaunchTypeLabel: agentsv1beta1.LaunchTypeWarm, "other": "label"},
		Annotations: map[string]string{extensionsv1beta1.ReservedForClaimAnnotation: "uid"},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: extensionsv1beta1.SchemeGroupVersion.String(), Kind: "SandboxWarmPool", Name: "pool", UID: "pool-uid", Controller: new(true),
		}},
	}}
	before.Spec.PodTemplate = agentsv1beta1.PodTemplate{
		Metadata: agentsv1beta1.PodMetadata{Labels: map[string]string{"app": "agent"}, Annotations: map[string]string{agentsv1beta1.SafeToEvictAnnotation: "true"}},
		Spec: corev1.PodSpec{
			Containers:   []corev1.Container{{Name: "main", Image: "image", Env: []corev1.EnvVar{{Name: "A", Value: "B"}}, Ports: []corev1.ContainerPort{{ContainerPort: 80}}}},
			NodeSelector: map[string]string{"a": "b"},
		},
	}
	before.Spec.VolumeClaimTemplates = []agentsv1beta1.PersistentVolumeClaimTemplate{{Metadata: agentsv1beta1.EmbeddedObjectMetadata{Name: "data"}}}
	before.Status.PodIPs = []string{"10.0.0.1"}
	f.sandboxes.UpdateNoErrors(&agentsv1beta1.Sandbox{}, before, "creator")
	labelled := before.DeepCopy()
	labelled.Labels["other"] = "value"
	f.sandboxes.UpdateNoErrors(before, labelled, "somebody")

	after = labelled.DeepCopy()
	claim := &extensionsv1beta1.SandboxClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim", Namespace: "test", UID: "claim-uid"}}
	if err := claimedsandbox.Adopt(after, claim, nil); err != nil {
		tb.Fatal(err)
	}
	return labelled, after
}

// That only a part of the Sandbox is compared must not be seen in the result.
func TestOwnersAreThoseOfAComparisonOfEverything(t *testing.T) {
	f := newTestFields(t)
	before, got := newMember(t, f)
	want := got.DeepCopy()
	f.sandboxes.UpdateNoErrors(before, want, fieldManager)
	f.ownSandbox(before, got)
	if len(want.ManagedFields) != 3 {
		t.Errorf("the fields have %d owners: %v", len(want.ManagedFields), want.ManagedFields)
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreTypes(metav1.Time{}, &metav1.Time{})); diff != "" {
		t.Errorf("the Sandbox (-everything compared +got):\n%s", diff)
	}
}

func BenchmarkOwnSandbox(b *testing.B) {
	f := newTestFields(b)
	before, after := newMember(b, f)
	for b.Loop() {
		f.ownSandbox(before, after.DeepCopy())
	}
}
