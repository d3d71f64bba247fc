// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the deployed product as people use it: kubectl and its plugin, on the real cluster that "make up" starts, with
// containers that run. What can be observed without a container is tested in test/integration.
//
// Each test has a namespace of its own. A test that kills or restarts the product is not parallel; the parallel ones run after all
// of those.
package e2e
