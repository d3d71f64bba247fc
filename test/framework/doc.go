// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package framework holds what tests and benchmarks against a running cluster share: a Sandbox to start from, and commands run
// through the exec subresources. It asserts nothing.
package framework
