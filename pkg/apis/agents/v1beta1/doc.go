// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package
// +k8s:protobuf-gen=package
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.x-k8s.agents.v1beta1
// +k8s:conversion-gen=github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents
// +k8s:defaulter-gen=TypeMeta
// +groupName=agents.x-k8s.io

// Package v1beta1 is the served version of the agents.x-k8s.io API group: Sandbox and the kinds its subresources take. Its JSON
// form is that of the kubernetes-sigs/agent-sandbox project's v1beta1, field for field. It imports nothing but apimachinery and
// k8s.io/api, so that clients do not pull in the server.
package v1beta1
