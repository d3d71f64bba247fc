// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package sandbox holds the controller of the Sandbox kind. It turns a Sandbox into a Pod, PersistentVolumeClaims and a Service
// in the same namespace, and mirrors what becomes of them into the status of the Sandbox.
//
// What the children and the status should be is computed by pure functions of the Sandbox and of what was observed
// (persistentvolumeclaim.go, service.go, serviceports.go, status.go, conditions.go, explanation.go, expiry.go); the reconcile*.go
// files do the requests. The package writes children and the status subresource only, never the spec or the metadata of a Sandbox,
// and it cleans nothing up after a Sandbox is deleted: the garbage collector does.
//
// A Pod that is gone, for whatever reason, is made again, with the same PersistentVolumeClaims. One that has ended stays, and the
// Sandbox with it, until somebody deletes the Pod or suspends and resumes the Sandbox: what ran once may not be meant to run again.
// A Pod whose node does not answer is never removed by force, because it may still run and write to the volumes.
//
// Three rules make a lagging cache harmless:
//   - a child counts only if its controller reference has the UID of the Sandbox, whatever its name, labels or annotations say;
//   - children have names that follow from the Sandbox, so that a second create fails, and is answered by a live read;
//   - before anything is deleted, the reason for it is confirmed by a live read of the Sandbox, and the deletion carries the
//     UID of what it means. That a Sandbox is not found is never a reason to delete.
package sandbox
