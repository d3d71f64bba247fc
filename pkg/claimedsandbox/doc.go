// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package claimedsandbox says what the Sandbox of a claim looks like: which member of a pool may be given to a claim, what that changes
// in it, what a Sandbox looks like that is made for a claim, and what the claim says of either. The API server binds claims in the request
// that creates them, the controller does the rest; both do as this package says.
package claimedsandbox
