// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package sandboxtemplate holds the controller of the SandboxTemplate kind. It labels each template with the hash of its name, by which
// Sandboxes and Pods made from it are found, and keeps the NetworkPolicy that all of them share, unless the template says that
// somebody else does. What Sandboxes a template makes is none of its business.
//
// A NetworkPolicy belongs to a template if the template controls it by UID. Another one of the right name is never touched: it is
// reported, and looked at again when it goes. NetworkPolicies add up, so one that was removed by mistake opens what it closed, and
// one that was kept by mistake opens what an operator's own policy closes. Hence a policy is deleted only after a live read has
// confirmed that its template is Unmanaged.
package sandboxtemplate
