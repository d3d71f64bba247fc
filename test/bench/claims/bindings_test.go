// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

// claimOf returns a claim with a UID made of its name, which has a Sandbox unless the name of that is empty.
func claimOf(name, sandbox string) extensionsv1beta1.SandboxClaim {
	claim := framework.NewClaim(name, "pool")
	claim.UID = types.UID(name + "-uid")
	claim.Status.Sandbox.Name = sandbox
	return *claim
}

// sandboxOf returns a Sandbox whose controller is of a kind of the extensions group.
func sandboxOf(name, kind, owner string) agentsv1beta1.Sandbox {
	return sandboxOwnedBy(name, metav1.OwnerReference{
		APIVersion: extensionsv1beta1.SchemeGroupVersion.String(), Kind: kind, Name: owner, UID: types.UID(owner + "-uid"), Controller: new(true),
	})
}

func sandboxOwnedBy(name string, owner metav1.OwnerReference) agentsv1beta1.Sandbox {
	sandbox := framework.NewSandbox(name)
	sandbox.OwnerReferences = []metav1.OwnerReference{owner}
	return *sandbox
}

func TestWrongBindings(t *testing.T) {
	t.Parallel()
	foreign := metav1.OwnerReference{APIVersion: "example.com/v1", Kind: kindClaim, Name: "a", UID: "a-uid", Controller: new(true)}
	for name, test := range map[string]struct {
		claims    []extensionsv1beta1.SandboxClaim
		sandboxes []agentsv1beta1.Sandbox
		want      []string
	}{
		"each has its own, another is in the pool, a claim waits": {
			[]extensionsv1beta1.SandboxClaim{claimOf("a", "x"), claimOf("b", "y"), claimOf("c", "")},
			[]agentsv1beta1.Sandbox{sandboxOf("x", kindClaim, "a"), sandboxOf("y", kindClaim, "b"), sandboxOf("z", kindPool, "pool")},
			nil,
		},
		"two claims say they have one": {
			[]extensionsv1beta1.SandboxClaim{claimOf("a", "x"), claimOf("b", "x")},
			[]agentsv1beta1.Sandbox{sandboxOf("x", kindClaim, "a")},
			[]string{"claims a and b both have sandbox x", "claim b has sandbox x, which it does not control"},
		},
		"one claim controls two": {
			[]extensionsv1beta1.SandboxClaim{claimOf("a", "x")},
			[]agentsv1beta1.Sandbox{sandboxOf("y", kindClaim, "a"), sandboxOf("x", kindClaim, "a")},
			[]string{"claim a controls several sandboxes: [x y]"},
		},
		"one that is the pool's still": {
			[]extensionsv1beta1.SandboxClaim{claimOf("a", "x")},
			[]agentsv1beta1.Sandbox{sandboxOf("x", kindPool, "pool")},
			[]string{"claim a has sandbox x, which it does not control"},
		},
		"one that is gone": {
			[]extensionsv1beta1.SandboxClaim{claimOf("a", "x")},
			nil,
			[]string{"claim a has sandbox x, which it does not control"},
		},
		"a claim of another group": {
			[]extensionsv1beta1.SandboxClaim{claimOf("a", "x")},
			[]agentsv1beta1.Sandbox{sandboxOwnedBy("x", foreign)},
			[]string{"claim a has sandbox x, which it does not control"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, wrongBindings(test.claims, test.sandboxes)); diff != "" {
				t.Errorf("wrong (-want +got):\n%s", diff)
			}
		})
	}
}

func TestColdStarts(t *testing.T) {
	t.Parallel()
	labelled := func(sandbox agentsv1beta1.Sandbox, launch string) agentsv1beta1.Sandbox {
		sandbox.Labels = map[string]string{agentsv1beta1.LaunchTypeLabel: launch}
		return sandbox
	}
	sandboxes := []agentsv1beta1.Sandbox{
		labelled(sandboxOf("a", kindClaim, "a"), agentsv1beta1.LaunchTypeCold),
		labelled(sandboxOf("x", kindClaim, "b"), agentsv1beta1.LaunchTypeWarm),
		sandboxOf("c", kindClaim, "c"),
		sandboxOf("y", kindClaim, "d"),
		labelled(sandboxOf("z", kindPool, "pool"), agentsv1beta1.LaunchTypeWarm),
		labelled(sandboxOf("other", kindClaim, "other"), agentsv1beta1.LaunchTypeCold),
	}
	claims := []extensionsv1beta1.SandboxClaim{claimOf("a", "a"), claimOf("b", "x"), claimOf("c", "c"), claimOf("d", "y")}
	if got := coldStarts(claims, sandboxes); got != 2 {
		t.Errorf("got %d, want 2: a by its label, c by its name", got)
	}
}
