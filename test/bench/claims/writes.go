// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

// claimWrites counts the transactions that were made for claims: all that write a claim, and all that write the Sandbox of a claim once
// the claim is there. The argument claims has, for the name of each claim, that of its Sandbox. What was written to keep the pool full
// does not count.
func claimWrites(transactions []framework.Transaction, namespace string, claims map[string]string) int {
	writes := 0
	claimed := map[string]bool{}
	for _, transaction := range transactions {
		counts := false
		for _, key := range transaction.Keys {
			// Keys end in <resource>/<namespace>/<name>, whatever the prefix is.
			path, name, _ := cutLast(key)
			path, keyNamespace, _ := cutLast(path)
			_, resource, _ := cutLast(path)
			if keyNamespace != namespace {
				continue
			}
			switch resource {
			case "sandboxclaims":
				if sandbox, ours := claims[name]; ours {
					claimed[sandbox] = true
					counts = true
				}
			case "sandboxes":
				counts = counts || claimed[name]
			}
		}
		if counts {
			writes++
		}
	}
	return writes
}

// cutLast slices a path around its last separator.
func cutLast(path string) (before, after string, found bool) {
	i := strings.LastIndex(path, "/")
	if i < 0 {
		return "", path, false
	}
	return path[:i], path[i+1:], true
}
