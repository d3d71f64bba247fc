// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

// atOnce is why refusals of claims are promised here alone.
const atOnce = "a schema cannot see pool and template: there the claim is accepted, and fails in the controller"

// TestC1PoolAndTemplateComeLater: a claim waits for what it names, and says what that is.
func TestC1PoolAndTemplateComeLater(t *testing.T) {
	runRows(t, row{id: "heals", rule: "WarmPoolNotFound, then TemplateNotFound, then ready, without a change of the claim", run: func(t *tester) {
		namespace := newNamespace(t)
		created := createClaim(t, namespace, "c1")
		awaitClaim(t, namespace, "c1", claimNotReady(extensionsv1beta1.ClaimReasonWarmPoolNotFound, `SandboxWarmPool "p1" not found`))
		createPool(t, namespace, "p1", 1)
		awaitClaim(t, namespace, "c1", claimNotReady(extensionsv1beta1.ClaimReasonTemplateNotFound, `SandboxTemplate "t1" not found`))
		createTemplate(t, namespace, "t1")
		claim := awaitClaim(t, namespace, "c1", claimReady)
		if diff := cmp.Diff(created.Spec, claim.Spec); diff != "" || claim.Generation != created.Generation {
			t.Errorf("generation %d, spec (-created +now):\n%s", claim.Generation, diff)
		}
		sandboxOf(t, claim)
	}})
}

// disallowed are claims that no template allows by default, with the reason that tells so.
func disallowed() map[string]struct {
	option        func(*extensionsv1beta1.SandboxClaim)
	reason, field string
} {
	return map[string]struct {
		option        func(*extensionsv1beta1.SandboxClaim)
		reason, field string
	}{
		"env":    {withVariable("A", "1", ""), extensionsv1beta1.ClaimReasonEnvVarsInjectionRejected, "spec.env"},
		"volume": {withClaimVolume("data", "1Mi"), extensionsv1beta1.ClaimReasonVolumeClaimTemplatesError, "spec.volumeClaimTemplates"},
		"label":  {withMetadata(map[string]string{"team": "a"}, nil), extensionsv1beta1.ClaimReasonInvalidMetadata, "spec.additionalPodMetadata.labels"},
	}
}

// TestC2ClaimThatCanNeverWork: what is hopeless is told from what takes time.
func TestC2ClaimThatCanNeverWork(t *testing.T) {
	var rows []row
	for id, test := range disallowed() {
		rows = append(rows,
			row{id: id, rule: "it is refused, or has the reason " + test.reason + " and no Sandbox", run: func(t *tester) {
				namespace := newNamespace(t)
				fillPool(t, namespace, 1)
				rejected(t, namespace, test.reason, test.option)
			}},
			row{id: id + "-refused", rule: "refused at " + test.field, beyond: atOnce, run: func(t *tester) {
				namespace := newNamespace(t)
				idlePool(t, namespace)
				refused(t, id, claimError(t, namespace, "c1", test.option), invalid, test.field)
			}},
		)
	}
	// The label is refused by the rules of the cluster whether there is a pool or not; the others only the template can judge.
	for _, id := range []string{"env", "volume"} {
		test := disallowed()[id]
		rows = append(rows, row{id: id + "-later", rule: "where the template comes later, the reason comes with it", run: func(t *tester) {
			namespace := newNamespace(t)
			createClaim(t, namespace, "c1", test.option)
			awaitClaim(t, namespace, "c1", claimNotReady(extensionsv1beta1.ClaimReasonWarmPoolNotFound, ""))
			idlePool(t, namespace)
			claim := awaitClaim(t, namespace, "c1", claimNotReady(test.reason, ""))
			if got := ownedBy(t, namespace, claim.UID); len(got) != 0 {
				t.Errorf("it has %d Sandboxes", len(got))
			}
		}})
	}
	rows = append(rows, row{id: "healed-by-template", rule: "and goes when the template allows what it did not",
		beyond: "an edit of a template wakes no claim there", run: func(t *tester) {
			namespace := newNamespace(t)
			createClaim(t, namespace, "c1", withVariable("A", "1", ""))
			awaitClaim(t, namespace, "c1", claimNotReady(extensionsv1beta1.ClaimReasonWarmPoolNotFound, ""))
			idlePool(t, namespace)
			awaitClaim(t, namespace, "c1", claimNotReady(extensionsv1beta1.ClaimReasonEnvVarsInjectionRejected, ""))
			patchTemplate(t, namespace, "t1", `{"spec":{"envVarsInjectionPolicy":"Allowed"}}`)
			awaitClaim(t, namespace, "c1", claimReady)
		}})
	runRows(t, rows...)
}

// TestC3OneClaimOneSandbox: in a burst each claim gets one Sandbox, and each Sandbox is one claim's.
func TestC3OneClaimOneSandbox(t *testing.T) {
	runRows(t,
		row{id: "burst", rule: "60 claims at once on a pool of 20: each is ready with a Sandbox of its own, and nothing is left over", run: func(t *tester) {
			const claimed, warm = 60, 20
			namespace := newNamespace(t)
			pool := fillPool(t, namespace, warm)
			seen := history(t, namespace)
			var creating sync.WaitGroup
			for i := range claimed {
				creating.Go(func() {
					if _, err := claims(namespace).Create(t.Context(), framework.NewClaim(fmt.Sprintf("c%d", i), "p1"), metav1.CreateOptions{}); err != nil {
						t.Errorf("claim %d: %v", i, err)
					}
				})
			}
			creating.Wait()
			owners := map[types.UID]string{}
			for i := range claimed {
				claim := awaitClaim(t, namespace, fmt.Sprintf("c%d", i), claimReady)
				sandbox := sandboxOf(t, claim)
				if other, taken := owners[sandbox.UID]; taken {
					t.Errorf("Sandbox %s is that of claims %s and %s", sandbox.Name, other, claim.Name)
				}
				owners[sandbox.UID] = claim.Name
				if all := ownedBy(t, namespace, claim.UID); len(all) != 1 {
					t.Errorf("claim %s has %d Sandboxes", claim.Name, len(all))
				}
			}
			awaitPool(t, namespace, "p1", warm, warm)
			checkOneOwner(t, seen())
			list, err := sandboxes(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: v1beta1.LaunchTypeLabel})
			if err != nil || len(list.Items) != claimed+warm || len(membersOf(t, pool)) != warm {
				t.Errorf("%v, there are %d Sandboxes and %d members, want %d and %d", err, len(list.Items), len(membersOf(t, pool)), claimed+warm, warm)
			}
		}},
		row{id: "last-one", rule: "two claims, one member: one gets it, and for the other one is made", run: func(t *tester) {
			namespace := newNamespace(t)
			fillPool(t, namespace, 1)
			patchTemplate(t, namespace, "t1", `{"spec":{"podTemplate":{"spec":{"nodeSelector":{"no":"such"}}}}}`)
			var creating sync.WaitGroup
			for _, name := range []string{"c1", "c2"} {
				creating.Go(func() {
					if _, err := claims(namespace).Create(t.Context(), framework.NewClaim(name, "p1"), metav1.CreateOptions{}); err != nil {
						t.Errorf("claim %s: %v", name, err)
					}
				})
			}
			creating.Wait()
			var launches []string
			for _, name := range []string{"c1", "c2"} {
				claim := awaitClaim(t, namespace, name, func(c *extensionsv1beta1.SandboxClaim) error {
					if c.Status.Sandbox.Name == "" {
						return fmt.Errorf("status is %+v", c.Status)
					}
					return nil
				})
				launches = append(launches, sandboxOf(t, claim).Labels[v1beta1.LaunchTypeLabel])
			}
			slices.Sort(launches)
			if diff := cmp.Diff([]string{v1beta1.LaunchTypeCold, v1beta1.LaunchTypeWarm}, launches); diff != "" {
				t.Errorf("launches (-want +got):\n%s", diff)
			}
		}},
	)
}

// checkOneOwner fails the row if a Sandbox was ever that of two claims, or of a pool after it was a claim's.
func checkOneOwner(t *tester, events []watch.Event) {
	t.Helper()
	claimOf := map[types.UID]types.UID{}
	for _, event := range events {
		sandbox, ok := event.Object.(*v1beta1.Sandbox)
		if !ok {
			continue
		}
		before := claimOf[sandbox.UID]
		for _, owner := range sandbox.OwnerReferences {
			if before != "" && owner.UID != before {
				t.Errorf("Sandbox %s was that of claim %s and then of %s %s", sandbox.Name, before, owner.Kind, owner.Name)
			}
			if owner.Kind == "SandboxClaim" {
				claimOf[sandbox.UID] = owner.UID
			}
		}
	}
}

// TestC4VariableThatThePolicyForbids: a template that says nothing allows no variables, and no member is spent on finding out.
func TestC4VariableThatThePolicyForbids(t *testing.T) {
	const manifest = `apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxClaim
metadata: {name: c1}
spec:
  warmPoolRef: {name: p1}
  env: [{name: API_TOKEN, value: secret}]
`
	runRows(t,
		row{id: "pool-untouched", rule: "the pool keeps its members", run: func(t *tester) {
			namespace := newNamespace(t)
			pool := fillPool(t, namespace, 1)
			before := uids(membersOf(t, pool))
			rejected(t, namespace, extensionsv1beta1.ClaimReasonEnvVarsInjectionRejected, withVariable("A", "1", ""))
			stays(t, pool, before)
		}},
		row{id: "kubectl", rule: "kubectl says which field is refused, and why", beyond: atOnce, run: func(t *tester) {
			namespace := newNamespace(t)
			idlePool(t, namespace)
			got := kubectl(t, namespace, manifest, "apply", "-f", "-")
			for _, want := range []string{`SandboxClaim "c1" is invalid`, "spec.env", "the template does not allow it"} {
				if !strings.Contains(got.Stderr, want) {
					t.Errorf("%q is not in %+v", want, got)
				}
			}
			if _, err := claims(namespace).Get(t.Context(), "c1", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("the claim: %v", err)
			}
		}},
	)
}

// variablesOf returns the variables of a container of the Pod of a claim that was started cold.
func variablesOf(t *tester, claim *extensionsv1beta1.SandboxClaim, container string) []corev1.EnvVar {
	t.Helper()
	spec := launched(t, claim, v1beta1.LaunchTypeCold).Spec.PodTemplate.Spec
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		if c.Name == container {
			return c.Env
		}
	}
	t.Fatalf("there is no container %s", container)
	return nil
}

// withPolicies returns an option of framework.NewTemplate.
func withPolicies(env extensionsv1beta1.EnvVarsInjectionPolicy, volumes extensionsv1beta1.VolumeClaimTemplatesPolicy) func(*extensionsv1beta1.SandboxTemplate) {
	return ofTemplate(func(s *extensionsv1beta1.SandboxTemplateSpec) {
		s.EnvVarsInjectionPolicy, s.VolumeClaimTemplatesPolicy = env, volumes
	})
}

// withToken is an option of framework.NewTemplate: the variable TOKEN comes from a Secret.
func withToken(template *extensionsv1beta1.SandboxTemplate) {
	template.Spec.PodTemplate.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "TOKEN", ValueFrom: &corev1.EnvVarSource{
		SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}, Key: "k", Optional: new(true)},
	}}}
}

// TestC5VariableThatTheTemplateSets: who wins is a matter of the policy, and nothing is merged.
func TestC5VariableThatTheTemplateSets(t *testing.T) {
	runRows(t,
		row{id: "allowed", rule: "Allowed: the template's cannot be replaced", run: func(t *tester) {
			namespace := newNamespace(t)
			idlePool(t, namespace, withToken, withPolicies(extensionsv1beta1.EnvVarsInjectionPolicyAllowed, ""))
			rejected(t, namespace, extensionsv1beta1.ClaimReasonReconcilerError, withVariable("TOKEN", "x", ""))
		}},
		row{id: "allowed-refused", rule: "and the claim is refused where it tries to", beyond: atOnce, run: func(t *tester) {
			namespace := newNamespace(t)
			idlePool(t, namespace, withToken, withPolicies(extensionsv1beta1.EnvVarsInjectionPolicyAllowed, ""))
			refused(t, "TOKEN", claimError(t, namespace, "c1", withVariable("A", "1", ""), withVariable("TOKEN", "x", "")), invalid, "spec.env[1].name", "TOKEN")
		}},
		row{id: "added", rule: "Allowed: a new one is added, for which a Sandbox is started cold", run: func(t *tester) {
			namespace := newNamespace(t)
			fillPool(t, namespace, 1, withToken, withPolicies(extensionsv1beta1.EnvVarsInjectionPolicyAllowed, ""))
			got := variablesOf(t, bind(t, namespace, "c1", withVariable("A", "1", "")), "main")
			if len(got) != 2 || got[0].Name != "TOKEN" || got[0].ValueFrom == nil || got[1] != (corev1.EnvVar{Name: "A", Value: "1"}) {
				t.Errorf("got %+v", got)
			}
		}},
		row{id: "overrides", rule: "Overrides: the template's is replaced in its place, its source too", run: func(t *tester) {
			namespace := newNamespace(t)
			idlePool(t, namespace, withToken, withPolicies(extensionsv1beta1.EnvVarsInjectionPolicyOverrides, ""))
			got := variablesOf(t, bind(t, namespace, "c1", withVariable("B", "2", ""), withVariable("TOKEN", "x", "")), "main")
			if diff := cmp.Diff([]corev1.EnvVar{{Name: "TOKEN", Value: "x"}, {Name: "B", Value: "2"}}, got); diff != "" {
				t.Errorf("variables (-want +got):\n%s", diff)
			}
		}},
	)
}

// TestC6VariableForAContainer: a variable goes where it was meant to, or nowhere.
func TestC6VariableForAContainer(t *testing.T) {
	three := func(template *extensionsv1beta1.SandboxTemplate) {
		template.Spec.EnvVarsInjectionPolicy = extensionsv1beta1.EnvVarsInjectionPolicyAllowed
		spec := &template.Spec.PodTemplate.Spec
		spec.InitContainers = []corev1.Container{{Name: "init-x", Image: framework.Image}}
		spec.Containers = append(spec.Containers, corev1.Container{Name: "second", Image: framework.Image})
	}
	runRows(t,
		row{id: "named", rule: "an init container, another container, and the first if none is named", run: func(t *tester) {
			namespace := newNamespace(t)
			idlePool(t, namespace, three)
			claim := bind(t, namespace, "c1", withVariable("A", "init", "init-x"), withVariable("A", "first", ""), withVariable("A", "second", "second"))
			for container, want := range map[string]string{"init-x": "init", "main": "first", "second": "second"} {
				if diff := cmp.Diff([]corev1.EnvVar{{Name: "A", Value: want}}, variablesOf(t, claim, container)); diff != "" {
					t.Errorf("variables of %s (-want +got):\n%s", container, diff)
				}
			}
		}},
		row{id: "unknown", rule: "a container that is not there is an error", run: func(t *tester) {
			namespace := newNamespace(t)
			idlePool(t, namespace, three)
			rejected(t, namespace, extensionsv1beta1.ClaimReasonReconcilerError, withVariable("A", "1", "nope"))
		}},
		row{id: "twice", rule: "so is a variable twice for one container", run: func(t *tester) {
			namespace := newNamespace(t)
			idlePool(t, namespace, three)
			rejected(t, namespace, extensionsv1beta1.ClaimReasonReconcilerError, withVariable("A", "1", "second"), withVariable("A", "2", "second"))
		}},
		row{id: "refused", rule: "both are refused where they stand", beyond: atOnce, run: func(t *tester) {
			namespace := newNamespace(t)
			idlePool(t, namespace, three)
			refused(t, "unknown", claimError(t, namespace, "c1", withVariable("A", "1", "nope")), invalid, "spec.env[0].containerName", "nope")
			refused(t, "twice", claimError(t, namespace, "c1", withVariable("A", "1", "second"), withVariable("A", "2", "second")), invalid, "spec.env[1]")
		}},
	)
}

// TestC7LabelOfAForeignDomain: labels of claims need a domain that the cluster allows them.
func TestC7LabelOfAForeignDomain(t *testing.T) {
	var rows []row
	for id, key := range map[string]string{"no-domain": "team", "foreign-domain": "evil.io/a", "similar-domain": "evilsandbox.users.io/a"} {
		rows = append(rows,
			row{id: id, rule: "the label is never put on the Pod", run: func(t *tester) {
				namespace := newNamespace(t)
				fillPool(t, namespace, 1)
				rejected(t, namespace, extensionsv1beta1.ClaimReasonInvalidMetadata, withMetadata(map[string]string{key: "b"}, nil))
			}},
			row{id: id + "-refused", rule: "refused with the domains that are allowed", beyond: atOnce, run: func(t *tester) {
				namespace := newNamespace(t)
				idlePool(t, namespace)
				refused(t, key, claimError(t, namespace, "c1", withMetadata(map[string]string{key: "b"}, nil)), invalid,
					"spec.additionalPodMetadata.labels", key, "sandbox.users.io")
			}},
		)
	}
	rows = append(rows, row{id: "allowed", rule: "sandbox.users.io and what is below it is allowed, and gets to the Pod of a warm Sandbox", run: func(t *tester) {
		namespace := newNamespace(t)
		fillPool(t, namespace, 1)
		labels := map[string]string{"sandbox.users.io/a": "b", "sub.sandbox.users.io/c": "d"}
		claim := bind(t, namespace, "c1", withMetadata(labels, map[string]string{"note": "any"}))
		launched(t, claim, v1beta1.LaunchTypeWarm)
		awaitPodIs(t, namespace, claim.Status.Sandbox.Name, podHas(labels, map[string]string{"note": "any"}))
	}})
	runRows(t, rows...)
}

// TestC8MetadataOfOthers: a claim changes nothing that the template or the system says about the Pod.
func TestC8MetadataOfOthers(t *testing.T) {
	templated := framework.Blueprint(podMetadata(map[string]string{"sandbox.users.io/tier": "gold"}, map[string]string{"note": "template"}))
	var rows []row
	for id, test := range map[string]struct {
		labels, annotations map[string]string
		reason, field       string
	}{
		"template-label":      {map[string]string{"sandbox.users.io/tier": "free"}, nil, extensionsv1beta1.ClaimReasonReconcilerError, "labels"},
		"template-annotation": {nil, map[string]string{"note": "claim"}, extensionsv1beta1.ClaimReasonReconcilerError, "annotations"},
		"system-label":        {map[string]string{"agents.x-k8s.io/claim-uid": "forged"}, nil, extensionsv1beta1.ClaimReasonInvalidMetadata, "labels"},
		"system-annotation":   {nil, map[string]string{"agents.x-k8s.io/pod-name": "forged"}, extensionsv1beta1.ClaimReasonInvalidMetadata, "annotations"},
		"kubernetes":          {nil, map[string]string{"container.apparmor.security.beta.kubernetes.io/main": "unconfined"}, extensionsv1beta1.ClaimReasonInvalidMetadata, "annotations"},
		"router":              {map[string]string{"app": "sandbox-router"}, nil, extensionsv1beta1.ClaimReasonInvalidMetadata, "labels"},
		"value-too-long":      {map[string]string{"sandbox.users.io/a": strings.Repeat("v", 64)}, nil, extensionsv1beta1.ClaimReasonInvalidMetadata, "labels"},
		"bad-value":           {map[string]string{"sandbox.users.io/a": "not a value"}, nil, extensionsv1beta1.ClaimReasonInvalidMetadata, "labels"},
		"bad-key":             {map[string]string{"sandbox.users.io/not a key": "a"}, nil, extensionsv1beta1.ClaimReasonInvalidMetadata, "labels"},
	} {
		rows = append(rows,
			row{id: id, rule: "it is never put on the Pod", run: func(t *tester) {
				namespace := newNamespace(t)
				idlePool(t, namespace, templated)
				rejected(t, namespace, test.reason, withMetadata(test.labels, test.annotations))
			}},
			row{id: id + "-refused", rule: "refused at " + test.field, beyond: atOnce, run: func(t *tester) {
				namespace := newNamespace(t)
				idlePool(t, namespace, templated)
				refused(t, id, claimError(t, namespace, "c1", withMetadata(test.labels, test.annotations)), invalid, "spec.additionalPodMetadata."+test.field)
			}},
		)
	}
	rows = append(rows, row{id: "same-values", rule: "what the template says, and whether the Pod may be evicted, may be said", run: func(t *tester) {
		namespace := newNamespace(t)
		fillPool(t, namespace, 1, templated)
		claim := bind(t, namespace, "c1", withMetadata(map[string]string{"sandbox.users.io/tier": "gold"}, map[string]string{"note": "template", v1beta1.SafeToEvictAnnotation: "false"}))
		awaitPodIs(t, namespace, claim.Status.Sandbox.Name, podHas(map[string]string{"sandbox.users.io/tier": "gold"}, map[string]string{"note": "template", v1beta1.SafeToEvictAnnotation: "false"}))
	}})
	runRows(t, rows...)
}

// TestC9VolumesOfAClaim: a claim's volumes are subject to the policy, start it cold, and are its Sandbox's.
func TestC9VolumesOfAClaim(t *testing.T) {
	data := framework.Blueprint(framework.WithVolume("data"))
	sizes := func(sandbox *v1beta1.Sandbox) []string {
		var got []string
		for _, volume := range sandbox.Spec.VolumeClaimTemplates {
			got = append(got, volume.Metadata.Name+" "+volume.Spec.Resources.Requests.Storage().String())
		}
		return got
	}
	runRows(t,
		row{id: "allowed", rule: "Allowed: another volume is added after the template's", run: func(t *tester) {
			namespace := newNamespace(t)
			fillPool(t, namespace, 1, data, withPolicies("", extensionsv1beta1.VolumeClaimTemplatesPolicyAllowed))
			claim := bind(t, namespace, "c1", withClaimVolume("more", "5Mi"))
			sandbox := launched(t, claim, v1beta1.LaunchTypeCold)
			if diff := cmp.Diff([]string{"data 16Mi", "more 5Mi"}, sizes(sandbox)); diff != "" {
				t.Errorf("volumes (-want +got):\n%s", diff)
			}
			for _, name := range []string{"data-c1", "more-c1"} {
				if volume := claimOfVolume(t, namespace, name); volume != nil {
					controlled(t, volume, sandbox)
				}
			}
		}},
		row{id: "allowed-override", rule: "Allowed: the template's cannot be replaced", run: func(t *tester) {
			namespace := newNamespace(t)
			idlePool(t, namespace, data, withPolicies("", extensionsv1beta1.VolumeClaimTemplatesPolicyAllowed))
			rejected(t, namespace, extensionsv1beta1.ClaimReasonVolumeClaimTemplatesError, withClaimVolume("data", "5Mi"))
		}},
		row{id: "overrides", rule: "Overrides: the template's is replaced in its place", run: func(t *tester) {
			namespace := newNamespace(t)
			idlePool(t, namespace, data, withPolicies("", extensionsv1beta1.VolumeClaimTemplatesPolicyOverrides))
			claim := bind(t, namespace, "c1", withClaimVolume("more", "5Mi"), withClaimVolume("data", "32Mi"))
			if diff := cmp.Diff([]string{"data 32Mi", "more 5Mi"}, sizes(launched(t, claim, v1beta1.LaunchTypeCold))); diff != "" {
				t.Errorf("volumes (-want +got):\n%s", diff)
			}
			if volume := claimOfVolume(t, namespace, "data-c1"); volume != nil && volume.Spec.Resources.Requests.Storage().String() != "32Mi" {
				t.Errorf("got %+v", volume.Spec)
			}
		}},
		row{id: "names", rule: "a volume without a name, and two of one, are errors", run: func(t *tester) {
			namespace := newNamespace(t)
			idlePool(t, namespace, withPolicies("", extensionsv1beta1.VolumeClaimTemplatesPolicyOverrides))
			rejected(t, namespace, extensionsv1beta1.ClaimReasonVolumeClaimTemplatesError, withClaimVolume("", "1Mi"))
			rejected(t, namespace, extensionsv1beta1.ClaimReasonVolumeClaimTemplatesError, withClaimVolume("a", "1Mi"), withClaimVolume("a", "1Mi"))
		}},
		row{id: "refused", rule: "each of these is refused where it stands", beyond: atOnce, run: func(t *tester) {
			namespace := newNamespace(t)
			idlePool(t, namespace, data, withPolicies("", extensionsv1beta1.VolumeClaimTemplatesPolicyAllowed))
			const name = "spec.volumeClaimTemplates[%d].metadata.name"
			refused(t, "template's", claimError(t, namespace, "c1", withClaimVolume("more", "5Mi"), withClaimVolume("data", "5Mi")), invalid, fmt.Sprintf(name, 1), "data")
			refused(t, "nameless", claimError(t, namespace, "c1", withClaimVolume("", "1Mi")), invalid, fmt.Sprintf(name, 0)+": Required value")
			refused(t, "twice", claimError(t, namespace, "c1", withClaimVolume("a", "1Mi"), withClaimVolume("a", "1Mi")), invalid, fmt.Sprintf(name, 1)+": Duplicate value")
		}},
	)
}

// claimOfVolume returns a PersistentVolumeClaim, and fails the row if there is none.
func claimOfVolume(t *tester, namespace, name string) *corev1.PersistentVolumeClaim {
	t.Helper()
	found := claim(t, namespace, name)
	if found == nil {
		t.Errorf("there is no PersistentVolumeClaim %s", name)
	}
	return found
}

// TestC10WhatGoesWithAClaim: deletion takes everything with it; so does expiry, but for a claim that is to be retained.
func TestC10WhatGoesWithAClaim(t *testing.T) {
	expired := func(policy extensionsv1beta1.ClaimShutdownPolicy) string {
		return fmt.Sprintf(`{"spec":{"lifecycle":{"shutdownTime":%q,"shutdownPolicy":%q}}}`, time.Now().Add(-time.Second).UTC().Format(time.RFC3339), policy)
	}
	// boundWithVolume returns a claim whose Sandbox has a volume, and what waits until Sandbox, Pod and volume are gone.
	boundWithVolume := func(t *tester, namespace string) (*extensionsv1beta1.SandboxClaim, func()) {
		t.Helper()
		fillPool(t, namespace, 1, framework.Blueprint(framework.WithVolume("data")))
		claim := bind(t, namespace, "c1")
		name := claim.Status.Sandbox.Name
		claimOfVolume(t, namespace, "data-"+name)
		return claim, func() {
			t.Helper()
			awaitGone(t, "Sandbox", sandboxes(namespace).Get, name)
			awaitGone(t, "Pod", env.kube.CoreV1().Pods(namespace).Get, name)
			awaitGone(t, "PersistentVolumeClaim", env.kube.CoreV1().PersistentVolumeClaims(namespace).Get, "data-"+name)
		}
	}
	runRows(t,
		row{id: "deleted", rule: "with a claim that is deleted go its Sandbox, Pod and volumes", run: func(t *tester) {
			namespace := newNamespace(t)
			_, gone := boundWithVolume(t, namespace)
			if err := claims(namespace).Delete(t.Context(), "c1", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			awaitGone(t, "SandboxClaim", claims(namespace).Get, "c1")
			gone()
		}},
		row{id: "expired-delete", rule: "Delete: so it is when it expires", run: func(t *tester) {
			namespace := newNamespace(t)
			_, gone := boundWithVolume(t, namespace)
			patchClaim(t, namespace, "c1", expired(extensionsv1beta1.ClaimShutdownPolicyDelete))
			awaitGone(t, "SandboxClaim", claims(namespace).Get, "c1")
			gone()
		}},
		row{id: "expired-foreground", rule: "DeleteForeground: the claim is there, on its way out, until the Pod is gone", run: func(t *tester) {
			namespace := newNamespace(t)
			claim, gone := boundWithVolume(t, namespace)
			release := holdPod(t, namespace, claim.Status.Sandbox.Name)
			patchClaim(t, namespace, "c1", expired(extensionsv1beta1.ClaimShutdownPolicyDeleteForeground))
			awaitPodIs(t, namespace, claim.Status.Sandbox.Name, func(pod *corev1.Pod) error {
				if pod.DeletionTimestamp == nil {
					return errors.New("it is not being deleted")
				}
				return nil
			})
			awaitClaim(t, namespace, "c1", func(c *extensionsv1beta1.SandboxClaim) error {
				if c.DeletionTimestamp == nil || !slices.Contains(c.Finalizers, metav1.FinalizerDeleteDependents) {
					return fmt.Errorf("deleted at %v, finalizers %v", c.DeletionTimestamp, c.Finalizers)
				}
				return nil
			})
			release()
			awaitGone(t, "SandboxClaim", claims(namespace).Get, "c1")
			gone()
		}},
		row{id: "expired-retain", rule: "Retain: the claim stays, ClaimExpired and without a Sandbox, and the volumes go all the same", run: func(t *tester) {
			namespace := newNamespace(t)
			_, gone := boundWithVolume(t, namespace)
			patchClaim(t, namespace, "c1", expired(extensionsv1beta1.ClaimShutdownPolicyRetain))
			gone()
			awaitClaim(t, namespace, "c1", func(c *extensionsv1beta1.SandboxClaim) error {
				if s := c.Status.Sandbox; s.Name != "" || len(s.PodIPs) != 0 {
					return fmt.Errorf("status is %+v", s)
				}
				return claimNotReady(extensionsv1beta1.ClaimReasonExpired, "Claim expired")(c)
			})
		}},
		row{id: "extended", rule: "Retain: with a later time the claim gets another Sandbox", run: func(t *tester) {
			namespace := newNamespace(t)
			before, gone := boundWithVolume(t, namespace)
			patchClaim(t, namespace, "c1", expired(extensionsv1beta1.ClaimShutdownPolicyRetain))
			gone()
			awaitClaim(t, namespace, "c1", func(c *extensionsv1beta1.SandboxClaim) error {
				if c.Status.Sandbox.Name != "" {
					return fmt.Errorf("status is %+v", c.Status.Sandbox)
				}
				return nil
			})
			patchClaim(t, namespace, "c1", `{"spec":{"lifecycle":null}}`)
			if after := awaitClaim(t, namespace, "c1", claimReady); after.Status.Sandbox.Name == before.Status.Sandbox.Name {
				t.Errorf("it has %s again", after.Status.Sandbox.Name)
			}
		}},
		row{id: "default-policy", rule: "shutdownPolicy is Retain if there is a lifecycle without one, and no lifecycle is made up", run: func(t *tester) {
			namespace := newNamespace(t)
			idlePool(t, namespace)
			with := createClaim(t, namespace, "with", withLifecycle(extensionsv1beta1.Lifecycle{TTLSecondsAfterFinished: new(int32(60))}))
			without := createClaim(t, namespace, "without")
			if with.Spec.Lifecycle.ShutdownPolicy != extensionsv1beta1.ClaimShutdownPolicyRetain || without.Spec.Lifecycle != nil {
				t.Errorf("with %+v, without %+v", with.Spec.Lifecycle, without.Spec.Lifecycle)
			}
		}},
	)
}

// TestC11SandboxDisappears: a claim does not pass off an empty Sandbox as the one that is gone.
func TestC11SandboxDisappears(t *testing.T) {
	runRows(t, row{id: "missing", rule: "the claim says SandboxMissing, names no Sandbox, and gets no other", beyond: "another one takes its place there, without a word", run: func(t *tester) {
		namespace := newNamespace(t)
		pool := fillPool(t, namespace, 2)
		claim := bind(t, namespace, "c1")
		awaitPool(t, namespace, "p1", 2, 2)
		before := uids(membersOf(t, pool))
		if err := sandboxes(namespace).Delete(t.Context(), claim.Status.Sandbox.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		missing := func(c *extensionsv1beta1.SandboxClaim) error {
			if s := c.Status.Sandbox; s.Name != "" || len(s.PodIPs) != 0 || s.ServiceFQDN != "" {
				return fmt.Errorf("status is %+v", s)
			}
			return claimNotReady(extensionsv1beta1.ClaimReasonSandboxMissing, "Sandbox does not exist")(c)
		}
		awaitClaim(t, namespace, "c1", missing)
		stays(t, pool, before)
		if err := missing(awaitClaim(t, namespace, "c1", func(*extensionsv1beta1.SandboxClaim) error { return nil })); err != nil {
			t.Error(err)
		}
		if got := ownedBy(t, namespace, claim.UID); len(got) != 0 {
			t.Errorf("it has %d Sandboxes", len(got))
		}
	}})
}

// TestC12NameOfAnExistingSandbox: a Sandbox that somebody made is not the claim's because it has its name.
func TestC12NameOfAnExistingSandbox(t *testing.T) {
	runRows(t, row{id: "untouched", rule: "a cold claim says that the name is taken, the Sandbox stays as it is, and when it is gone the claim goes on", run: func(t *tester) {
		namespace := newNamespace(t)
		idlePool(t, namespace)
		create(t, namespace, "c1")
		await(t, namespace, "c1", ready())
		before := settle(t, namespace, "c1")
		createClaim(t, namespace, "c1")
		awaitClaim(t, namespace, "c1", claimNotReady(extensionsv1beta1.ClaimReasonReconcilerError, `"c1"`))
		if diff := cmp.Diff(before, settle(t, namespace, "c1")); diff != "" {
			t.Errorf("the Sandbox (-before +after):\n%s", diff)
		}
		if err := sandboxes(namespace).Delete(t.Context(), "c1", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		launched(t, awaitClaim(t, namespace, "c1", claimReady), v1beta1.LaunchTypeCold)
	}})
}

// TestC13RepointedClaim: a claim that has a Sandbox stays with its pool.
func TestC13RepointedClaim(t *testing.T) {
	const patch = `{"spec":{"warmPoolRef":{"name":"p2"}}}`
	runRows(t,
		row{id: "bound", rule: "refused, and nothing changes", beyond: "there it is accepted, and the Sandbox gets metadata of another template", run: func(t *tester) {
			namespace := newNamespace(t)
			fillPool(t, namespace, 1)
			createPool(t, namespace, "p2", 0)
			before := bind(t, namespace, "c1")
			_, err := claims(namespace).Patch(t.Context(), "c1", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			refused(t, "patch", err, invalid, "spec.warmPoolRef", "immutable")
			if after := awaitClaim(t, namespace, "c1", claimReady); after.Status.Sandbox.Name != before.Status.Sandbox.Name || after.Generation != before.Generation {
				t.Errorf("before %+v, after %+v", before, after)
			}
		}},
		row{id: "waiting", rule: "one that waits may turn to another pool", run: func(t *tester) {
			namespace := newNamespace(t)
			createTemplate(t, namespace, "t1")
			createPool(t, namespace, "p2", 0)
			createClaim(t, namespace, "c1")
			awaitClaim(t, namespace, "c1", claimNotReady(extensionsv1beta1.ClaimReasonWarmPoolNotFound, `"p1"`))
			patchClaim(t, namespace, "c1", patch)
			awaitClaim(t, namespace, "c1", claimReady)
		}},
	)
}

// TestC14RetryAfterALostResponse: the second request of one claim changes nothing, and finds what the first made.
func TestC14RetryAfterALostResponse(t *testing.T) {
	runRows(t,
		row{id: "same-name", rule: "AlreadyExists, with the name of the claim, and one Sandbox", run: func(t *tester) {
			namespace := newNamespace(t)
			pool := fillPool(t, namespace, 2)
			first := createClaim(t, namespace, "c1")
			for range 3 {
				_, err := claims(namespace).Create(t.Context(), framework.NewClaim("c1", "p1"), metav1.CreateOptions{})
				if !apierrors.IsAlreadyExists(err) || !strings.Contains(err.Error(), `"c1"`) {
					t.Errorf("got %v", err)
				}
			}
			claim := awaitClaim(t, namespace, "c1", claimReady)
			if claim.UID != first.UID || len(ownedBy(t, namespace, claim.UID)) != 1 {
				t.Errorf("first %s, now %s, with %d Sandboxes", first.UID, claim.UID, len(ownedBy(t, namespace, claim.UID)))
			}
			awaitPool(t, namespace, "p1", 2, 2)
			list, err := sandboxes(namespace).List(t.Context(), metav1.ListOptions{})
			if err != nil || len(list.Items) != 3 || len(membersOf(t, pool)) != 2 {
				t.Errorf("%v, %d Sandboxes, %d members", err, len(list.Items), len(membersOf(t, pool)))
			}
		}},
		row{id: "at-once", rule: "of ten requests at once one succeeds", run: func(t *tester) {
			namespace := newNamespace(t)
			fillPool(t, namespace, 3)
			var mu sync.Mutex
			var creating sync.WaitGroup
			codes := map[string]int{}
			for range 10 {
				creating.Go(func() {
					_, err := claims(namespace).Create(t.Context(), framework.NewClaim("c1", "p1"), metav1.CreateOptions{})
					mu.Lock()
					defer mu.Unlock()
					codes[string(apierrors.ReasonForError(err))]++
				})
			}
			creating.Wait()
			if diff := cmp.Diff(map[string]int{"": 1, string(metav1.StatusReasonAlreadyExists): 9}, codes); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
			if claim := awaitClaim(t, namespace, "c1", claimReady); len(ownedBy(t, namespace, claim.UID)) != 1 {
				t.Errorf("it has %d Sandboxes", len(ownedBy(t, namespace, claim.UID)))
			}
			awaitPool(t, namespace, "p1", 3, 3)
		}},
	)
}

// TestC15TTLAfterFinished: a claim that is finished is swept when it is due, and not before.
func TestC15TTLAfterFinished(t *testing.T) {
	// bound returns a claim with a lifetime after its end, and whose Pod's status is what the row writes.
	bound := func(t *tester, namespace string, ttl int32) *extensionsv1beta1.SandboxClaim {
		t.Helper()
		members := unfilledPool(t, namespace, 1)
		patchPod(t, namespace, members[0].Name, podReady, "status")
		awaitPool(t, namespace, "p1", 1, 1)
		return bind(t, namespace, "c1", withLifecycle(extensionsv1beta1.Lifecycle{
			TTLSecondsAfterFinished: &ttl, ShutdownPolicy: extensionsv1beta1.ClaimShutdownPolicyDelete,
		}))
	}
	runRows(t,
		row{id: "at-once", rule: "with 0 the claim goes as soon as the Pod has ended", run: func(t *tester) {
			namespace := newNamespace(t)
			claim := bound(t, namespace, 0)
			patchPod(t, namespace, claim.Status.Sandbox.Name, podSucceeded, "status")
			awaitGone(t, "SandboxClaim", claims(namespace).Get, "c1")
			awaitGone(t, "Sandbox", sandboxes(namespace).Get, claim.Status.Sandbox.Name)
		}},
		row{id: "later", rule: "with 4 it is there, Finished, for four seconds from then", run: func(t *tester) {
			namespace := newNamespace(t)
			claim := bound(t, namespace, 4)
			patchPod(t, namespace, claim.Status.Sandbox.Name, podFailed, "status")
			finished := awaitClaim(t, namespace, "c1", claimCondition(extensionsv1beta1.ClaimConditionFinished, metav1.ConditionTrue, v1beta1.SandboxReasonPodFailed, ""))
			due := meta.FindStatusCondition(finished.Status.Conditions, extensionsv1beta1.ClaimConditionFinished).LastTransitionTime.Add(4 * time.Second)
			awaitGone(t, "SandboxClaim", claims(namespace).Get, "c1")
			if now := time.Now(); now.Before(due) {
				t.Errorf("it went at %v and was due at %v", now, due)
			}
		}},
		row{id: "not-finished", rule: "one that merely stops being ready stays", run: func(t *tester) {
			namespace := newNamespace(t)
			claim := bound(t, namespace, 0)
			patchPod(t, namespace, claim.Status.Sandbox.Name, podNotReady, "status")
			awaitClaim(t, namespace, "c1", claimNotReady(v1beta1.SandboxReasonDependenciesNotReady, ""))
			consistently(t, "claim", calm, func(ctx context.Context) error {
				claim, err := claims(namespace).Get(ctx, "c1", metav1.GetOptions{})
				if err == nil && claim.DeletionTimestamp != nil {
					err = errors.New("it is being deleted")
				}
				return err
			})
		}},
	)
}
