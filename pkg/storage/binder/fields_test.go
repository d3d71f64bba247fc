// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package binder

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	agentsinstall "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/install"
	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	extensionsinstall "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/install"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/claimedsandbox"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/registrytest"
)

// library is k8s.io/apimachinery's field manager: what it says about ownership is right.
type library struct {
	t                *testing.T
	scheme           *runtime.Scheme
	types            managedfields.TypeConverter
	claim, sandboxes *managedfields.FieldManager
}

func newLibrary(t *testing.T) *library {
	t.Helper()
	l := &library{t: t, scheme: runtime.NewScheme()}
	agentsinstall.Install(l.scheme)
	extensionsinstall.Install(l.scheme)
	l.types = registrytest.TypeConverter(t, l.scheme, agentsv1beta1.Sandbox{}.OpenAPIModelName(), extensionsv1beta1.SandboxClaim{}.OpenAPIModelName())
	l.claim, l.sandboxes = l.ofClaims(subresource), l.ofSandboxes(subresource)
	return l
}

func (l *library) ofClaims(subresource string) *managedfields.FieldManager {
	l.t.Helper()
	manager, err := managedfields.NewDefaultFieldManager(l.types, l.scheme, l.scheme, l.scheme,
		extensionsv1beta1.SchemeGroupVersion.WithKind("SandboxClaim"), extensions.SchemeGroupVersion, subresource, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	return manager
}

func (l *library) ofSandboxes(subresource string) *managedfields.FieldManager {
	l.t.Helper()
	manager, err := managedfields.NewDefaultFieldManager(l.types, l.scheme, l.scheme, l.scheme,
		agentsv1beta1.SchemeGroupVersion.WithKind("Sandbox"), agents.SchemeGroupVersion, subresource, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	return manager
}

// written returns an object as it is after a manager has written it.
func written[T runtime.Object](fields *managedfields.FieldManager, manager string, before, after T) T {
	return fields.UpdateNoErrors(before, after.DeepCopyObject(), manager).(T)
}

// sameOwners compares managedFields but for the times, and the order that goes by them.
var sameOwners = cmp.Options{
	cmpopts.IgnoreFields(metav1.ManagedFieldsEntry{}, "Time"),
	cmpopts.SortSlices(func(a, b metav1.ManagedFieldsEntry) bool { return a.Manager+a.Subresource < b.Manager+b.Subresource }),
}

// TestOwnershipOfSandboxesIsWhatTheLibrarySays binds and reserves members of all sorts.
func TestOwnershipOfSandboxesIsWhatTheLibrarySays(t *testing.T) {
	l := newLibrary(t)
	claim := &extensionsv1beta1.SandboxClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim", Namespace: "test", UID: "claim-uid"}}
	template := &extensionsv1beta1.SandboxTemplate{ObjectMeta: metav1.ObjectMeta{Name: "template", Namespace: "test"}}
	adopt := func(s *agentsv1beta1.Sandbox) {
		if err := claimedsandbox.Adopt(s, claim, template); err != nil {
			t.Fatal(err)
		}
	}
	reserve := func(s *agentsv1beta1.Sandbox) {
		if s.Annotations == nil {
			s.Annotations = map[string]string{}
		}
		s.Annotations[extensionsv1beta1.ReservedForClaimAnnotation] = "claim-uid"
	}
	for name, test := range map[string]struct {
		member func(*agentsv1beta1.Sandbox)
		change []func(*agentsv1beta1.Sandbox)
	}{
		"binding":                 {change: []func(*agentsv1beta1.Sandbox){adopt}},
		"reserving":               {change: []func(*agentsv1beta1.Sandbox){reserve}},
		"reserving, then binding": {change: []func(*agentsv1beta1.Sandbox){reserve, adopt}},
		"nothing":                 {change: []func(*agentsv1beta1.Sandbox){func(*agentsv1beta1.Sandbox) {}}},
		"no metadata for the Pod": {
			member: func(s *agentsv1beta1.Sandbox) { s.Spec.PodTemplate.Metadata = agentsv1beta1.PodMetadata{} },
			change: []func(*agentsv1beta1.Sandbox){adopt},
		},
		"annotations and no labels for the Pod": {
			member: func(s *agentsv1beta1.Sandbox) { s.Spec.PodTemplate.Metadata.Labels = nil },
			change: []func(*agentsv1beta1.Sandbox){adopt},
		},
		"annotations": {
			member: func(s *agentsv1beta1.Sandbox) { s.Annotations = map[string]string{"a": "b"} },
			change: []func(*agentsv1beta1.Sandbox){reserve, adopt},
		},
		"a label that stays as it is": {
			member: func(s *agentsv1beta1.Sandbox) { s.Labels[agentsv1beta1.LaunchTypeLabel] = "other" },
			change: []func(*agentsv1beta1.Sandbox){adopt},
		},
		"all metadata of the Pod removed": {change: []func(*agentsv1beta1.Sandbox){func(s *agentsv1beta1.Sandbox) {
			s.Spec.PodTemplate.Metadata = agentsv1beta1.PodMetadata{}
			s.OwnerReferences = nil
			s.Labels = nil
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			member := &agentsv1beta1.Sandbox{ObjectMeta: metav1.ObjectMeta{Name: "member", Namespace: "test"}}
			member.Labels = map[string]string{
				agentsv1beta1.WarmPoolSandboxLabel: "1", agentsv1beta1.SandboxTemplateRefHashLabel: "2", agentsv1beta1.LaunchTypeLabel: "warm",
				agentsv1beta1.CreatedByLabel: "controller",
			}
			yes := true
			member.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v", Kind: "SandboxWarmPool", Name: "pool", UID: "pool-uid", Controller: &yes}}
			member.Spec.OperatingMode = agentsv1beta1.SandboxOperatingModeRunning
			member.Spec.PodTemplate.Metadata = agentsv1beta1.PodMetadata{
				Labels: map[string]string{"app": "agent"}, Annotations: map[string]string{agentsv1beta1.SafeToEvictAnnotation: "true"},
			}
			if test.member != nil {
				test.member(member)
			}
			before := written(l.ofSandboxes(""), "sandbox-controller", &agentsv1beta1.Sandbox{}, member)
			ready := before.DeepCopy()
			ready.Status.PodIPs = []string{"10.0.0.1"}
			before = written(l.ofSandboxes("status"), "sandbox-controller", before, ready)
			want, got := before, before
			for _, change := range test.change {
				changed := want.DeepCopy()
				change(changed)
				want = written(l.sandboxes, fieldManager, want, changed)
				changed = got.DeepCopy()
				change(changed)
				ownSandbox(got, changed, time.Now())
				got = changed
			}
			if diff := cmp.Diff(want.ManagedFields, got.ManagedFields, sameOwners); diff != "" {
				t.Errorf("managedFields (-library +got):\n%s", diff)
			}
		})
	}
}

// TestOwnershipOfClaimsIsWhatTheLibrarySays binds new claims and claims that have waited.
func TestOwnershipOfClaimsIsWhatTheLibrarySays(t *testing.T) {
	l := newLibrary(t)
	condition := metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "R", Message: "m", LastTransitionTime: metav1.Now()}
	for name, test := range map[string]struct {
		claim, status func(*extensionsv1beta1.SandboxClaim)
		fqdn          string
	}{
		"new":              {},
		"with a Service":   {fqdn: "a.b"},
		"with annotations": {claim: func(c *extensionsv1beta1.SandboxClaim) { c.Annotations = map[string]string{"a": "b"} }},
		"with an annotation of ours": {claim: func(c *extensionsv1beta1.SandboxClaim) {
			c.Annotations = map[string]string{extensionsv1beta1.SandboxNameAnnotation: "other"}
		}},
		"that has waited": {status: func(c *extensionsv1beta1.SandboxClaim) { c.Status.Conditions = []metav1.Condition{condition} }},
		"that has had another": {status: func(c *extensionsv1beta1.SandboxClaim) {
			c.Status.Conditions = []metav1.Condition{condition}
			c.Status.Sandbox = extensionsv1beta1.ClaimedSandboxStatus{Name: "other", PodIPs: []string{"10.0.0.9"}, ServiceFQDN: "other"}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &extensionsv1beta1.SandboxClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim", Namespace: "test", UID: types.UID("uid")}}
			claim.Spec.WarmPoolRef.Name = "pool"
			if test.claim != nil {
				test.claim(claim)
			}
			before := written(l.ofClaims(""), "client", &extensionsv1beta1.SandboxClaim{}, claim)
			if test.status != nil {
				waiting := before.DeepCopy()
				test.status(waiting)
				before = written(l.ofClaims("status"), "sandbox-controller", before, waiting)
			}
			sandbox := &agentsv1beta1.Sandbox{ObjectMeta: metav1.ObjectMeta{Name: "member", Namespace: "test"}}
			sandbox.Status.PodIPs, sandbox.Status.ServiceFQDN = []string{"10.0.0.1"}, test.fqdn
			sandbox.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "R", LastTransitionTime: metav1.Now()}}
			bind := func() *extensionsv1beta1.SandboxClaim {
				given := request{claim: before}.boundClaim("member", time.Unix(0, 0))
				given.Status = claimedsandbox.Status(given, sandbox)
				return given
			}
			got := bind()
			ownClaim(before, got, time.Now())
			want := written(l.claim, fieldManager, before, bind())
			if diff := cmp.Diff(want.ManagedFields, got.ManagedFields, sameOwners); diff != "" {
				t.Errorf("managedFields (-library +got):\n%s", diff)
			}
			announced := announcedClaim(got, time.Unix(1, 0))
			ownClaim(got, announced, time.Now())
			want = written(l.claim, fieldManager, want, announcedClaim(want, time.Unix(1, 0)))
			if diff := cmp.Diff(want.ManagedFields, announced.ManagedFields, sameOwners); diff != "" {
				t.Errorf("managedFields once it is announced (-library +got):\n%s", diff)
			}
		})
	}
}

// TestUnownedObjectsStayUnowned leaves objects alone whose fields nobody owns, as the library does.
func TestUnownedObjectsStayUnowned(t *testing.T) {
	before := &extensionsv1beta1.SandboxClaim{}
	claim := annotated(before, "a", "b")
	ownClaim(before, claim, time.Now())
	if len(claim.ManagedFields) != 0 {
		t.Errorf("managedFields are %v, want none", claim.ManagedFields)
	}
}

// TestUnreadableEntriesStay leaves what it does not understand to others.
func TestUnreadableEntriesStay(t *testing.T) {
	broken := metav1.ManagedFieldsEntry{Manager: "m", FieldsV1: metav1.NewFieldsV1("{")}
	before := &extensionsv1beta1.SandboxClaim{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{broken}}}
	claim := annotated(before, "a", "b")
	ownClaim(before, claim, time.Now())
	if len(claim.ManagedFields) != 2 || claim.ManagedFields[0].Manager != "m" || claim.ManagedFields[1].Manager != fieldManager {
		t.Errorf("managedFields are %v, want the broken entry and that of the binder", claim.ManagedFields)
	}
}
