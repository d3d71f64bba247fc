// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	extensionsclient "github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned/typed/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

// Names of the template and the pool that most tests have one of.
const (
	templateName = "t1"
	poolName     = "p1"
)

func templates(namespace string) extensionsclient.SandboxTemplateInterface {
	return env.agents.ExtensionsV1beta1().SandboxTemplates(namespace)
}

func pools(namespace string) extensionsclient.SandboxWarmPoolInterface {
	return env.agents.ExtensionsV1beta1().SandboxWarmPools(namespace)
}

func claims(namespace string) extensionsclient.SandboxClaimInterface {
	return env.agents.ExtensionsV1beta1().SandboxClaims(namespace)
}

// extensionsREST is for what the typed client cannot express.
func extensionsREST() rest.Interface { return env.agents.ExtensionsV1beta1().RESTClient() }

// createTemplate creates a template.
func createTemplate(t *testing.T, namespace string, options ...func(*extensionsv1beta1.SandboxTemplate)) *extensionsv1beta1.SandboxTemplate {
	t.Helper()
	created, err := templates(namespace).Create(t.Context(), framework.NewTemplate(templateName, options...), metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating SandboxTemplate %s/%s: %v", namespace, templateName, err)
	}
	return created
}

// createPool creates a pool of the template.
func createPool(t *testing.T, namespace string, replicas int32, options ...func(*extensionsv1beta1.SandboxWarmPool)) *extensionsv1beta1.SandboxWarmPool {
	t.Helper()
	created, err := pools(namespace).Create(t.Context(), framework.NewPool(poolName, templateName, replicas, options...), metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating SandboxWarmPool %s/%s: %v", namespace, poolName, err)
	}
	return created
}

// fillPool creates template and pool, and returns when the pool is full and all members are ready.
func fillPool(t *testing.T, namespace string, replicas int32, options ...func(*extensionsv1beta1.SandboxTemplate)) *extensionsv1beta1.SandboxWarmPool {
	t.Helper()
	createTemplate(t, namespace, options...)
	createPool(t, namespace, replicas)
	return awaitPool(t, namespace, replicas)
}

// awaitPool waits until a pool is full of its present spec and all members are ready, and its status says so. The status alone may speak
// of a moment ago.
func awaitPool(t *testing.T, namespace string, replicas int32) *extensionsv1beta1.SandboxWarmPool {
	t.Helper()
	var pool *extensionsv1beta1.SandboxWarmPool
	eventually(t, fmt.Sprintf("pool of %d in %s", replicas, namespace), func(ctx context.Context) (err error) {
		if pool, err = pools(namespace).Get(ctx, poolName, metav1.GetOptions{}); err != nil {
			return err
		}
		if s := pool.Status; s.Replicas != replicas || s.ReadyReplicas != replicas || s.ObservedGeneration != pool.Generation {
			return fmt.Errorf("generation %d has status %+v", pool.Generation, s)
		}
		members, err := ownedBy(ctx, namespace, pool.UID)
		ready := slices.DeleteFunc(slices.Clone(members), func(s v1beta1.Sandbox) bool { return checkCondition(&s, v1beta1.SandboxConditionReady) != nil })
		if err == nil && (len(members) != int(replicas) || len(ready) != int(replicas)) {
			err = fmt.Errorf("it has %d members, %d of them ready", len(members), len(ready))
		}
		return err
	})
	return pool
}

// ownedBy returns the Sandboxes that an object controls and that are not being deleted.
func ownedBy(ctx context.Context, namespace string, owner types.UID) ([]v1beta1.Sandbox, error) {
	list, err := sandboxes(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var owned []v1beta1.Sandbox
	for _, sandbox := range list.Items {
		if controller := metav1.GetControllerOf(&sandbox); controller != nil && controller.UID == owner && sandbox.DeletionTimestamp == nil {
			owned = append(owned, sandbox)
		}
	}
	return owned, nil
}

// createClaim creates a claim on the pool.
func createClaim(t *testing.T, namespace, name string, options ...func(*extensionsv1beta1.SandboxClaim)) *extensionsv1beta1.SandboxClaim {
	t.Helper()
	created, err := claims(namespace).Create(t.Context(), framework.NewClaim(name, poolName, options...), metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating SandboxClaim %s/%s: %v", namespace, name, err)
	}
	return created
}

// createBound creates a claim and fails the test unless the response says that it is ready.
func createBound(t *testing.T, namespace, name string, options ...func(*extensionsv1beta1.SandboxClaim)) *extensionsv1beta1.SandboxClaim {
	t.Helper()
	claim := createClaim(t, namespace, name, options...)
	if err := claimReady(claim); err != nil {
		t.Fatalf("in the response: %v", err)
	}
	return claim
}

// awaitClaim waits until check returns nil for a claim, and returns it.
func awaitClaim(t *testing.T, namespace, name string, check func(*extensionsv1beta1.SandboxClaim) error) *extensionsv1beta1.SandboxClaim {
	t.Helper()
	var claim *extensionsv1beta1.SandboxClaim
	eventually(t, fmt.Sprintf("SandboxClaim %s/%s", namespace, name), func(ctx context.Context) (err error) {
		if claim, err = claims(namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		return check(claim)
	})
	return claim
}

// claimReady is the check that a claim has a Sandbox which can be reached.
func claimReady(claim *extensionsv1beta1.SandboxClaim) error {
	ready := meta.FindStatusCondition(claim.Status.Conditions, extensionsv1beta1.ClaimConditionReady)
	if ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != claim.Generation ||
		claim.Status.Sandbox.Name == "" || len(claim.Status.Sandbox.PodIPs) == 0 {
		return fmt.Errorf("SandboxClaim %s of generation %d has status %+v", claim.Name, claim.Generation, claim.Status)
	}
	return nil
}

// claimReason returns the check that a claim says why it is not ready.
func claimReason(reason string) func(*extensionsv1beta1.SandboxClaim) error {
	return func(claim *extensionsv1beta1.SandboxClaim) error {
		ready := meta.FindStatusCondition(claim.Status.Conditions, extensionsv1beta1.ClaimConditionReady)
		if ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason != reason {
			return fmt.Errorf("SandboxClaim %s has status %+v, want reason %s", claim.Name, claim.Status, reason)
		}
		return nil
	}
}

// announced is the check that a ready claim says since when it is ready: nothing is written of it after that unless something happens.
func announced(claim *extensionsv1beta1.SandboxClaim) error {
	if claim.Annotations[extensionsv1beta1.ClaimFirstReadyAtAnnotation] == "" {
		return fmt.Errorf("SandboxClaim %s has annotations %v", claim.Name, claim.Annotations)
	}
	return nil
}

// deleteClaim deletes a claim.
func deleteClaim(t *testing.T, namespace, name string) {
	t.Helper()
	if err := claims(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatalf("deleting SandboxClaim %s/%s: %v", namespace, name, err)
	}
}

// patchPool changes a pool by a JSON merge patch.
func patchPool(ctx context.Context, namespace, patch string, subresources ...string) (*extensionsv1beta1.SandboxWarmPool, error) {
	return pools(namespace).Patch(ctx, poolName, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
}
