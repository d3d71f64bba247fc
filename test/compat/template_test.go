// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

// policyOf is the name of the NetworkPolicy of the template t1, and hashOfT1 the hash of the template's name.
const (
	policyOf = "t1-network-policy"
	hashOfT1 = "0844ecd6"
)

// awaitPolicy waits until check returns nil for the NetworkPolicy of the template t1, and returns it.
func awaitPolicy(t *tester, namespace string, check func(*networkingv1.NetworkPolicy) error) *networkingv1.NetworkPolicy {
	t.Helper()
	var policy *networkingv1.NetworkPolicy
	eventually(t, "NetworkPolicy in "+namespace, func(ctx context.Context) (err error) {
		if policy, err = env.kube.NetworkingV1().NetworkPolicies(namespace).Get(ctx, policyOf, metav1.GetOptions{}); err != nil {
			return err
		}
		return check(policy)
	})
	return policy
}

// policySpec returns the check that a NetworkPolicy is for all Pods of the template t1, and has these rules and no others.
func policySpec(ingress []networkingv1.NetworkPolicyIngressRule, egress []networkingv1.NetworkPolicyEgressRule) func(*networkingv1.NetworkPolicy) error {
	want := networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{v1beta1.SandboxTemplateRefHashLabel: hashOfT1}},
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		Ingress:     ingress, Egress: egress,
	}
	return func(policy *networkingv1.NetworkPolicy) error {
		if diff := cmp.Diff(want, policy.Spec, cmpopts.EquateEmpty()); diff != "" {
			return fmt.Errorf("the spec (-want +got):\n%s", diff)
		}
		return nil
	}
}

// secureDefault is the check that the rules are those of a template that has none of its own.
func secureDefault() func(*networkingv1.NetworkPolicy) error {
	router := networkingv1.NetworkPolicyPeer{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "agent-sandbox-system"}},
		PodSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"app": "sandbox-router"}},
	}
	return policySpec(
		[]networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{router}}},
		[]networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{
			{IPBlock: &networkingv1.IPBlock{CIDR: "0.0.0.0/0", Except: []string{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"}}},
			{IPBlock: &networkingv1.IPBlock{CIDR: "::/0", Except: []string{"fc00::/7", "fe80::/10"}}},
		}}},
	)
}

// TestNetworkPolicy has the rules of the NetworkPolicy of a template.
func TestNetworkPolicy(t *testing.T) {
	policies := func(namespace string) func(context.Context, string, metav1.GetOptions) (*networkingv1.NetworkPolicy, error) {
		return env.kube.NetworkingV1().NetworkPolicies(namespace).Get
	}
	runRows(t,
		row{id: "default", rule: "without rules of its own a template lets the router in, and lets out to public addresses; its Pods have the label", run: func(t *tester) {
			namespace := newNamespace(t)
			pool := fillPool(t, namespace, 1)
			policy := awaitPolicy(t, namespace, secureDefault())
			template, err := templates(namespace).Get(t.Context(), "t1", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			want := []metav1.OwnerReference{*metav1.NewControllerRef(template, extensionsv1beta1.SchemeGroupVersion.WithKind("SandboxTemplate"))}
			if diff := cmp.Diff(want, policy.OwnerReferences); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
			hash := map[string]string{v1beta1.SandboxTemplateRefHashLabel: hashOfT1}
			awaitPodIs(t, namespace, membersOf(t, pool)[0].Name, podHas(hash, nil))
			awaitPodIs(t, namespace, bind(t, namespace, "c1").Status.Sandbox.Name, podHas(hash, nil))
			if template.Labels[v1beta1.SandboxTemplateRefHashLabel] != hashOfT1 {
				t.Errorf("labels of the template are %v", template.Labels)
			}
		}},
		row{id: "custom", rule: "rules of its own are taken as they are; what is empty is denied; without them it is the default again", run: func(t *tester) {
			namespace := newNamespace(t)
			createTemplate(t, namespace, "t1")
			awaitPolicy(t, namespace, secureDefault())
			patchTemplate(t, namespace, "t1", `{"spec":{"networkPolicy":{"egress":[{"to":[{"ipBlock":{"cidr":"192.0.2.0/24"}}]}]}}}`)
			awaitPolicy(t, namespace, policySpec(nil, []networkingv1.NetworkPolicyEgressRule{
				{To: []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: "192.0.2.0/24"}}}},
			}))
			patchTemplate(t, namespace, "t1", `{"spec":{"networkPolicy":{"egress":null}}}`)
			awaitPolicy(t, namespace, policySpec(nil, nil))
			patchTemplate(t, namespace, "t1", `{"spec":{"networkPolicy":null}}`)
			awaitPolicy(t, namespace, secureDefault())
		}},
		row{id: "unmanaged", rule: "Unmanaged has none, and takes the one that was there away", run: func(t *tester) {
			namespace := newNamespace(t)
			createTemplate(t, namespace, "t1")
			awaitPolicy(t, namespace, secureDefault())
			patchTemplate(t, namespace, "t1", `{"spec":{"networkPolicyManagement":"Unmanaged"}}`)
			awaitGone(t, "NetworkPolicy", policies(namespace), policyOf)
			patchTemplate(t, namespace, "t1", `{"spec":{"networkPolicyManagement":"Managed"}}`)
			awaitPolicy(t, namespace, secureDefault())
		}},
		row{id: "repaired", rule: "what somebody changes is changed back, and what he deletes is made again", run: func(t *tester) {
			namespace := newNamespace(t)
			createTemplate(t, namespace, "t1")
			policy := awaitPolicy(t, namespace, secureDefault())
			policy.Spec.Ingress = nil
			if _, err := env.kube.NetworkingV1().NetworkPolicies(namespace).Update(t.Context(), policy, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			awaitPolicy(t, namespace, secureDefault())
			if err := env.kube.NetworkingV1().NetworkPolicies(namespace).Delete(t.Context(), policyOf, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			awaitPolicy(t, namespace, secureDefault())
		}},
		row{id: "foreign", rule: "one of that name that somebody else made is not touched, under either management", run: func(t *tester) {
			namespace := newNamespace(t)
			foreign, err := env.kube.NetworkingV1().NetworkPolicies(namespace).Create(t.Context(), &networkingv1.NetworkPolicy{
				ObjectMeta: metav1.ObjectMeta{Name: policyOf},
				Spec:       networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}},
			}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			createTemplate(t, namespace, "t1")
			for _, management := range []string{"Managed", "Unmanaged"} {
				patchTemplate(t, namespace, "t1", fmt.Sprintf(`{"spec":{"networkPolicyManagement":%q}}`, management))
				consistently(t, management, calm, func(ctx context.Context) error {
					got, err := policies(namespace)(ctx, policyOf, metav1.GetOptions{})
					if err == nil && got.ResourceVersion != foreign.ResourceVersion {
						err = fmt.Errorf("it was written: %+v", got)
					}
					return err
				})
			}
		}},
		row{id: "deleted", rule: "with the template goes its policy", run: func(t *tester) {
			namespace := newNamespace(t)
			createTemplate(t, namespace, "t1")
			awaitPolicy(t, namespace, secureDefault())
			if err := templates(namespace).Delete(t.Context(), "t1", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			awaitGone(t, "NetworkPolicy", policies(namespace), policyOf)
		}},
		row{id: "bad-rules", rule: "rules of which no NetworkPolicy could be made are refused", beyond: "a schema cannot see it: there the template is accepted, and fails in the controller", run: func(t *tester) {
			namespace := newNamespace(t)
			for field, rule := range map[string]networkingv1.NetworkPolicyEgressRule{
				"spec.networkPolicy.egress[0].to[0].ipBlock.cidr": {To: []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: "192.0.2.0/33"}}}},
				"spec.networkPolicy.egress[0].to[0]":              {To: []networkingv1.NetworkPolicyPeer{{}}},
			} {
				_, err := templates(namespace).Create(t.Context(), framework.NewTemplate("t1", ofTemplate(func(s *extensionsv1beta1.SandboxTemplateSpec) {
					s.NetworkPolicy = &extensionsv1beta1.NetworkPolicySpec{Egress: []networkingv1.NetworkPolicyEgressRule{rule}}
				})), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				refused(t, field, err, invalid, field)
			}
		}},
	)
}

// TestSecureDefaults has the rules of what Pods of a template are denied unless it says otherwise.
func TestSecureDefaults(t *testing.T) {
	dns := &corev1.PodDNSConfig{Nameservers: []string{"8.8.8.8", "1.1.1.1"}}
	rows := []row{{id: "bare", rule: "none of it is done to a Sandbox that is of no template", run: func(t *tester) {
		namespace := newNamespace(t)
		create(t, namespace, "box", unscheduled)
		if pod := awaitPod(t, namespace, "box"); pod.Spec.DNSPolicy != corev1.DNSClusterFirst || pod.Spec.AutomountServiceAccountToken != nil {
			t.Errorf("dnsPolicy %s, automountServiceAccountToken %v", pod.Spec.DNSPolicy, pod.Spec.AutomountServiceAccountToken)
		}
	}}}
	for id, test := range map[string]struct {
		rule      string
		option    func(*extensionsv1beta1.SandboxTemplateSpec)
		policy    corev1.DNSPolicy
		config    *corev1.PodDNSConfig
		automount bool
	}{
		"nothing-said": {"no token, and no DNS of the cluster", func(*extensionsv1beta1.SandboxTemplateSpec) {}, corev1.DNSNone, dns, false},
		"token": {"a token is there for who asks for it", func(s *extensionsv1beta1.SandboxTemplateSpec) {
			s.PodTemplate.Spec.AutomountServiceAccountToken = new(true)
		}, corev1.DNSNone, dns, true},
		"dns-policy": {"a dnsPolicy is kept", func(s *extensionsv1beta1.SandboxTemplateSpec) { s.PodTemplate.Spec.DNSPolicy = corev1.DNSDefault }, corev1.DNSDefault, nil, false},
		"own-rules": {"with rules of its own, DNS is as in any Pod", func(s *extensionsv1beta1.SandboxTemplateSpec) {
			s.NetworkPolicy = &extensionsv1beta1.NetworkPolicySpec{}
		}, corev1.DNSClusterFirst, nil, false},
		"unmanaged": {"so it is without a policy", func(s *extensionsv1beta1.SandboxTemplateSpec) {
			s.NetworkPolicyManagement = extensionsv1beta1.NetworkPolicyManagementUnmanaged
		}, corev1.DNSClusterFirst, nil, false},
	} {
		rows = append(rows, row{id: id, rule: test.rule + ", in members of a pool and in Sandboxes started cold", run: func(t *tester) {
			namespace := newNamespace(t)
			createTemplate(t, namespace, "t1", ofTemplate(test.option), framework.Blueprint(unscheduled))
			pool := createPool(t, namespace, "p1", 1)
			createPool(t, namespace, "p0", 0)
			awaitPool(t, namespace, "p1", 1, 0)
			if _, err := claims(namespace).Create(t.Context(), framework.NewClaim("c1", "p0"), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{membersOf(t, pool)[0].Name, "c1"} {
				spec := awaitPod(t, namespace, name).Spec
				if diff := cmp.Diff(test.config, spec.DNSConfig, cmpopts.EquateEmpty()); diff != "" || spec.DNSPolicy != test.policy {
					t.Errorf("%s: dnsPolicy %s, want %s; dnsConfig (-want +got):\n%s", name, spec.DNSPolicy, test.policy, diff)
				}
				if got := spec.AutomountServiceAccountToken; got == nil || *got != test.automount {
					t.Errorf("%s: automountServiceAccountToken is %v, want %v", name, got, test.automount)
				}
			}
		}})
	}
	runRows(t, rows...)
}

// TestTemplateFields has the rules of the fields of a template.
func TestTemplateFields(t *testing.T) {
	runRows(t,
		row{id: "defaults", rule: "the network is managed; variables and volumes of claims are disallowed", run: func(t *tester) {
			spec := createTemplate(t, newNamespace(t), "t1").Spec
			if spec.NetworkPolicyManagement != extensionsv1beta1.NetworkPolicyManagementManaged ||
				spec.EnvVarsInjectionPolicy != extensionsv1beta1.EnvVarsInjectionPolicyDisallowed ||
				spec.VolumeClaimTemplatesPolicy != extensionsv1beta1.VolumeClaimTemplatesPolicyDisallowed {
				t.Errorf("got %+v", spec)
			}
		}},
		row{id: "enums", rule: "values that are not of an enum are refused with those that are", run: func(t *tester) {
			namespace := newNamespace(t)
			for field, option := range map[string]func(*extensionsv1beta1.SandboxTemplateSpec){
				"networkPolicyManagement":    func(s *extensionsv1beta1.SandboxTemplateSpec) { s.NetworkPolicyManagement = "managed" },
				"envVarsInjectionPolicy":     func(s *extensionsv1beta1.SandboxTemplateSpec) { s.EnvVarsInjectionPolicy = "Always" },
				"volumeClaimTemplatesPolicy": func(s *extensionsv1beta1.SandboxTemplateSpec) { s.VolumeClaimTemplatesPolicy = "No" },
			} {
				_, err := templates(namespace).Create(t.Context(), framework.NewTemplate("t1", ofTemplate(option)), metav1.CreateOptions{})
				refused(t, field, err, invalid, "spec."+field+": Unsupported value")
			}
		}},
		row{id: "volumes-mutable", rule: "volumeClaimTemplates of a template may change", run: func(t *tester) {
			namespace := newNamespace(t)
			createTemplate(t, namespace, "t1", framework.Blueprint(framework.WithVolume("data")))
			patchTemplate(t, namespace, "t1", `{"spec":{"volumeClaimTemplates":null,"podTemplate":{"spec":{"containers":[{"name":"main","image":"a"}]}}}}`)
		}},
		row{id: "no-status", rule: "there is no status", run: func(t *tester) {
			namespace := newNamespace(t)
			createTemplate(t, namespace, "t1")
			err := env.agents.ExtensionsV1beta1().RESTClient().Get().Namespace(namespace).Resource("sandboxtemplates").Name("t1").SubResource("status").Do(t.Context()).Error()
			refused(t, "status", err, []int32{404})
		}},
		row{id: "no-pod", rule: "a template of which no Pod could be made is refused where it is wrong", beyond: earlier, run: func(t *tester) {
			_, err := templates(newNamespace(t)).Create(t.Context(), framework.NewTemplate("t1", ofTemplate(func(s *extensionsv1beta1.SandboxTemplateSpec) {
				s.PodTemplate.Spec.RestartPolicy = "Sometimes"
			})), metav1.CreateOptions{})
			refused(t, "restartPolicy", err, invalid, "spec.podTemplate.spec.restartPolicy")
		}},
	)
}

// TestAdoption has the rules of what a claim changes in the member that it gets.
func TestAdoption(t *testing.T) {
	runRows(t,
		row{id: "one-event", rule: "the name, the addresses and the readiness of a warm claim come at once", run: func(t *tester) {
			namespace := newNamespace(t)
			fillPool(t, namespace, 1)
			watcher, err := claims(namespace).Watch(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer watcher.Stop()
			createClaim(t, namespace, "c1")
			for {
				claim, ok := next(t, watcher).Object.(*extensionsv1beta1.SandboxClaim)
				if !ok {
					t.Fatal("the watch ended with an error")
				}
				if claim.Status.Sandbox.Name == "" {
					continue
				}
				if err := claimReady(claim); err != nil {
					t.Error(err)
				}
				return
			}
		}},
		row{id: "metadata", rule: "labels of an idle member go, those of a claimed one come, on Sandbox and Pod; the Pod stays the same", run: func(t *tester) {
			namespace := newNamespace(t)
			pool := fillPool(t, namespace, 1, framework.Blueprint(podMetadata(map[string]string{"app": "agent"}, map[string]string{"note": "template"})))
			member := membersOf(t, pool)[0]
			idle := map[string]string{v1beta1.WarmPoolSandboxLabel: member.Labels[v1beta1.WarmPoolSandboxLabel], v1beta1.SandboxTemplateRefHashLabel: hashOfT1, "app": "agent"}
			before := awaitPodIs(t, namespace, member.Name, podHas(idle, map[string]string{v1beta1.SafeToEvictAnnotation: "true", "note": "template"}))
			claim := bind(t, namespace, "c1", func(c *extensionsv1beta1.SandboxClaim) {
				c.Labels = map[string]string{v1beta1.CreatedByLabel: "go-client"}
			},
				withMetadata(map[string]string{"sandbox.users.io/user": "a"}, map[string]string{"request": "b"}))
			sandbox := launched(t, claim, v1beta1.LaunchTypeWarm)
			if sandbox.UID != member.UID {
				t.Errorf("it is %s, not the member %s", sandbox.UID, member.UID)
			}
			for key, want := range map[string]string{
				v1beta1.WarmPoolSandboxLabel: "", v1beta1.SandboxTemplateHashLabel: "", v1beta1.SandboxPodTemplateHashLabel: "",
				v1beta1.ClaimUIDLabel: string(claim.UID), v1beta1.CreatedByLabel: "go-client", v1beta1.SandboxTemplateRefHashLabel: hashOfT1,
			} {
				if got := sandbox.Labels[key]; got != want {
					t.Errorf("label %s is %q, want %q", key, got, want)
				}
			}
			if diff := cmp.Diff(member.Spec.PodTemplate.Spec, sandbox.Spec.PodTemplate.Spec); diff != "" {
				t.Errorf("spec of the Pod (-member +claimed):\n%s", diff)
			}
			if got := claim.Annotations[extensionsv1beta1.SandboxNameAnnotation]; got != sandbox.Name {
				t.Errorf("annotation %s is %q", extensionsv1beta1.SandboxNameAnnotation, got)
			}
			after := awaitPodIs(t, namespace, sandbox.Name, podHas(
				map[string]string{v1beta1.WarmPoolSandboxLabel: "", v1beta1.SandboxTemplateRefHashLabel: hashOfT1, "app": "agent", "sandbox.users.io/user": "a", v1beta1.CreatedByLabel: "go-client"},
				map[string]string{v1beta1.SafeToEvictAnnotation: "", "note": "template", "request": "b"}))
			if after.UID != before.UID {
				t.Errorf("the Pod is %s and was %s", after.UID, before.UID)
			}
			awaitPool(t, namespace, "p1", 1, 1)
		}},
		row{id: "claim-uid-on-pod", rule: "the Pod has the UID of the claim", beyond: "since v1.0.0", run: func(t *tester) {
			namespace := newNamespace(t)
			fillPool(t, namespace, 1)
			claim := bind(t, namespace, "c1")
			awaitPodIs(t, namespace, claim.Status.Sandbox.Name, podHas(map[string]string{v1beta1.ClaimUIDLabel: string(claim.UID)}, nil))
		}},
		row{id: "edited-metadata", rule: "what is added to or removed from additionalPodMetadata later comes to or goes from the Pod", run: func(t *tester) {
			namespace := newNamespace(t)
			fillPool(t, namespace, 1)
			claim := bind(t, namespace, "c1", withMetadata(nil, map[string]string{"first": "a"}))
			patchClaim(t, namespace, "c1", `{"spec":{"additionalPodMetadata":{"annotations":{"first":null,"second":"b"}}}}`)
			awaitPodIs(t, namespace, claim.Status.Sandbox.Name, podHas(nil, map[string]string{"first": "", "second": "b"}))
		}},
		row{id: "suspended", rule: "a claim is not ready while its Sandbox is suspended, and is again after", run: func(t *tester) {
			namespace := newNamespace(t)
			fillPool(t, namespace, 1)
			claim := bind(t, namespace, "c1")
			suspend(t, namespace, claim.Status.Sandbox.Name)
			awaitClaim(t, namespace, "c1", func(c *extensionsv1beta1.SandboxClaim) error {
				if c.Status.Sandbox.Name != claim.Status.Sandbox.Name || len(c.Status.Sandbox.PodIPs) != 0 {
					return fmt.Errorf("status is %+v", c.Status.Sandbox)
				}
				return claimNotReady(v1beta1.SandboxReasonSuspended, "Sandbox is suspended")(c)
			})
			resume(t, namespace, claim.Status.Sandbox.Name)
			awaitClaim(t, namespace, "c1", claimReady)
		}},
		row{id: "expired-by-itself", rule: "a Sandbox that expires by a time of its own is SandboxExpired in the claim", run: func(t *tester) {
			namespace := newNamespace(t)
			fillPool(t, namespace, 1)
			claim := bind(t, namespace, "c1")
			patch(t, namespace, claim.Status.Sandbox.Name, `{"spec":{"shutdownTime":"2020-01-01T00:00:00Z"}}`)
			awaitClaim(t, namespace, "c1", claimNotReady(extensionsv1beta1.ClaimReasonSandboxExpired, "Underlying Sandbox resource has expired independently of the Claim."))
		}},
		row{id: "service", rule: "the FQDN of the Service is that of the Sandbox", beyond: "since v1.0.0", run: func(t *tester) {
			namespace := newNamespace(t)
			fillPool(t, namespace, 1, framework.Blueprint(framework.WithService))
			claim := bind(t, namespace, "c1")
			if want := fmt.Sprintf("%s.%s.svc.cluster.local", claim.Status.Sandbox.Name, namespace); claim.Status.Sandbox.ServiceFQDN != want {
				t.Errorf("got %q, want %q", claim.Status.Sandbox.ServiceFQDN, want)
			}
		}},
	)
}

// TestOwnersOfAnotherVersion has the rules for objects whose owners name an older version of the group.
func TestOwnersOfAnotherVersion(t *testing.T) {
	older := func(owner metav1.OwnerReference) func(*v1beta1.Sandbox) {
		owner.APIVersion = "extensions.agents.x-k8s.io/v1alpha1"
		return func(s *v1beta1.Sandbox) { s.OwnerReferences = []metav1.OwnerReference{owner} }
	}
	runRows(t, row{id: "claim", rule: "a Sandbox is the claim's whatever version of the claim its owner names", run: func(t *tester) {
		namespace := newNamespace(t)
		created := createClaim(t, namespace, "c1")
		create(t, namespace, "c1", older(*metav1.NewControllerRef(created, extensionsv1beta1.SchemeGroupVersion.WithKind("SandboxClaim"))))
		claim := awaitClaim(t, namespace, "c1", claimReady)
		if claim.Status.Sandbox.Name != "c1" {
			t.Errorf("it has %+v", claim.Status.Sandbox)
		}
	}})
}

// TestCascades has the rules of what goes with what.
func TestCascades(t *testing.T) {
	runRows(t,
		row{id: "namespace", rule: "a namespace with a pool, idle members and claims goes", run: func(t *tester) {
			namespace := newNamespace(t)
			fillPool(t, namespace, 2)
			bind(t, namespace, "c1")
			createClaim(t, namespace, "c2")
			if err := env.kube.CoreV1().Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			awaitGone(t, "Namespace", env.kube.CoreV1().Namespaces().Get, namespace)
		}},
		row{id: "pool-foreground", rule: "a pool that is deleted in the foreground is there until its idle members are gone", run: func(t *tester) {
			namespace := newNamespace(t)
			pool := fillPool(t, namespace, 2)
			mustKubectl(t, namespace, "", "delete", "swp", "p1", "--cascade=foreground", "--timeout=50s")
			if members := membersOf(t, pool); len(members) != 0 {
				t.Errorf("%d members are left", len(members))
			}
		}},
		row{id: "pool-orphan", rule: "a pool that leaves its members behind finds them again under the same name", run: func(t *tester) {
			namespace := newNamespace(t)
			before := uids(membersOf(t, fillPool(t, namespace, 2)))
			awaitGarbageCollector(t, namespace)
			if err := pools(namespace).Delete(t.Context(), "p1", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationOrphan)}); err != nil {
				t.Fatal(err)
			}
			awaitGone(t, "SandboxWarmPool", pools(namespace).Get, "p1")
			pool := createPool(t, namespace, "p1", 2)
			awaitPool(t, namespace, "p1", 2, 2)
			stays(t, pool, before)
		}},
		row{id: "claim-foreground", rule: "a claim that is deleted in the foreground is there until its Pod is gone", run: func(t *tester) {
			namespace := newNamespace(t)
			fillPool(t, namespace, 1)
			claim := bind(t, namespace, "c1")
			release := holdPod(t, namespace, claim.Status.Sandbox.Name)
			if err := claims(namespace).Delete(t.Context(), "c1", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)}); err != nil {
				t.Fatal(err)
			}
			awaitPodIs(t, namespace, claim.Status.Sandbox.Name, func(pod *corev1.Pod) error {
				if pod.DeletionTimestamp == nil {
					return errors.New("it is not being deleted")
				}
				return nil
			})
			if _, err := claims(namespace).Get(t.Context(), "c1", metav1.GetOptions{}); err != nil {
				t.Errorf("the claim: %v", err)
			}
			release()
			awaitGone(t, "SandboxClaim", claims(namespace).Get, "c1")
			if _, err := sandboxes(namespace).Get(t.Context(), claim.Status.Sandbox.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("the Sandbox: %v", err)
			}
		}},
	)
}
