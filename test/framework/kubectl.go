// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// Kubectl runs kubectl with the rights that a kubeconfig file gives. It knows nothing of the user's own configuration, and finds the
// plugin of this project.
type Kubectl struct {
	Programs   Programs
	Kubeconfig string
	// Home is the directory for its caches.
	Home string
}

// KubectlResult is what a run of kubectl had to say.
type KubectlResult struct {
	Stdout, Stderr string
	Code           int
}

// Output returns what kubectl had to say on standard output. It fails the test if kubectl has failed.
func (r KubectlResult) Output(t T) string {
	t.Helper()
	if r.Code != 0 {
		t.Fatalf("kubectl: exit code %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// Command returns a command in a namespace. The first argument is the name of what kubectl is to do.
func (k Kubectl) Command(ctx context.Context, namespace string, args ...string) *exec.Cmd {
	// Before its name kubectl takes no flags for a plugin, and at the end there may be the command of an exec.
	args = slices.Insert(slices.Clone(args), 1, "--namespace="+namespace)
	cmd := exec.CommandContext(ctx, k.Programs.File(kubectl), args...)
	cmd.Env = []string{
		"KUBECONFIG=" + k.Kubeconfig,
		"HOME=" + k.Home,
		"PATH=" + string(k.Programs) + string(os.PathListSeparator) + os.Getenv("PATH"),
	}
	return cmd
}

// Run runs a command in a namespace, with standard input. It fails the test if kubectl cannot be run.
func (k Kubectl) Run(ctx context.Context, t T, namespace, stdin string, args ...string) KubectlResult {
	t.Helper()
	cmd := k.Command(ctx, namespace, args...)
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("kubectl %v: %v", args, err)
	}
	return KubectlResult{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// Describe logs what is in a namespace.
func (k Kubectl) Describe(ctx context.Context, t T, namespace string) {
	t.Helper()
	for _, args := range [][]string{{"get", "sandboxes", "-o", "yaml"}, {"get", "pods,services,persistentvolumeclaims,events"}} {
		result := k.Run(ctx, t, namespace, "", args...)
		t.Logf("kubectl %s\n%s%s", strings.Join(args, " "), result.Stdout, result.Stderr)
	}
}
