// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package sandboxwarmpool holds the controller of the SandboxWarmPool kind. It keeps as many Sandboxes of a template as the pool says that
// no claim has taken yet. It never gives one to a claim: the API server does.
//
// A Sandbox is a member of a pool if the pool controls it by UID, and it was never claimed: what a claim has had is never lent again,
// whatever its owner and its labels say. What there is, and what has to happen to it, is computed by pure functions of the objects and the
// time (census.go, refill.go, status.go, member.go); reconcile.go, remove.go and add.go do the requests.
//
// Three rules keep the number of members exact while the cache lags behind:
//   - a member is entered in a ledger before it is asked for, and counts from the answer until the informer delivers it;
//   - a request without an answer is repeated under the same name;
//   - before the first member is made, or deleted for being one too many, and when one that was made does not arrive, the members are
//     read from the server.
//
// Members are deleted in exactly the version that was judged, so that a claim which is faster keeps what it has got.
//
// Claims go before refill, see refill. What they do to the status of a pool is written twice a second at most.
package sandboxwarmpool
