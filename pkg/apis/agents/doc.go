// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package

// Package agents holds the internal ("hub") version of the agents.x-k8s.io API group. Every served version converts to
// and from it, so server-side apply and version negotiation have one form to meet in. It carries no serialization tags and no
// defaults: those belong to the versioned packages.
package agents
