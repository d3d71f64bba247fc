// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"bytes"
	"context"
	"net/http"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	agentsscheme "github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned/scheme"
)

// Protocol is what carries the streams of a command.
type Protocol string

const (
	// WebSocket begins with a GET request.
	WebSocket Protocol = "WebSocket"
	// SPDY begins with a POST request.
	SPDY Protocol = "SPDY"
)

// NewExecutor returns what runs the command that a URL names.
func NewExecutor(config *rest.Config, protocol Protocol, url *url.URL) (remotecommand.Executor, error) {
	if protocol == SPDY {
		return remotecommand.NewSPDYExecutor(config, http.MethodPost, url)
	}
	return remotecommand.NewWebSocketExecutor(config, http.MethodGet, url.String())
}

// Exec runs the command that a URL names, and returns its output.
func Exec(ctx context.Context, config *rest.Config, protocol Protocol, url *url.URL) (stdout, stderr string, err error) {
	executor, err := NewExecutor(config, protocol, url)
	if err != nil {
		return "", "", err
	}
	var out, errOut bytes.Buffer
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out, Stderr: &errOut})
	return out.String(), errOut.String(), err
}

// SandboxExecURL returns the URL that runs a command in a Sandbox, with its output but without input. The client must be one for
// the group of Sandbox.
func SandboxExecURL(client rest.Interface, namespace, sandbox string, command ...string) *url.URL {
	return client.Post().Namespace(namespace).Resource("sandboxes").Name(sandbox).SubResource("exec").
		VersionedParams(&v1beta1.SandboxExecOptions{Command: command, Stdout: true, Stderr: true}, agentsscheme.ParameterCodec).URL()
}

// PodExecURL returns the URL that runs a command in a Pod, with its output but without input. The client must be one for the core
// group.
func PodExecURL(client rest.Interface, namespace, pod string, command ...string) *url.URL {
	return client.Post().Namespace(namespace).Resource("pods").Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec).URL()
}
