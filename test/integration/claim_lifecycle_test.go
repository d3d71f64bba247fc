// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

// The tests of this file that are not parallel stop a program, or count what is written while nobody else writes.

// TestWarmClaimTransactions counts what a warm claim costs in our storage.
func TestWarmClaimTransactions(t *testing.T) {
	namespace := newNamespace(t)
	fillPool(t, namespace, 1)
	etcd, err := env.etcd()
	if err != nil {
		t.Fatal(err)
	}
	defer etcd.Close()
	before, err := framework.Revision(t.Context(), etcd)
	if err != nil {
		t.Fatal(err)
	}
	claim := createBound(t, namespace, "c1")
	awaitClaim(t, namespace, "c1", announced)
	awaitCondition(t, namespace, claim.Status.Sandbox.Name, v1beta1.SandboxConditionReady)
	awaitPool(t, namespace, 1)
	transactions, err := framework.Transactions(t.Context(), etcd, before)
	if err != nil {
		t.Fatal(err)
	}
	claimKey := keyPrefix + "extensions.agents.x-k8s.io/sandboxclaims/" + namespace + "/c1"
	sandboxKey := keyPrefix + "agents.x-k8s.io/sandboxes/" + namespace + "/" + claim.Status.Sandbox.Name
	var got [][]string
	for _, transaction := range transactions {
		keys := slices.DeleteFunc(transaction.Keys, func(key string) bool { return key != claimKey && key != sandboxKey })
		if slices.Sort(keys); len(keys) != 0 {
			got = append(got, keys)
		}
	}
	if len(got) == 0 || !slices.Equal(got[0], []string{sandboxKey, claimKey}) {
		t.Fatalf("the claim was not bound in one transaction: %v", got)
	}
	// The annotations of the claim follow. The Sandbox's status is that of its new generation already.
	if diff := cmp.Diff([][]string{{claimKey}}, got[1:]); diff != "" {
		t.Errorf("transactions after the request (-want +got):\n%s", diff)
	}
}

// TestClaimsAcrossCrashes kills programs while claims are made, more of them than there are members. A watch does not outlast the server,
// so what happens in between is watched only while the controller alone is killed.
func TestClaimsAcrossCrashes(t *testing.T) {
	for name, programs := range map[string][]string{"controller": {sandboxController}, "both": {sandboxAPIServer, sandboxController}} {
		t.Run(name, func(t *testing.T) {
			namespace := newNamespace(t)
			const claimed, replicas = 60, 20
			pool := fillPool(t, namespace, replicas)
			watched := !slices.Contains(programs, sandboxAPIServer)
			var seen *sandboxWatch
			if watched {
				seen = watchSandboxes(t, namespace)
			}
			for i := range claimed {
				// A request that fails is repeated, as clients do: the name makes sure that it is one claim.
				eventually(t, "claim", func(ctx context.Context) error {
					_, err := claims(namespace).Create(ctx, framework.NewClaim(fmt.Sprintf("c%d", i), poolName), metav1.CreateOptions{})
					if apierrors.IsAlreadyExists(err) {
						return nil
					}
					return err
				})
				if i == claimed/3 || i == 2*claimed/3 {
					for _, program := range programs {
						restart(t, program)
					}
				}
			}
			checkPairs(t, namespace, awaitClaims(t, namespace, claimed))
			awaitPool(t, namespace, replicas)
			if watched {
				seen.check(t, pool.UID, replicas)
			}
		})
	}
}

// TestUsedSandboxAcrossRestarts proves that no restart makes anybody forget that a Sandbox was used.
func TestUsedSandboxAcrossRestarts(t *testing.T) {
	namespace := newNamespace(t)
	pool := fillPool(t, namespace, 1)
	used := createBound(t, namespace, "c1").Status.Sandbox.Name
	restart(t, sandboxController)
	restart(t, sandboxAPIServer)
	// The index of members is complete as soon as the server serves.
	awaitPool(t, namespace, 1)
	second := createBound(t, namespace, "c2").Status.Sandbox.Name
	if second == used {
		t.Errorf("two claims have Sandbox %s", used)
	}
	// With the label of an idle member it is not one.
	awaitPool(t, namespace, 1)
	members, err := ownedBy(t.Context(), namespace, pool.UID)
	if err != nil || len(members) != 1 {
		t.Fatalf("%v, %d members", err, len(members))
	}
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, v1beta1.WarmPoolSandboxLabel, members[0].Labels[v1beta1.WarmPoolSandboxLabel])
	if _, err := mergePatch(t.Context(), namespace, used, patch); err != nil {
		t.Fatal(err)
	}
	restart(t, sandboxController)
	for _, name := range []string{"c3", "c4"} {
		createClaim(t, namespace, name)
		if got := awaitClaim(t, namespace, name, claimReady).Status.Sandbox.Name; got == used {
			t.Errorf("claim %s has Sandbox %s", name, used)
		}
	}
}

// TestTTLAcrossRestart proves that the lifetime of a finished claim counts from its end, whoever was not there to count: it is over while
// the controller is away.
func TestTTLAcrossRestart(t *testing.T) {
	namespace := newNamespace(t)
	createTemplate(t, namespace, framework.Blueprint(func(s *v1beta1.Sandbox) { s.Spec.PodTemplate.Spec.SchedulerName = "nobody" }))
	createPool(t, namespace, 0)
	createClaim(t, namespace, "c1", func(claim *extensionsv1beta1.SandboxClaim) {
		claim.Spec.Lifecycle = &extensionsv1beta1.Lifecycle{
			TTLSecondsAfterFinished: new(int32(time.Hour / time.Second)), ShutdownPolicy: extensionsv1beta1.ClaimShutdownPolicyDelete,
		}
	})
	eventually(t, "the end of the Pod", func(ctx context.Context) error {
		_, err := env.kube.CoreV1().Pods(namespace).Patch(ctx, "c1", types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`), metav1.PatchOptions{}, "status")
		return err
	})
	claim := awaitClaim(t, namespace, "c1", func(claim *extensionsv1beta1.SandboxClaim) error {
		if !meta.IsStatusConditionTrue(claim.Status.Conditions, extensionsv1beta1.ClaimConditionFinished) {
			return fmt.Errorf("status is %+v", claim.Status)
		}
		return nil
	})
	if err := env.killProgram(t.Context(), sandboxController); err != nil {
		t.Fatal(err)
	}
	sandbox := get(t, namespace, "c1")
	for _, conditions := range [][]metav1.Condition{claim.Status.Conditions, sandbox.Status.Conditions} {
		finished := meta.FindStatusCondition(conditions, extensionsv1beta1.ClaimConditionFinished)
		finished.LastTransitionTime = metav1.NewTime(finished.LastTransitionTime.Add(-2 * time.Hour))
	}
	_, claimErr := claims(namespace).UpdateStatus(t.Context(), claim, metav1.UpdateOptions{})
	_, sandboxErr := sandboxes(namespace).UpdateStatus(t.Context(), sandbox, metav1.UpdateOptions{})
	if err := errors.Join(claimErr, sandboxErr, env.startProgram(t.Context(), sandboxController)); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, "SandboxClaim", claims(namespace).Get, "c1")
}

// runWith runs a program with more arguments until the end of the test.
func runWith(t *testing.T, program string, args ...string) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		if err := errors.Join(env.killProgram(ctx, program), env.startProgram(ctx, program)); err != nil {
			t.Error(err)
		}
	})
	startWith(t, program, args...)
}

// startWith kills a program and starts it with more arguments.
func startWith(t *testing.T, program string, args ...string) {
	t.Helper()
	if err := env.killProgram(t.Context(), program); err != nil {
		t.Fatal(err)
	}
	if _, err := env.cluster.Start(t.Context(), program, 1, args...); err != nil {
		t.Fatal(err)
	}
}

// TestAllowedLabelDomains proves that a list of the operator's replaces the default, and that a change of it needs no restart.
func TestAllowedLabelDomains(t *testing.T) {
	file := filepath.Join(t.TempDir(), "allowed-label-domains")
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("team.example.com, other.example.com\n")
	for _, program := range []string{sandboxAPIServer, sandboxController} {
		runWith(t, program, "--allowed-label-domains-file="+file)
	}
	namespace := newNamespace(t)
	fillPool(t, namespace, 1)
	labelled := func(key string) func(*extensionsv1beta1.SandboxClaim) {
		return func(claim *extensionsv1beta1.SandboxClaim) {
			claim.Spec.AdditionalPodMetadata.Labels = map[string]string{key: "a"}
		}
	}
	_, err := claims(namespace).Create(t.Context(), framework.NewClaim("c1", poolName, labelled("sandbox.users.io/a")), metav1.CreateOptions{})
	checkStatusError(t, err, 422, "spec.additionalPodMetadata.labels", "team.example.com")
	createBound(t, namespace, "c1", labelled("team.example.com/a"))
	write("sandbox.users.io")
	eventually(t, "the other list", func(ctx context.Context) error {
		_, err := claims(namespace).Create(ctx, framework.NewClaim("c2", poolName, labelled("team.example.com/a")), dryRun())
		if err == nil {
			return errors.New("the label is still allowed")
		}
		return nil
	})
	awaitPool(t, namespace, 1)
	claim := createClaim(t, namespace, "c2", labelled("sandbox.users.io/a"))
	claim = awaitClaim(t, namespace, claim.Name, claimReady)
	if got := get(t, namespace, claim.Status.Sandbox.Name).Spec.PodTemplate.Metadata.Labels["sandbox.users.io/a"]; got != "a" {
		t.Errorf("the label is %q", got)
	}
}
