// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

// execute runs a command in a Sandbox and returns its output. Simulated nodes run it as a process of this machine.
func execute(ctx context.Context, config *rest.Config, protocol framework.Protocol, namespace, sandbox string, command ...string) (stdout, stderr string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	stdout, stderr, err = framework.Exec(ctx, config, protocol, framework.SandboxExecURL(restClient(), namespace, sandbox, command...))
	return stdout, stderr, refusal(err)
}

// refusal returns the API error that a handshake was answered with, if there was one, else the error itself.
func refusal(err error) error {
	var upgrade *httpstream.UpgradeFailureError
	var status *apierrors.StatusError
	if errors.As(err, &upgrade) && errors.As(upgrade.Cause, &status) {
		return status
	}
	return err
}

func TestExec(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	createReady(t, namespace, framework.NewSandbox("box"))
	for _, protocol := range []framework.Protocol{framework.WebSocket, framework.SPDY} {
		t.Run(string(protocol), func(t *testing.T) {
			stdout, stderr, err := execute(t.Context(), env.config, protocol, namespace, "box", "sh", "-c", "echo out; echo err >&2")
			if err != nil || stdout != "out\n" || stderr != "err\n" {
				t.Errorf("got %v, %q on standard output and %q on standard error", err, stdout, stderr)
			}
			// A simulated node has no way to say the exit code; what it says must arrive.
			_, _, err = execute(t.Context(), env.config, protocol, namespace, "box", "sh", "-c", "exit 7")
			if err == nil || !strings.Contains(err.Error(), "exit status 7") {
				t.Errorf("got error %v, want what the node says of the exit code", err)
			}
		})
	}
	t.Run("arguments arrive as they are", func(t *testing.T) {
		stdout, _, err := execute(t.Context(), env.config, framework.WebSocket, namespace, "box", "printf", "%s|", "a b", "", "&c=d", "ü", "$HOME")
		if err != nil || stdout != "a b||&c=d|ü|$HOME|" {
			t.Errorf("got %q and %v", stdout, err)
		}
	})
}

// TestExecRights is the table of who may exec. What decides is create on sandboxes/exec, whatever the protocol's own verb, and no
// right on Pods is needed or enough.
func TestExecRights(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	createReady(t, namespace, framework.NewSandbox("box"))
	for name, test := range map[string]struct {
		rules           []rbacv1.PolicyRule
		webSocket, spdy bool
	}{
		"nothing":                                  {},
		"get on sandboxes/exec":                    {rules: []rbacv1.PolicyRule{rule("get", "sandboxes/exec")}},
		"get on sandboxes and all subresources":    {rules: []rbacv1.PolicyRule{rule("get,list,watch", "sandboxes,sandboxes/*")}},
		"create on sandboxes/exec":                 {rules: []rbacv1.PolicyRule{rule("create", "sandboxes/exec")}, spdy: true},
		"get and create on sandboxes/exec":         {rules: []rbacv1.PolicyRule{rule("get,create", "sandboxes/exec")}, webSocket: true, spdy: true},
		"the same for this Sandbox":                {rules: []rbacv1.PolicyRule{rule("get,create", "sandboxes/exec", "box")}, webSocket: true, spdy: true},
		"the same for another Sandbox":             {rules: []rbacv1.PolicyRule{rule("get,create", "sandboxes/exec", "other")}},
		"get here, create for another Sandbox":     {rules: []rbacv1.PolicyRule{rule("get", "sandboxes/exec"), rule("create", "sandboxes/exec", "other")}},
		"everything on sandboxes":                  {rules: []rbacv1.PolicyRule{rule("*", "sandboxes")}},
		"everything on the other subresources":     {rules: []rbacv1.PolicyRule{rule("*", "sandboxes/status,sandboxes/suspend,sandboxes/resume")}},
		"everything on Pods and their subresource": {rules: []rbacv1.PolicyRule{coreRule("*", "pods,pods/exec")}},
	} {
		t.Run(name, func(t *testing.T) {
			user := newUser(t, namespace, test.rules...)
			for protocol, allowed := range map[framework.Protocol]bool{framework.WebSocket: test.webSocket, framework.SPDY: test.spdy} {
				stdout, _, err := execute(t.Context(), user.config, protocol, namespace, "box", "echo", "hello")
				switch {
				case allowed && (err != nil || stdout != "hello\n"):
					t.Errorf("%s: got %q and %v, want it allowed", protocol, stdout, err)
				case !allowed && (stdout != "" || !isForbidden(err)):
					t.Errorf("%s: got %q and %v, want it forbidden", protocol, stdout, err)
				}
			}
		})
	}
}

// isForbidden recognizes a refusal of either protocol; SPDY's client keeps only the text of it.
func isForbidden(err error) bool {
	return apierrors.IsForbidden(err) || (err != nil && strings.Contains(err.Error(), "forbidden"))
}

// TestExecStates covers Sandboxes in which nothing can be run. The request is a plain one: it fails before it would be upgraded.
func TestExecStates(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	createSettled(t, namespace, "suspended")
	createReady(t, namespace, framework.NewSandbox("ready"))
	past := metav1.NewTime(time.Now().Add(-time.Hour))
	create(t, namespace, framework.NewSandbox("expired", func(s *v1beta1.Sandbox) { s.Spec.ShutdownTime = &past }))
	create(t, namespace, framework.NewSandbox("unschedulable", func(s *v1beta1.Sandbox) {
		s.Spec.PodTemplate.Spec.NodeSelector = map[string]string{"no": "node"}
	}))
	eventually(t, "Pod of a Sandbox that cannot be scheduled", func(ctx context.Context) error {
		_, err := env.kube.CoreV1().Pods(namespace).Get(ctx, "unschedulable", metav1.GetOptions{})
		return err
	})
	held := createReady(t, namespace, framework.NewSandbox("deleting", func(s *v1beta1.Sandbox) { s.Finalizers = []string{"example.com/hold"} }))
	if err := sandboxes(namespace).Delete(t.Context(), held.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		if _, err := mergePatch(ctx, namespace, held.Name, `{"metadata":{"finalizers":null}}`); err != nil {
			t.Error(err)
		}
	})

	for name, test := range map[string]struct {
		sandbox string
		options v1beta1.SandboxExecOptions
		code    int32
		message string
		cause   string
	}{
		"suspended":         {"suspended", v1beta1.SandboxExecOptions{Command: []string{"id"}, Stdout: true}, 409, "kubectl sandbox resume suspended", v1beta1.SandboxReasonSuspended},
		"without a Pod":     {"expired", v1beta1.SandboxExecOptions{Command: []string{"id"}, Stdout: true}, 409, "no running pod", v1beta1.SandboxReasonDependenciesNotReady},
		"Pod not running":   {"unschedulable", v1beta1.SandboxExecOptions{Command: []string{"id"}, Stdout: true}, 409, "not running yet", v1beta1.SandboxReasonDependenciesNotReady},
		"being deleted":     {"deleting", v1beta1.SandboxExecOptions{Command: []string{"id"}, Stdout: true}, 409, "being deleted", "SandboxDeleting"},
		"not there":         {"other", v1beta1.SandboxExecOptions{Command: []string{"id"}, Stdout: true}, 404, `"other" not found`, ""},
		"no such container": {"ready", v1beta1.SandboxExecOptions{Command: []string{"id"}, Stdout: true, Container: "other"}, 400, `container "other"`, ""},
		"no command":        {"ready", v1beta1.SandboxExecOptions{Stdout: true}, 400, "command", ""},
		"no streams":        {"ready", v1beta1.SandboxExecOptions{Command: []string{"id"}}, 400, "stdout", ""},
		"no upgrade":        {"ready", v1beta1.SandboxExecOptions{Command: []string{"id"}, Stdout: true}, 400, "pgrade", ""},
	} {
		t.Run(name, func(t *testing.T) {
			request := restClient().Post().Namespace(namespace).Resource("sandboxes").Name(test.sandbox).SubResource("exec").MaxRetries(0)
			for _, argument := range test.options.Command {
				request.Param("command", argument)
			}
			if test.options.Stdout {
				request.Param("stdout", "true")
			}
			if test.options.Container != "" {
				request.Param("container", test.options.Container)
			}
			err := request.Do(t.Context()).Error()
			checkStatusError(t, err, test.code, test.message)
			if test.cause != "" && !apierrors.HasStatusCause(err, metav1.CauseType(test.cause)) {
				t.Errorf("the details do not have the cause %s: %#v", test.cause, err)
			}
		})
	}
}

// TestExecReachesOwnPodOnly is about tenants who make a Pod of somebody else's look like that of their Sandbox. Each does so for a
// Sandbox that has no Pod of its own.
func TestExecReachesOwnPodOnly(t *testing.T) {
	t.Parallel()
	past := metav1.NewTime(time.Now().Add(-time.Hour))
	const victim = "victim"
	for name, test := range map[string]struct {
		sandbox string // its name
		forge   func(sandbox *v1beta1.Sandbox, pod *corev1.Pod)
	}{
		"by an annotation of the Sandbox": {"box", func(s *v1beta1.Sandbox, _ *corev1.Pod) {
			s.Annotations = map[string]string{v1beta1.SandboxPodNameAnnotation: victim}
		}},
		"by its name": {victim, func(*v1beta1.Sandbox, *corev1.Pod) {}},
		"by a label": {"box", func(_ *v1beta1.Sandbox, p *corev1.Pod) {
			p.Labels = map[string]string{v1beta1.SandboxNameHashLabel: naming.Hash("box")}
		}},
		"by a reference with another UID": {"box", func(_ *v1beta1.Sandbox, p *corev1.Pod) {
			p.Labels = map[string]string{v1beta1.SandboxNameHashLabel: naming.Hash("box")}
			// The garbage collector would remove it soon; a finalizer keeps it.
			p.Finalizers = []string{"example.com/hold"}
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "agents.x-k8s.io/v1beta1", Kind: "Sandbox", Name: "box", UID: "forged", Controller: new(true)}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			sandbox := framework.NewSandbox(test.sandbox, func(s *v1beta1.Sandbox) { s.Spec.ShutdownTime = &past })
			victimPod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: victim}, Spec: framework.PodSpec(framework.Image)}
			test.forge(sandbox, victimPod)
			pods := env.kube.CoreV1().Pods(namespace)
			if _, err := pods.Create(t.Context(), victimPod, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { releasePod(t, namespace, victim) })
			eventually(t, "the other Pod runs", func(ctx context.Context) error {
				pod, err := pods.Get(ctx, victim, metav1.GetOptions{})
				if err == nil && pod.Status.Phase != corev1.PodRunning && pod.DeletionTimestamp == nil {
					err = errors.New(string(pod.Status.Phase))
				}
				return err
			})
			create(t, namespace, sandbox)
			if _, err := mergePatch(t.Context(), namespace, test.sandbox, `{"status":{"selector":"","nodeName":"kwok-0","podIPs":["10.90.0.1"]}}`, "status"); err != nil {
				t.Fatal(err)
			}
			for _, protocol := range []framework.Protocol{framework.WebSocket, framework.SPDY} {
				stdout, _, err := execute(t.Context(), env.config, protocol, namespace, test.sandbox, "echo", "hello")
				if stdout != "" || err == nil || !strings.Contains(err.Error(), "no running pod") {
					t.Errorf("%s: got %q and %v, want a conflict", protocol, stdout, err)
				}
			}
		})
	}
}

// releasePod removes the finalizers of a Pod, so that it can go.
func releasePod(t *testing.T, namespace, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	_, err := env.kube.CoreV1().Pods(namespace).Patch(ctx, name, "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Errorf("removing the finalizers of Pod %s: %v", name, err)
	}
}

// TestPlugin runs kubectl-sandbox as people do: by the name of a kubectl command, as a user who may do that and nothing else.
func TestPlugin(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	createReady(t, namespace, framework.NewSandbox("box"))
	kubeconfig := newUser(t, namespace, rule("create", "sandboxes/exec")).kubeconfig(t)
	for name, test := range map[string]struct {
		args []string
		want framework.KubectlResult
	}{
		"output":    {[]string{"--", "echo", "hello"}, framework.KubectlResult{Stdout: "hello\n"}},
		"errors":    {[]string{"--", "sh", "-c", "echo hello >&2"}, framework.KubectlResult{Stderr: "hello\n"}},
		"container": {[]string{"-c", "main", "--", "echo", "hello"}, framework.KubectlResult{Stdout: "hello\n"}},
		"failure":   {[]string{"--", "false"}, framework.KubectlResult{Code: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			got := kubectl(t, namespace, "", append([]string{"sandbox", "exec", "--kubeconfig=" + kubeconfig, "box"}, test.args...)...)
			if test.want.Code != 0 {
				got.Stderr = "" // It is for people.
			}
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}
