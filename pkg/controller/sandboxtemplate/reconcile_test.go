// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxtemplate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/cache"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/failure"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/namespace"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
)

const refused = `Warning NetworkPolicyFailed refusing to update NetworkPolicy "python-network-policy" as it is not controlled by SandboxTemplate "python"`

func TestNewTemplateGetsItsLabelAndItsPolicyOnce(t *testing.T) {
	f := newFixture(t).Everywhere(testTemplate(func(template *extensionsv1beta1.SandboxTemplate) { template.Labels = nil }))
	f.MustPass()
	f.WantRequests("create networkpolicies", "patch sandboxtemplates")
	template := f.Live(&extensionsv1beta1.SandboxTemplate{}, testName)
	wantLabels := map[string]string{agentsv1beta1.SandboxTemplateRefHashLabel: naming.Hash(testName)}
	if diff := cmp.Diff(wantLabels, template.(*extensionsv1beta1.SandboxTemplate).Labels); diff != "" {
		t.Errorf("labels differ (-want +got):\n%s", diff)
	}
	if policy := f.policy(); policy == nil || relationTo(testTemplate(), policy) != owned {
		t.Errorf("the policy is %v", policy)
	}
	f.InCache(testTemplate())
	f.MustPass()
	f.WantRequests()
	f.WantEvents()
}

func TestR13PolicyFollowsItsTemplate(t *testing.T) {
	made := testNetworkPolicy(testTemplate())
	for name, test := range map[string]struct {
		template *extensionsv1beta1.SandboxTemplate
		policy   *networkingv1.NetworkPolicy
		requests []string
		// exists says whether there is a policy in the end, which is then the desired one.
		exists bool
	}{
		"up to date":              {testTemplate(), made, nil, true},
		"owner of an old version": {testTemplate(), testNetworkPolicy(testTemplate(), oldVersion), nil, true},
		"rules of the template":   {testTemplate(denyAll), made, []string{"patch networkpolicies"}, true},
		"back to the default":     {testTemplate(), testNetworkPolicy(testTemplate(denyAll)), []string{"patch networkpolicies"}, true},
		"edited by somebody": {testTemplate(), testNetworkPolicy(testTemplate(), func(policy *networkingv1.NetworkPolicy) {
			policy.Spec.PolicyTypes, policy.Spec.Egress = policy.Spec.PolicyTypes[:1], nil
		}), []string{"patch networkpolicies"}, true},
		"to Unmanaged":      {testTemplate(unmanaged), made, []string{"delete networkpolicies", "get sandboxtemplates"}, false},
		"Unmanaged already": {testTemplate(unmanaged), nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t).Everywhere(test.template)
			if test.policy != nil {
				f.Everywhere(test.policy)
			}
			f.MustPass()
			f.WantRequests(test.requests...)
			f.WantEvents()
			got := f.policy()
			if (got != nil) != test.exists {
				t.Fatalf("the policy is %v", got)
			}
			if !test.exists {
				return
			}
			if diff := cmp.Diff(desiredPolicySpec(test.template), got.Spec); diff != "" {
				t.Errorf("rules differ (-want +got):\n%s", diff)
			}
			f.InCache(got)
			f.MustPass()
			f.WantRequests()
		})
	}
}

func TestR13ForeignPolicyIsNeverTouched(t *testing.T) {
	for name, change := range map[string]func(*networkingv1.NetworkPolicy){"unowned": disown, "owned by another group": oldGroup} {
		t.Run(name, func(t *testing.T) {
			foreign := testNetworkPolicy(testTemplate(denyAll), change)
			f := newFixture(t).Everywhere(testTemplate(), foreign)
			if _, err := f.Pass(); err == nil || failure.Outdated(err) {
				t.Errorf("error is %v", err)
			}
			f.WantRequests()
			f.WantEvents(refused)

			f = newFixture(t).Everywhere(testTemplate(unmanaged), foreign)
			f.MustPass()
			f.WantRequests()
			f.WantEvents()

			// One that the cache does not show yet.
			f = newFixture(t).Everywhere(testTemplate()).OnServer(foreign)
			if _, err := f.Pass(); err == nil || failure.Outdated(err) {
				t.Errorf("error is %v", err)
			}
			f.WantRequests("create networkpolicies", "get networkpolicies")
			f.WantEvents(refused)
			if diff := cmp.Diff(foreign, f.policy()); diff != "" {
				t.Errorf("the foreign policy has changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPolicyThatIsGoingIsWaitedForInSilence(t *testing.T) {
	terminating := func(policy *networkingv1.NetworkPolicy) {
		now := metav1.NewTime(testTime())
		policy.DeletionTimestamp, policy.Finalizers = &now, []string{"example.com/hold"}
	}
	for name, change := range map[string]func(*networkingv1.NetworkPolicy){"of an earlier template": inherit, "our own": terminating} {
		t.Run(name, func(t *testing.T) {
			for _, template := range []*extensionsv1beta1.SandboxTemplate{testTemplate(), testTemplate(unmanaged)} {
				f := newFixture(t).Everywhere(template, testNetworkPolicy(testTemplate(denyAll), change))
				f.MustPass()
				f.WantRequests()
				f.WantEvents()
			}
		})
	}
}

func TestPolicyIsNotDeletedOnAStaleCache(t *testing.T) {
	for name, live := range map[string]*extensionsv1beta1.SandboxTemplate{
		"managed again": testTemplate(),
		"another one":   testTemplate(unmanaged, func(template *extensionsv1beta1.SandboxTemplate) { template.UID = "later" }),
		"gone":          nil,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t).InCache(testTemplate(unmanaged)).Everywhere(testNetworkPolicy(testTemplate()))
			if live != nil {
				f.OnServer(live)
			}
			if _, err := f.Pass(); !failure.Outdated(err) {
				t.Errorf("error is %v", err)
			}
			f.WantRequests("get sandboxtemplates")
			f.WantEvents()
		})
	}
}

func TestRefusedPolicies(t *testing.T) {
	terminating := apierrors.NewForbidden(networkingv1.Resource("networkpolicies"), testPolicy, nil)
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, test := range map[string]struct {
		err          error
		event, retry bool
	}{
		"invalid": {err: apierrors.NewInvalid(networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy").GroupKind(), testPolicy,
			field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), testPolicy, "too long")}), event: true},
		"unavailable":           {err: apierrors.NewServiceUnavailable("no endpoints"), event: true, retry: true},
		"namespace terminating": {err: terminating},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t).Everywhere(testTemplate())
			f.Refuse("create", "networkpolicies", test.err)
			after, err := f.Pass()
			if (err != nil) != test.retry {
				t.Errorf("error is %v", err)
			}
			if rests := after == namespace.TerminatingDelay; rests != namespace.IsTerminating(test.err) {
				t.Errorf("the next pass is after %v", after)
			}
			if got := len(f.Recorder.Events) == 1 && strings.Contains(<-f.Recorder.Events, test.err.Error()); got != test.event {
				t.Errorf("an event tells of it: %v", got)
			}
		})
	}
}

func TestDeletedTemplateIsLeftAlone(t *testing.T) {
	now := metav1.NewTime(testTime())
	f := newFixture(t).Everywhere(testTemplate(unmanaged, func(template *extensionsv1beta1.SandboxTemplate) {
		template.DeletionTimestamp, template.Finalizers, template.Labels = &now, []string{"example.com/hold"}, nil
	}), testNetworkPolicy(testTemplate()))
	f.MustPass()
	f.WantRequests()
}

func TestChangesOfPoliciesReachTheTemplate(t *testing.T) {
	for name, test := range map[string]struct {
		policy *networkingv1.NetworkPolicy
		want   []string
	}{
		"owned, any name":     {testNetworkPolicy(testTemplate(), func(policy *networkingv1.NetworkPolicy) { policy.Name = "other" }), []string{testName}},
		"foreign, in the way": {testNetworkPolicy(testTemplate(), disown), []string{testName}},
		"none of ours":        {testNetworkPolicy(testTemplate(), disown, func(policy *networkingv1.NetworkPolicy) { policy.Name = "deny-all" }), nil},
	} {
		t.Run(name, func(t *testing.T) {
			for event, tell := range map[string]func(cache.ResourceEventHandler){
				"add":    func(h cache.ResourceEventHandler) { h.OnAdd(test.policy, false) },
				"delete": func(h cache.ResourceEventHandler) { h.OnDelete(cache.DeletedFinalStateUnknown{Obj: test.policy}) },
				"lose": func(h cache.ResourceEventHandler) {
					h.OnUpdate(test.policy, testNetworkPolicy(testTemplate(), disown, func(policy *networkingv1.NetworkPolicy) { policy.Name = "other" }))
				},
			} {
				f := newFixture(t)
				tell(f.policyHandler())
				var got []string
				for f.loop.Queue.Len() > 0 {
					name, _ := f.loop.Queue.Get()
					got = append(got, name.Name)
					f.loop.Queue.Done(name)
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("%s: queued names differ (-want +got):\n%s", event, diff)
				}
			}
		})
	}
}
