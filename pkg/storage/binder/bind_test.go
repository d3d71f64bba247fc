// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package binder_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/storage/binder"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/claimtest"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/registrytest"
)

// startWaiting returns a server with a claim that waits, and then a member that it could be given.
func startWaiting(t *testing.T) (*claimtest.Server, *extensions.SandboxClaim) {
	t.Helper()
	s := claimtest.Start(t, registrytest.StartEtcd(t))
	pool := s.AddPoolOf("pool", 0)
	waiting := s.MustCreate(claimtest.Claim("claim", "pool"))
	s.AddMember(claimtest.Member(pool, 0), claimtest.ReadyStatus())
	s.AwaitCandidates("pool", 1)
	return s, waiting
}

func TestBindGivesAWaitingClaimAMember(t *testing.T) {
	s, waiting := startWaiting(t)
	got, err := s.Binder.Bind(t.Context(), waiting)
	if err != nil {
		t.Fatal(err)
	}
	want := waiting.DeepCopy()
	want.ResourceVersion = s.Sandbox("pool-00000").ResourceVersion
	want.Annotations = map[string]string{extensionsv1beta1.SandboxNameAnnotation: "pool-00000"}
	want.Status = extensions.SandboxClaimStatus{
		Conditions: claimtest.ReadyStatus().Conditions,
		Sandbox:    extensions.ClaimedSandboxStatus{Name: "pool-00000", PodIPs: []string{"10.0.0.1"}, ServiceFQDN: "member.test.svc.cluster.local"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the claim (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(s.Claim("claim"), got); diff != "" {
		t.Errorf("the claim is not what was stored (-stored +got):\n%s", diff)
	}
	checkBindings(t, s, 1)

	again, err := s.Binder.Bind(t.Context(), got)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, again); diff != "" {
		t.Errorf("binding twice changed the claim (-once +twice):\n%s", diff)
	}
}

func notReady(reason string) []metav1.Condition {
	return []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: reason, Message: "m", LastTransitionTime: metav1.Now().Rfc3339Copy()}}
}

// TestBindLeavesClaimsAsTheyAre has a member to give, and claims that must not get it.
func TestBindLeavesClaimsAsTheyAre(t *testing.T) {
	for name, change := range map[string]func(*extensions.SandboxClaim){
		"C11 a claim whose Sandbox is missing": func(c *extensions.SandboxClaim) {
			c.Status.Conditions = notReady(extensionsv1beta1.ClaimReasonSandboxMissing)
		},
		"C3 a claim that a Sandbox is being made for": func(c *extensions.SandboxClaim) {
			c.Status.Conditions = notReady(extensionsv1beta1.ClaimReasonSandboxCreatePending)
		},
		"C11 a claim that once had a Sandbox": func(c *extensions.SandboxClaim) {
			c.Annotations = map[string]string{extensionsv1beta1.SandboxNameAnnotation: "gone"}
			c.Status.Conditions = notReady(extensionsv1beta1.ClaimReasonReconcilerError)
		},
		"a claim with a Sandbox": func(c *extensions.SandboxClaim) { c.Status.Sandbox.Name = "cold" },
		"env":                    func(c *extensions.SandboxClaim) { c.Spec.Env = []extensions.EnvVar{{Name: "A", Value: "b"}} },
		"a label that is not allowed any more": func(c *extensions.SandboxClaim) {
			c.Spec.AdditionalPodMetadata.Labels = map[string]string{"example.com/a": "b"}
		},
		"a label that contradicts the template": func(c *extensions.SandboxClaim) {
			c.Spec.AdditionalPodMetadata.Annotations = map[string]string{"note": "mine"}
		},
		"another pool": func(c *extensions.SandboxClaim) { c.Spec.WarmPoolRef.Name = "other" },
	} {
		t.Run(name, func(t *testing.T) {
			s, waiting := startWaiting(t)
			template := claimtest.Template("contradicted")
			template.Spec.PodTemplate.Metadata.Annotations = map[string]string{"note": "the template's"}
			s.AddTemplate(template)
			s.AddMember(claimtest.Member(s.AddPool(claimtest.Pool("contradicted", "contradicted")), 0), claimtest.ReadyStatus())
			s.AwaitCandidates("contradicted", 1)
			if waiting.Spec.WarmPoolRef.Name = "pool"; name == "a label that contradicts the template" {
				waiting.Spec.WarmPoolRef.Name = "contradicted"
			}
			change(waiting)
			got, err := s.Binder.Bind(t.Context(), waiting)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(waiting, got); diff != "" {
				t.Errorf("the claim (-before +after):\n%s", diff)
			}
			if got := s.Candidates("pool"); got != 1 {
				t.Errorf("%d candidates are left, want 1", got)
			}
			checkBindings(t, s, 0)
		})
	}
}

// TestBindOfAClaimThatHadExpired gives one more time whose Sandbox was deleted for that, and that met another problem since.
func TestBindOfAClaimThatHadExpired(t *testing.T) {
	s := claimtest.Start(t, registrytest.StartEtcd(t))
	s.AddPoolOf("pool", 2)
	claim := s.MustCreate(claimtest.Claim("claim", "pool"))
	first := claim.Status.Sandbox.Name
	for _, reason := range []string{extensionsv1beta1.ClaimReasonExpired, extensionsv1beta1.ClaimReasonAdoptionConflict} {
		claim.Status = extensions.SandboxClaimStatus{Conditions: notReady(reason)}
		claim = s.UpdateClaimStatus(claim)
	}
	got, err := s.Binder.Bind(t.Context(), claim)
	if err != nil {
		t.Fatal(err)
	}
	if name := got.Status.Sandbox.Name; name == "" || name == first {
		t.Errorf("the claim got %q and had %q, want the other member", name, first)
	}
}

func TestBindOfAClaimThatHasChanged(t *testing.T) {
	s, waiting := startWaiting(t)
	change := waiting.DeepCopy()
	change.Annotations = map[string]string{"example.com/a": "b"}
	s.UpdateClaim(change)
	if _, err := s.Binder.Bind(t.Context(), waiting); !errors.Is(err, binder.ErrClaimChanged) {
		t.Errorf("error is %v, want ErrClaimChanged", err)
	}
	if got := s.Candidates("pool"); got != 1 {
		t.Errorf("%d candidates are left, want 1", got)
	}
}

func TestBindThatLosesAllRaces(t *testing.T) {
	s, waiting := startWaiting(t)
	intercept(s).set(before(1, func() { touch(s, "pool", 1) }), func(context.Context, commit) (*clientv3.TxnResponse, error) {
		t.Error("the binder looked for an answer that had come")
		return nil, errLost
	})
	_, err := s.Binder.Bind(t.Context(), waiting)
	if err == nil {
		// The watch was as fast as the touch, and the member was given in its new state.
		checkBindings(t, s, 1)
		return
	}
	if !errors.Is(err, binder.ErrRacesLost) {
		t.Errorf("error is %v, want ErrRacesLost", err)
	}
	checkBindings(t, s, 0)
}

func TestLostAnswerToABind(t *testing.T) {
	s, waiting := startWaiting(t)
	intercept(s).set(func(_ context.Context, ask commit) (*clientv3.TxnResponse, error) {
		_, err := ask()
		return nil, errors.Join(errLost, err)
	}, nil)
	got, err := s.Binder.Bind(t.Context(), waiting)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s.Claim("claim"), got); diff != "" || got.Status.Sandbox.Name != "pool-00000" {
		t.Errorf("the claim is not the bound one that was stored (-stored +got):\n%s", diff)
	}
}

// TestRecreatingPoolGivesWhatFollowsTheTemplate has two members, of which one is of a template that was changed since.
func TestRecreatingPoolGivesWhatFollowsTheTemplate(t *testing.T) {
	s := claimtest.Start(t, registrytest.StartEtcd(t))
	template := s.AddTemplate(claimtest.Template("template"))
	pool := claimtest.Pool("pool", "template")
	pool.Spec.UpdateStrategy = &extensions.SandboxWarmPoolUpdateStrategy{Type: extensions.RecreateSandboxWarmPoolUpdateStrategyType}
	pool = s.AddPool(pool)
	template.Spec.PodTemplate.Spec.Containers[0].Image = "registry.example/agent:v2"
	template = s.UpdateTemplate(template)
	s.AddMember(claimtest.Member(pool, 0), claimtest.ReadyStatus())
	s.AddMember(changed(claimtest.Member(pool, 1), func(sandbox *agents.Sandbox) {
		sandbox.Spec.PodTemplate.Spec.Containers[0].Image = "registry.example/agent:v2"
	}), claimtest.ReadyStatus())
	s.AwaitCandidates("pool", 2)
	s.Eventually("the changed template is known", func() bool {
		return s.Binder.Offer(registrytest.Namespace, "pool").Template.ResourceVersion == template.ResourceVersion
	})

	if got := s.MustCreate(claimtest.Claim("first", "pool")).Status.Sandbox.Name; got != "pool-00001" {
		t.Errorf("the first claim got %q, want the member that follows the template", got)
	}
	if got := s.MustCreate(claimtest.Claim("second", "pool")).Status.Sandbox.Name; got != "" {
		t.Errorf("the second claim got %q, want none", got)
	}
	template.Spec.PodTemplate.Spec.Containers[0].Image = "registry.example/agent:v1"
	template = s.UpdateTemplate(template)
	s.Eventually("the template is known to be as it was", func() bool {
		return s.Binder.Offer(registrytest.Namespace, "pool").Template.ResourceVersion == template.ResourceVersion
	})
	if got := s.MustCreate(claimtest.Claim("third", "pool")).Status.Sandbox.Name; got != "pool-00000" {
		t.Errorf("the third claim got %q, want the member that follows the template again", got)
	}
}

func TestRecreatingPoolWithoutTemplateGivesNothing(t *testing.T) {
	s := claimtest.Start(t, registrytest.StartEtcd(t))
	pool := claimtest.Pool("pool", "none")
	pool.Spec.UpdateStrategy = &extensions.SandboxWarmPoolUpdateStrategy{Type: extensions.RecreateSandboxWarmPoolUpdateStrategyType}
	pool = s.AddPool(pool)
	s.AddMember(claimtest.Member(pool, 0), claimtest.ReadyStatus())
	s.Eventually("the member is known", func() bool {
		return s.Candidates("pool") == 1 && s.Binder.Offer(registrytest.Namespace, "pool").Pool != nil
	})
	if got := s.MustCreate(claimtest.Claim("claim", "pool")).Status.Sandbox.Name; got != "" {
		t.Errorf("the claim got %q, want none", got)
	}
}

// TestMembersOutliveTheirTemplate takes the template away: a pool that does not recreate gives what it has.
func TestMembersOutliveTheirTemplate(t *testing.T) {
	s := claimtest.Start(t, registrytest.StartEtcd(t))
	s.AddPoolOf("pool", 1)
	s.Delete(s.Templates, "pool")
	s.Eventually("the template is known to be gone", func() bool { return s.Binder.Offer(registrytest.Namespace, "pool").Template == nil })
	if got := s.MustCreate(claimtest.Claim("claim", "pool")).Status.Sandbox.Name; got != "pool-00000" {
		t.Errorf("the claim got %q, want pool-00000", got)
	}
	if got := s.Sandbox("pool-00000").Spec.PodTemplate.Metadata.Labels["app"]; got != "agent" {
		t.Errorf("the Pod's label app is %q, want it kept", got)
	}
}
