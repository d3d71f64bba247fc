// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned/typed/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

const (
	// patience is how long something may take that takes a few seconds on an idle machine.
	patience     = 2 * time.Minute
	pollInterval = 100 * time.Millisecond
)

// eventually waits until check returns nil, and fails the test with its last error if it never does. It may also be called in a cleanup, when
// the context of the test has ended.
func eventually(t *testing.T, what string, check func(ctx context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(context.WithoutCancel(t.Context()), pollInterval, patience, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: not within %v: %v", what, patience, last)
	}
}

// shell is a person at a prompt: kubectl with a namespace and somebody's rights.
type shell struct {
	namespace, kubeconfig string
}

// newShell returns the prompt of an administrator in a new namespace, which is deleted at the end of the test.
func newShell(t *testing.T) shell {
	t.Helper()
	sh := shell{kubeconfig: env.kubeconfig}
	// Namespaces of earlier runs may still be terminating.
	name := "e2e-" + strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name())) + "-" + time.Now().Format("150405")
	sh.kubectl(t, "create", "namespace", name)
	sh.namespace = name
	t.Cleanup(func() {
		if t.Failed() {
			for _, args := range [][]string{{"get", "sandboxes", "-o", "yaml"}, {"get", "pods,services,persistentvolumeclaims,events"}} {
				r := sh.run(t, "", args...)
				t.Logf("kubectl %s\n%s%s", strings.Join(args, " "), r.stdout, r.stderr)
			}
		}
		sh.kubectl(t, "delete", "namespace", name, "--wait=false", "--ignore-not-found")
	})
	return sh
}

// result is what a command left behind.
type result struct {
	stdout, stderr string
	code           int
}

// try runs kubectl with standard input and returns what came of it. A command that cannot be started has code -1.
func (sh shell) try(ctx context.Context, stdin string, args ...string) result {
	cmd := exec.CommandContext(ctx, filepath.Join(env.binDir, "kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+sh.kubeconfig, "PATH="+env.binDir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	r := result{stdout.String(), stderr.String(), 0}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		r.code = exit.ExitCode()
	case err != nil:
		r.code, r.stderr = -1, err.Error()
	}
	return r
}

// in adds the namespace to the arguments of kubectl. Plugins take the flag after their own name, and nothing of theirs may follow --.
func (sh shell) in(args ...string) []string {
	if sh.namespace == "" {
		return args
	}
	at := 1
	if args[0] == "sandbox" {
		at = 2
	}
	return append(append(append([]string{}, args[:at]...), "--namespace="+sh.namespace), args[at:]...)
}

// run runs kubectl in the namespace. It may also be called in a cleanup, when the context of the test has ended.
func (sh shell) run(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	return sh.try(ctx, stdin, sh.in(args...)...)
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
		if r := sh.try(ctx, "", sh.in(args...)...); r.code != 0 {
			return fmt.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
		}
		return nil
	})
}

// pipe is kubectl with standard input.
func (sh shell) pipe(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	r := sh.run(t, stdin, args...)
	if r.code != 0 {
		t.Fatalf("kubectl %s: exit code %d\n%s%s", strings.Join(args, " "), r.code, r.stdout, r.stderr)
	}
	return r.stdout
}

// refused runs a command that must fail with the text in its message.
func (sh shell) refused(t *testing.T, text string, args ...string) {
	t.Helper()
	if r := sh.run(t, "", args...); r.code == 0 || !strings.Contains(r.stderr, text) {
		t.Errorf("kubectl %s: exit code %d, want a refusal with %q\n%s%s", strings.Join(args, " "), r.code, text, r.stdout, r.stderr)
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

	const name = "e2e"
	file := clientcmdapi.NewConfig()
	file.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData, CertificateAuthority: config.CAFile}
	file.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
	file.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	file.CurrentContext = name
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		t.Fatal(err)
	}
	return shell{sh.namespace, path}, config
}
