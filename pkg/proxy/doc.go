// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package proxy passes upgraded connections (WebSocket and SPDY) through to the Pod subresources of kube-apiserver, with the
// credentials of this server in place of the caller's.
//
// It trusts its caller completely: whether the person may have the stream, and whether the Pod is the right one, is for the
// registry to decide before it asks for a handler. Nothing here reads a Sandbox. Nor does it look into the stream: protocol
// translation is kube-apiserver's work.
package proxy
