// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package claimedsandbox

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/sandboxtemplate"
)

// adopted returns the member as it is to be once the claim has it, with the given metadata for its Pod.
func adopted(templateRef string, metadata agentsv1beta1.PodMetadata, changes ...func(*sandbox)) *sandbox {
	s := testMember()
	s.Generation++
	for i := range s.Status.Conditions {
		s.Status.Conditions[i].ObservedGeneration = s.Generation
	}
	s.Labels = pairs{
		agentsv1beta1.SandboxTemplateRefHashLabel: naming.Hash(templateRef), agentsv1beta1.LaunchTypeLabel: "warm", agentsv1beta1.ClaimUIDLabel: "claim-uid",
	}
	s.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "extensions.agents.x-k8s.io/v1beta1", Kind: "SandboxClaim", Name: "c1", UID: "claim-uid", Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
	}}
	metadata.Labels[agentsv1beta1.ClaimUIDLabel] = "claim-uid"
	metadata.Labels[agentsv1beta1.SandboxTemplateRefHashLabel] = naming.Hash(templateRef)
	s.Spec.PodTemplate.Metadata = metadata
	for _, change := range changes {
		change(s)
	}
	return s
}

// withReservedKeys makes the template claim for its Pods what only the system may say.
func withReservedKeys(t *template) {
	t.Spec.PodTemplate.Metadata = agentsv1beta1.PodMetadata{
		Labels:      pairs{"app": "web", agentsv1beta1.ClaimUIDLabel: "stolen", agentsv1beta1.WarmPoolSandboxLabel: "other"},
		Annotations: pairs{"note": "1", agentsv1beta1.TraceContextAnnotation: "the template's"},
	}
}

func TestReservedKeysOfATemplateDoNotKeepMembersFromClaims(t *testing.T) {
	s := testMember(func(s *sandbox) {
		s.Spec.PodTemplate.Metadata = sandboxtemplate.Blueprint(testTemplate(withReservedKeys)).PodTemplate.Metadata
	})
	if !Adoptable(s, testPool()) {
		t.Error("the member cannot be given to a claim")
	}
}

func TestAdopt(t *testing.T) {
	plain := func() agentsv1beta1.PodMetadata {
		return agentsv1beta1.PodMetadata{Labels: pairs{"app": "web"}, Annotations: pairs{"note": "1"}}
	}
	labelled := func(c *claim) {
		c.Labels = pairs{agentsv1beta1.CreatedByLabel: "python-client", "else": "x"}
		c.Annotations = pairs{agentsv1beta1.TraceContextAnnotation: "{}", "else": "x"}
		c.Spec.AdditionalPodMetadata = agentsv1beta1.PodMetadata{Labels: pairs{"sandbox.users.io/a": "b", "app": "web"}, Annotations: pairs{"own": "2"}}
	}
	for name, test := range map[string]struct {
		claim    *claim
		template *template
		member   *sandbox
		want     *sandbox
	}{
		"plain":         {testClaim(), testTemplate(), testMember(), adopted("t1", plain())},
		"reserved keys": {testClaim(), testTemplate(withReservedKeys), testMember(), adopted("t1", plain())},
		"with the claim's metadata": {
			testClaim(labelled), testTemplate(), testMember(),
			adopted("t1", agentsv1beta1.PodMetadata{
				Labels:      pairs{"app": "web", "sandbox.users.io/a": "b", agentsv1beta1.CreatedByLabel: "python-client"},
				Annotations: pairs{"note": "1", "own": "2"},
			}, func(s *sandbox) {
				s.Labels[agentsv1beta1.CreatedByLabel] = "python-client"
				s.Annotations[agentsv1beta1.TraceContextAnnotation] = "{}"
			}),
		},
		"reserved for it": {
			testClaim(), testTemplate(),
			testMember(func(s *sandbox) { s.Annotations[extensionsv1beta1.ReservedForClaimAnnotation] = "claim-uid" }), adopted("t1", plain()),
		},
		"the template has been edited": {
			testClaim(), testTemplate(func(t *template) { t.Spec.PodTemplate.Metadata = agentsv1beta1.PodMetadata{Labels: pairs{"app": "db"}} }), testMember(),
			adopted("t1", agentsv1beta1.PodMetadata{Labels: pairs{"app": "db"}}),
		},
		"the pool has another template": {testClaim(), testTemplate(func(t *template) { t.Name = "t2" }), testMember(), adopted("t2", plain())},
		"the template lets it be evicted": {
			testClaim(), testTemplate(func(t *template) {
				t.Spec.PodTemplate.Metadata.Annotations[agentsv1beta1.SafeToEvictAnnotation] = "true"
			}), testMember(),
			adopted("t1", agentsv1beta1.PodMetadata{Labels: pairs{"app": "web"}, Annotations: pairs{"note": "1", agentsv1beta1.SafeToEvictAnnotation: "true"}}),
		},
		"the claim lets it be evicted": {
			testClaim(func(c *claim) {
				c.Spec.AdditionalPodMetadata.Annotations = pairs{agentsv1beta1.SafeToEvictAnnotation: "false"}
			}), testTemplate(), testMember(),
			adopted("t1", agentsv1beta1.PodMetadata{Labels: pairs{"app": "web"}, Annotations: pairs{"note": "1", agentsv1beta1.SafeToEvictAnnotation: "false"}}),
		},
		"no template": {testClaim(), nil, testMember(), adopted("t1", plain())},
		"no template, which did not let it be evicted": {
			testClaim(), nil, testMember(func(s *sandbox) {
				s.Spec.PodTemplate.Metadata.Annotations[agentsv1beta1.SafeToEvictAnnotation] = "false"
			}),
			adopted("t1", agentsv1beta1.PodMetadata{Labels: pairs{"app": "web"}, Annotations: pairs{"note": "1", agentsv1beta1.SafeToEvictAnnotation: "false"}}),
		},
		"member without any metadata": {
			testClaim(), testTemplate(), testMember(func(s *sandbox) {
				s.Labels, s.Annotations, s.Spec.PodTemplate.Metadata = nil, nil, agentsv1beta1.PodMetadata{}
			}), adopted("t1", plain(), func(s *sandbox) { s.Annotations = nil }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			claimBefore, templateBefore := test.claim.DeepCopy(), test.template.DeepCopy()
			if err := Adopt(test.member, test.claim, test.template); err != nil {
				t.Fatal(err)
			}
			wantDiff(t, "Sandbox", test.want, test.member)
			// The pass of the controller that follows must have nothing to do.
			if test.template != nil {
				again := test.member.DeepCopy()
				if err := Sync(again, test.claim, test.template); err != nil {
					t.Fatal(err)
				}
				wantDiff(t, "Sandbox after a sync", test.member, again)
			}
			test.member.Spec.PodTemplate.Metadata.Labels["app"] = "changed"
			wantDiff(t, "claim", claimBefore, test.claim)
			wantDiff(t, "template", templateBefore, test.template)
		})
	}
}

// TestContradictionOfTheTemplate is case C8 where it takes the template to tell.
func TestContradictionOfTheTemplate(t *testing.T) {
	contradicting := testClaim(func(c *claim) {
		c.Spec.AdditionalPodMetadata = agentsv1beta1.PodMetadata{Labels: pairs{"b": "2", "app": "db"}, Annotations: pairs{"note": "2"}}
	})
	const want = `[spec.additionalPodMetadata.labels[app]: Forbidden: ` +
		`metadata override conflict: label "app" is defined in template with value "web", but claim requests "db", ` +
		`spec.additionalPodMetadata.annotations[note]: Forbidden: ` +
		`metadata override conflict: annotation "note" is defined in template with value "1", but claim requests "2"]`
	check := func(t *testing.T, err error) {
		t.Helper()
		var rejection *Rejection
		if !errors.As(err, &rejection) || rejection.Reason != extensionsv1beta1.ClaimReasonReconcilerError {
			t.Fatalf("error is %v", err)
		}
		wantDiff(t, "error", want, err.Error())
	}
	for name, tmpl := range map[string]*template{"with the template": testTemplate(), "with what the pool made of it": nil} {
		t.Run("adopted "+name, func(t *testing.T) {
			s := testMember()
			check(t, Adopt(s, contradicting, tmpl))
			wantDiff(t, "Sandbox", testMember(), s)
		})
	}
	t.Run("synced", func(t *testing.T) {
		s := adopted("t1", agentsv1beta1.PodMetadata{Labels: pairs{"app": "web"}})
		before := s.DeepCopy()
		check(t, Sync(s, contradicting, testTemplate()))
		wantDiff(t, "Sandbox", before, s)
	})
	t.Run("made", func(t *testing.T) {
		_, err := New(contradicting, testTemplate())
		check(t, err)
	})
}

func TestSyncFollowsClaimAndTemplate(t *testing.T) {
	s := adopted("t1", agentsv1beta1.PodMetadata{Labels: pairs{"app": "web", "gone.io/a": "b"}, Annotations: pairs{"edited": "1"}},
		func(s *sandbox) { s.Labels[agentsv1beta1.CreatedByLabel] = "somebody" })
	err := Sync(s, testClaim(func(c *claim) { c.Spec.AdditionalPodMetadata.Labels = pairs{"sandbox.users.io/a": "b"} }), testTemplate(func(t *template) { t.Name = "t2" }))
	if err != nil {
		t.Fatal(err)
	}
	want := adopted("t2", agentsv1beta1.PodMetadata{Labels: pairs{"app": "web", "sandbox.users.io/a": "b"}, Annotations: pairs{"note": "1"}})
	if diff := cmp.Diff(want, s); diff != "" {
		t.Errorf("Sandbox differs (-want +got):\n%s", diff)
	}
}
