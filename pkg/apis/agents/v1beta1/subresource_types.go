// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SandboxSuspend is the body of a POST to a Sandbox's suspend subresource, which sets spec.operatingMode to Suspended and answers
// with the Sandbox. It is idempotent; an empty object is enough.
type SandboxSuspend struct {
	metav1.TypeMeta `json:",inline"`
	// metadata may name the Sandbox; a name other than that in the path is refused.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero" protobuf:"bytes,1,opt,name=metadata"`

	// preconditions must hold of the Sandbox, or the request fails with 409 Conflict.
	// +optional
	Preconditions *Preconditions `json:"preconditions,omitempty" protobuf:"bytes,2,opt,name=preconditions"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SandboxResume is the body of a POST to a Sandbox's resume subresource, which sets spec.operatingMode to Running and answers with
// the Sandbox. It is idempotent; an empty object is enough.
type SandboxResume struct {
	metav1.TypeMeta `json:",inline"`
	// metadata may name the Sandbox; a name other than that in the path is refused.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero" protobuf:"bytes,1,opt,name=metadata"`

	// preconditions must hold of the Sandbox, or the request fails with 409 Conflict.
	// +optional
	Preconditions *Preconditions `json:"preconditions,omitempty" protobuf:"bytes,2,opt,name=preconditions"`
}

// Preconditions must hold of the Sandbox for an operation to be carried out.
type Preconditions struct {
	// uid is the UID that the Sandbox must have. It guards against acting on a later Sandbox of the same name.
	// +optional
	UID *types.UID `json:"uid,omitempty" protobuf:"bytes,1,opt,name=uid,casttype=k8s.io/apimachinery/pkg/types.UID"`

	// resourceVersion is the resourceVersion that the Sandbox must have. It guards against acting on a state not seen.
	// +optional
	ResourceVersion *string `json:"resourceVersion,omitempty" protobuf:"bytes,2,opt,name=resourceVersion"`
}

// +k8s:conversion-gen:explicit-from=net/url.Values
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SandboxExecOptions are the query parameters of a Sandbox's exec subresource. They mean what those of pods/exec mean.
type SandboxExecOptions struct {
	metav1.TypeMeta `json:",inline"`

	// stdin redirects the standard input stream of the command. Defaults to false.
	// +optional
	Stdin bool `json:"stdin,omitempty" protobuf:"varint,1,opt,name=stdin"`

	// stdout redirects the standard output stream of the command. Defaults to false.
	// +optional
	Stdout bool `json:"stdout,omitempty" protobuf:"varint,2,opt,name=stdout"`

	// stderr redirects the standard error stream of the command. Defaults to false.
	// +optional
	Stderr bool `json:"stderr,omitempty" protobuf:"varint,3,opt,name=stderr"`

	// tty allocates a terminal for the command. Defaults to false.
	// +optional
	TTY bool `json:"tty,omitempty" protobuf:"varint,4,opt,name=tty"`

	// container is the container to run the command in. Defaults to the Pod's default container, else its only one, else its first.
	// +optional
	Container string `json:"container,omitempty" protobuf:"bytes,5,opt,name=container"`

	// command is the command with its arguments, one per occurrence. It is not run in a shell.
	// +listType=atomic
	Command []string `json:"command" protobuf:"bytes,6,rep,name=command"`
}
