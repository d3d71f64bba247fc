// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

func TestClaimWrites(t *testing.T) {
	t.Parallel()
	const claims, sandboxes = "/prefix/extensions.agents.x-k8s.io/sandboxclaims/", "/prefix/agents.x-k8s.io/sandboxes/"
	ours := map[string]string{"a": "x", "waiting": ""}
	for name, test := range map[string]struct {
		transactions []framework.Transaction
		want         int
	}{
		"one for both, and one later": {
			[]framework.Transaction{{Keys: []string{sandboxes + "ns/x", claims + "ns/a"}}, {Keys: []string{claims + "ns/a"}}}, 2,
		},
		"what was written to the Sandbox before does not count, what is written after does": {
			[]framework.Transaction{{Keys: []string{sandboxes + "ns/x"}}, {Keys: []string{claims + "ns/a"}}, {Keys: []string{sandboxes + "ns/x"}}}, 2,
		},
		"others' do not count": {
			[]framework.Transaction{
				{Keys: []string{claims + "ns/b"}}, {Keys: []string{claims + "other/a"}}, {Keys: []string{sandboxes + "ns/y"}}, {Keys: []string{"a"}},
			}, 0,
		},
		"one that has no Sandbox": {
			[]framework.Transaction{{Keys: []string{claims + "ns/waiting"}}, {Keys: []string{sandboxes + "ns/y"}}}, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := claimWrites(test.transactions, "ns", ours); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}
