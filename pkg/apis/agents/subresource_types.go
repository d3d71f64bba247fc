// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SandboxSuspend is the body of a POST to sandboxes/suspend.
type SandboxSuspend struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Preconditions *Preconditions
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SandboxResume is the body of a POST to sandboxes/resume.
type SandboxResume struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Preconditions *Preconditions
}

// Preconditions must hold of the Sandbox for the operation to be carried out.
type Preconditions struct {
	UID             *types.UID
	ResourceVersion *string
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SandboxExecOptions are the query parameters of sandboxes/exec.
type SandboxExecOptions struct {
	metav1.TypeMeta

	Stdin     bool
	Stdout    bool
	Stderr    bool
	TTY       bool
	Container string
	Command   []string
}
