// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package

// Package extensions holds the internal ("hub") version of the extensions.agents.x-k8s.io API group: what templates, warm pools and
// claims are to every part of the server. It carries no serialization tags and no defaults: those belong to the versioned packages.
package extensions
