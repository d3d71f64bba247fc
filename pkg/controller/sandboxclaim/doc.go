// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package sandboxclaim holds the controller of the SandboxClaim kind. Most claims are given a ready member of their pool by the API server,
// within the request that creates them, and announced by it; of those the controller only tells, in an event and in metrics. The others it
// asks the API server to bind when a member becomes ready, or makes a Sandbox for. It mirrors what becomes of the Sandbox into the claim,
// keeps the metadata of the Sandbox's Pod as claim and template say, and ends claims whose time is over.
//
// It never gives a member of a pool away itself: that takes two writes, which only the API server can make in one.
//
// A claim never gets a second Sandbox in the place of one that is gone, because the files in it are gone too and nobody would be told.
// Four rules keep it from getting two:
//   - a Sandbox is the claim's if the claim controls it by UID, whatever names, labels and annotations say;
//   - a Sandbox that is made for a claim has its name, so that a second create fails, and is answered by a live read;
//   - before it is made the claim says so, by a write that is conditional on its version: bindings that are under way fail then, and the
//     API server makes no others. That ends with the Sandbox, or when each request to make it was refused. A controller that finds such
//     a claim cannot know that, and goes on with it as if a request had got no answer. What such a request may do yet ends when others
//     have been refused for so long that no server can still have it;
//   - that there is no pool, no template or no Sandbox is believed only after a live read, and so is a refusal by the template, because
//     clients give up on these.
package sandboxclaim
