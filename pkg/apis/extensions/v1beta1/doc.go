// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package
// +k8s:protobuf-gen=package
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.x-k8s.agents.extensions.v1beta1
// +k8s:conversion-gen=github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions
// +k8s:defaulter-gen=TypeMeta
// +groupName=extensions.agents.x-k8s.io

// Package v1beta1 is the served version of the extensions.agents.x-k8s.io API group: SandboxTemplate, SandboxWarmPool and
// SandboxClaim. Its JSON form is that of the kubernetes-sigs/agent-sandbox project's v1beta1, field for field. It imports nothing but
// apimachinery, k8s.io/api and the types of Sandbox, so that clients do not pull in the server.
package v1beta1
