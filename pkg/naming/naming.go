// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package naming derives the names and label values of what belongs to a Sandbox. They are part of the contract with
// clients (DNS names, label selectors), so server, controller and plugin must agree on them to the byte.
package naming

import (
	"fmt"
	"hash/fnv"
)

// Hash returns the 32-bit FNV-1a hash of s as exactly eight lower-case hexadecimal digits: the form in which names are put into
// label values, which are shorter than names may be.
func Hash(s string) string {
	h := fnv.New32a()
	h.Write([]byte(s))
	return fmt.Sprintf("%08x", h.Sum32())
}

// Pod returns the name of the Pod of a Sandbox.
func Pod(sandbox string) string { return sandbox }

// Service returns the name of the headless Service of a Sandbox.
func Service(sandbox string) string { return sandbox }

// PersistentVolumeClaim returns the name of the claim that is made from the volumeClaimTemplate of the given name.
func PersistentVolumeClaim(template, sandbox string) string { return template + "-" + sandbox }
