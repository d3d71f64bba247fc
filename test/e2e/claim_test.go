// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

// newPool makes a template and a pool of the same name, and waits until all its members are ready.
func (sh shell) newPool(t *testing.T, name string, replicas int32) {
	t.Helper()
	extensions := env.agents.ExtensionsV1beta1()
	if _, err := extensions.SandboxTemplates(sh.namespace).Create(t.Context(), framework.NewTemplate(name), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := extensions.SandboxWarmPools(sh.namespace).Create(t.Context(), framework.NewPool(name, name, replicas), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	sh.awaitPool(t, name, replicas)
}

// awaitPool waits until so many members of a pool are ready, and no others are there.
func (sh shell) awaitPool(t *testing.T, name string, ready int32) {
	t.Helper()
	eventually(t, "pool "+name, func(ctx context.Context) error {
		pool, err := env.agents.ExtensionsV1beta1().SandboxWarmPools(sh.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if pool.Status.Replicas != ready || pool.Status.ReadyReplicas != ready {
			return fmt.Errorf("want %d ready members, status is %+v", ready, pool.Status)
		}
		return nil
	})
}

// pod returns the Pod of a Sandbox.
func (sh shell) pod(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	pod, err := env.kube.CoreV1().Pods(sh.namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

// checkReady fails the test unless the claim says that it is ready, with a Sandbox and its addresses.
func checkReady(t *testing.T, claim *extensionsv1beta1.SandboxClaim) {
	t.Helper()
	if !meta.IsStatusConditionTrue(claim.Status.Conditions, extensionsv1beta1.ClaimConditionReady) ||
		claim.Status.Sandbox.Name == "" || len(claim.Status.Sandbox.PodIPs) == 0 {
		t.Fatalf("claim %s is not ready: %+v", claim.Name, claim.Status)
	}
}

// TestClaim is the main job of a pool: somebody with no rights but those on claims and exec gets a running Sandbox in the response to his
// request, works in it, and gives it up; nobody gets it after him.
func TestClaim(t *testing.T) {
	t.Parallel()
	sh := newShell(t)
	sh.newPool(t, "python", 2)
	idle := sets.New(strings.Fields(sh.kubectl(t, "get", "pods", "-o", "jsonpath={.items[*].metadata.uid}"))...)
	tenant, _ := sh.user(t, "tenant", "--verb=create,get,list,watch,delete", "--resource=sandboxclaims.extensions.agents.x-k8s.io,sandboxes.agents.x-k8s.io/exec")

	document, err := yaml.Marshal(framework.NewClaim("mine", "python"))
	if err != nil {
		t.Fatal(err)
	}
	manifest := "apiVersion: extensions.agents.x-k8s.io/v1beta1\nkind: SandboxClaim\n" + string(document)
	claim := &extensionsv1beta1.SandboxClaim{}
	if err := yaml.Unmarshal([]byte(tenant.pipe(t, manifest, "create", "-f", "-", "-o", "yaml")), claim); err != nil {
		t.Fatal(err)
	}
	checkReady(t, claim)
	box := claim.Status.Sandbox.Name
	before := sh.pod(t, box)
	if !idle.Has(string(before.UID)) {
		t.Errorf("the claim got a Pod that was not running before")
	}
	if got := tenant.kubectl(t, "sandbox", "exec", box, "--", "sh", "-c", "echo mine > /tmp/mark; hostname"); got != box+"\n" {
		t.Errorf("exec in the claimed sandbox printed %q, want its name %q", got, box)
	}
	tenant.refused(t, "forbidden", "get", "pods")
	tenant.refused(t, "forbidden", "get", "sandboxes")
	tenant.refused(t, "forbidden", "create", "-f", "-", "--raw", "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/"+sh.namespace+"/sandboxclaims/mine/bind")

	eventually(t, "labels of the claimed Pod", func(ctx context.Context) error {
		pod, err := env.kube.CoreV1().Pods(sh.namespace).Get(ctx, box, metav1.GetOptions{})
		if err != nil {
			return err
		}
		_, pooled := pod.Labels[v1beta1.WarmPoolSandboxLabel]
		_, evictable := pod.Annotations[v1beta1.SafeToEvictAnnotation]
		if pod.UID != before.UID || pooled || evictable || pod.Labels[v1beta1.ClaimUIDLabel] != string(claim.UID) {
			return fmt.Errorf("UID %s, had %s; labels %v, annotations %v", pod.UID, before.UID, pod.Labels, pod.Annotations)
		}
		return nil
	})
	sh.awaitPool(t, "python", 2)

	tenant.kubectl(t, "delete", "sandboxclaim", "mine", "--timeout="+patience.String())
	sh.kubectl(t, "wait", "--for=delete", "pod/"+box, "--timeout="+patience.String())
	second := &extensionsv1beta1.SandboxClaim{}
	manifest = strings.Replace(manifest, "name: mine", "name: other", 1)
	if err := yaml.Unmarshal([]byte(tenant.pipe(t, manifest, "create", "-f", "-", "-o", "yaml")), second); err != nil {
		t.Fatal(err)
	}
	checkReady(t, second)
	if r := tenant.run(t, "", "sandbox", "exec", second.Status.Sandbox.Name, "--", "cat", "/tmp/mark"); r.Code == 0 {
		t.Errorf("the next claim found %q of the one before", r.Stdout)
	}
	sh.kubectl(t, "get", "networkpolicy", "python-network-policy")
}

// TestKillDuringClaims ends server and controller with SIGKILL while claims are made. Each claim has one Sandbox in the end, and no Sandbox
// has two claims.
func TestKillDuringClaims(t *testing.T) {
	sh := newShell(t)
	const members, claims = 4, 6
	sh.newPool(t, "python", members)
	client := env.agents.ExtensionsV1beta1().SandboxClaims(sh.namespace)
	calls := make([]call, claims)
	for i := range calls {
		calls[i] = func(ctx context.Context) error {
			_, err := client.Create(ctx, framework.NewClaim(fmt.Sprint("claim-", i), "python"), metav1.CreateOptions{})
			return ignoreAlreadyExists(err)
		}
	}
	killDuring(t, []string{apiServer, controller}, calls...)
	owners := map[types.UID]string{}
	for i := range claims {
		name := fmt.Sprint("claim-", i)
		eventually(t, name, func(ctx context.Context) error {
			claim, err := client.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if !meta.IsStatusConditionTrue(claim.Status.Conditions, extensionsv1beta1.ClaimConditionReady) {
				return fmt.Errorf("status is %+v", claim.Status)
			}
			sandbox, err := sh.sandboxes().Get(ctx, claim.Status.Sandbox.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if !metav1.IsControlledBy(sandbox, claim) {
				return fmt.Errorf("sandbox %s is controlled by %v", sandbox.Name, metav1.GetControllerOf(sandbox))
			}
			owners[claim.UID] = sandbox.Name
			return nil
		})
	}
	sandboxes, err := sh.sandboxes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, sandbox := range sandboxes.Items {
		owner := metav1.GetControllerOf(&sandbox)
		if owner != nil && owner.Kind == "SandboxClaim" && owners[owner.UID] != sandbox.Name {
			t.Errorf("sandbox %s belongs to claim %s, which has %q", sandbox.Name, owner.Name, owners[owner.UID])
		}
	}
	sh.awaitPool(t, "python", members)
}
