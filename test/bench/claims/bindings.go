// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
)

// Kinds of owners.
const (
	kindClaim = "SandboxClaim"
	kindPool  = "SandboxWarmPool"
)

// wrongBindings returns what is wrong with who has got what, a sentence each: a Sandbox that two claims have, a claim that has two, and a
// claim whose Sandbox is not its own. Both sides are looked at, since either may be what a client goes by.
func wrongBindings(claims []extensionsv1beta1.SandboxClaim, sandboxes []agentsv1beta1.Sandbox) []string {
	var wrong []string
	owners := map[string]types.UID{}
	owned := map[types.UID][]string{}
	for i := range sandboxes {
		name, owner := sandboxes[i].Name, ownerUID(&sandboxes[i], kindClaim)
		owners[name] = owner
		if owner != "" {
			owned[owner] = append(owned[owner], name)
		}
	}
	users := map[string]string{}
	for i := range claims {
		claim := &claims[i]
		if names := owned[claim.UID]; len(names) > 1 {
			slices.Sort(names)
			wrong = append(wrong, fmt.Sprintf("claim %s controls several sandboxes: %v", claim.Name, names))
		}
		sandbox := claim.Status.Sandbox.Name
		if sandbox == "" {
			continue
		}
		if other, taken := users[sandbox]; taken {
			wrong = append(wrong, fmt.Sprintf("claims %s and %s both have sandbox %s", other, claim.Name, sandbox))
		}
		users[sandbox] = claim.Name
		if owners[sandbox] != claim.UID {
			wrong = append(wrong, fmt.Sprintf("claim %s has sandbox %s, which it does not control", claim.Name, sandbox))
		}
	}
	return wrong
}

// ownerUID returns the UID of the controller of a Sandbox, if that is of a kind of the group of claims, or else nothing.
func ownerUID(sandbox *agentsv1beta1.Sandbox, kind string) types.UID {
	owner := metav1.GetControllerOfNoCopy(sandbox)
	if owner == nil || owner.Kind != kind {
		return ""
	}
	if version, err := schema.ParseGroupVersion(owner.APIVersion); err != nil || version.Group != extensionsv1beta1.GroupName {
		return ""
	}
	return owner.UID
}

// coldStarts counts the Sandboxes that were made for one of the claims, instead of ahead.
func coldStarts(claims []extensionsv1beta1.SandboxClaim, sandboxes []agentsv1beta1.Sandbox) int {
	names := map[types.UID]string{}
	for i := range claims {
		names[claims[i].UID] = claims[i].Name
	}
	cold := 0
	for i := range sandboxes {
		sandbox := &sandboxes[i]
		claim, ours := names[ownerUID(sandbox, kindClaim)]
		// Without the label, the name tells: it is that of the claim.
		launch := sandbox.Labels[agentsv1beta1.LaunchTypeLabel]
		if ours && (launch == agentsv1beta1.LaunchTypeCold || launch == "" && sandbox.Name == claim) {
			cold++
		}
	}
	return cold
}
