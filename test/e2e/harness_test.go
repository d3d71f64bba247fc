// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned/typed/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

// patience is how long something may take that takes a few seconds on an idle machine.
const patience = 2 * time.Minute

// eventually waits until check returns nil, and fails the test with its last error if it never does.
func eventually(t *testing.T, what string, check func(ctx context.Context) error) {
	t.Helper()
	framework.Eventually(t, patience, what, check)
}

// shell is a person at a prompt: kubectl with a namespace and somebody's rights.
type shell struct {
	framework.Kubectl
	namespace string
}

// newShell returns the prompt of an administrator in a new namespace, which is deleted at the end of the test.
func newShell(t *testing.T) shell {
	t.Helper()
	return shell{env.kubectl, framework.NewNamespace(t, env.kube, "e2e-", func(ctx context.Context, namespace string) {
		env.kubectl.Describe(ctx, t, namespace)
	})}
}

// run runs kubectl in the namespace, with standard input. It may also be called in a cleanup, when the context of the test has ended.
func (sh shell) run(t *testing.T, stdin string, args ...string) framework.KubectlResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	return sh.Run(ctx, t, sh.namespace, stdin, args...)
}

// kubectl runs a command that must succeed, and returns its standard output.
func (sh shell) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return sh.pipe(t, "", args...)
}

// insist repeats a command until it succeeds: a server that is being replaced refuses what meets it in that moment, and kube-apiserver may
// notice late that it is back.
func (sh shell) insist(t *testing.T, args ...string) {
	t.Helper()
	eventually(t, "kubectl "+strings.Join(args, " "), func(ctx context.Context) error {
		if r := sh.Run(ctx, t, sh.namespace, "", args...); r.Code != 0 {
			return fmt.Errorf("exit code %d\n%s%s", r.Code, r.Stdout, r.Stderr)
		}
		return nil
	})
}

// pipe is kubectl with standard input.
func (sh shell) pipe(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	return sh.run(t, stdin, args...).Output(t)
}

// refused runs a command that must fail with the text in its message.
func (sh shell) refused(t *testing.T, text string, args ...string) {
	t.Helper()
	if r := sh.run(t, "", args...); r.Code == 0 || !strings.Contains(r.Stderr, text) {
		t.Errorf("kubectl %s: exit code %d, want a refusal with %q\n%s%s", strings.Join(args, " "), r.Code, text, r.Stdout, r.Stderr)
	}
}

// apply applies Sandboxes.
func (sh shell) apply(t *testing.T, sandboxes ...*v1beta1.Sandbox) {
	t.Helper()
	sh.pipe(t, manifests(t, sandboxes...), "apply", "-f", "-")
}

// applyReady applies a Sandbox and waits until it is ready.
func (sh shell) applyReady(t *testing.T, name string, options ...func(*v1beta1.Sandbox)) {
	t.Helper()
	sh.apply(t, framework.NewSandbox(name, options...))
	sh.await(t, "Ready", name)
}

// await waits for a condition of a Sandbox. Unlike kubectl it endures that the server is down.
func (sh shell) await(t *testing.T, condition, name string) {
	t.Helper()
	eventually(t, "sandbox "+name, func(ctx context.Context) error {
		sandbox, err := sh.sandboxes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if c := meta.FindStatusCondition(sandbox.Status.Conditions, condition); c == nil || c.Status != metav1.ConditionTrue ||
			c.ObservedGeneration != sandbox.Generation {
			return fmt.Errorf("in generation %d condition %s is %+v", sandbox.Generation, condition, c)
		}
		return nil
	})
}

// sandboxes returns a client for the namespace.
func (sh shell) sandboxes() agentsv1beta1.SandboxInterface {
	return env.agents.AgentsV1beta1().Sandboxes(sh.namespace)
}

// get reads a Sandbox.
func (sh shell) get(t *testing.T, name string) *v1beta1.Sandbox {
	t.Helper()
	sandbox, err := sh.sandboxes().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return sandbox
}

// manifests returns Sandboxes as one YAML stream.
func manifests(t *testing.T, sandboxes ...*v1beta1.Sandbox) string {
	t.Helper()
	var stream strings.Builder
	for _, sandbox := range sandboxes {
		sandbox.SetGroupVersionKind(v1beta1.SchemeGroupVersion.WithKind("Sandbox"))
		document, err := yaml.Marshal(sandbox)
		if err != nil {
			t.Fatal(err)
		}
		stream.WriteString("---\n")
		stream.Write(document)
	}
	return stream.String()
}

// user makes a ServiceAccount with rights in the namespace, and returns its prompt and its client configuration. Each right is what
// follows "kubectl create role NAME".
func (sh shell) user(t *testing.T, name string, rights ...string) (shell, *rest.Config) {
	t.Helper()
	sh.kubectl(t, "create", "serviceaccount", name)
	sh.kubectl(t, append([]string{"create", "role", name}, rights...)...)
	sh.kubectl(t, "create", "rolebinding", name, "--role="+name, "--serviceaccount="+sh.namespace+":"+name)
	return sh.login(t, name)
}

// login returns the prompt and the client configuration of a ServiceAccount.
func (sh shell) login(t *testing.T, serviceAccount string) (shell, *rest.Config) {
	t.Helper()
	config := rest.AnonymousClientConfig(env.config)
	config.BearerToken = strings.TrimSpace(sh.kubectl(t, "create", "token", serviceAccount))

	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := framework.WriteKubeconfig(config, file); err != nil {
		t.Fatal(err)
	}
	sh.Kubeconfig = file
	return sh, config
}
