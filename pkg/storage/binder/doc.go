// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package binder gives members of warm pools to claims. It is the only place where that happens: within the request that creates a claim,
// and for a claim that waits, when the controller asks for it. Claim and Sandbox are written in one transaction of etcd, guarded by the
// versions of both, so that however many servers give at the same time, a claim gets one Sandbox and a Sandbox goes to one claim.
//
// Neither strategies nor admission run for the Sandbox that is given away: binding is no request for a Sandbox, as the binding of a Pod to
// a node is no update of the Pod. For the claim they have run by the time that its storage is reached.
package binder
