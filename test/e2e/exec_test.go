// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/rest"
	utilexec "k8s.io/client-go/util/exec"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

// execRights are all that a person needs to exec with the plugin.
func execRights() []string {
	return []string{"--verb=get,create", "--resource=sandboxes.agents.x-k8s.io,sandboxes.agents.x-k8s.io/exec"}
}

func TestExec(t *testing.T) {
	t.Parallel()
	sh := newShell(t)
	sh.applyReady(t, "box", func(s *v1beta1.Sandbox) {
		second := s.Spec.PodTemplate.Spec.Containers[0].DeepCopy()
		second.Name = "second"
		second.Env = []corev1.EnvVar{{Name: "WHERE", Value: "second"}}
		s.Spec.PodTemplate.Spec.Containers = append(s.Spec.PodTemplate.Spec.Containers, *second)
	})

	t.Run("streams and exit code", func(t *testing.T) {
		r := sh.run(t, "", "sandbox", "exec", "box", "--", "sh", "-c", "echo out; echo err >&2; exit 7")
		if r.Stdout != "out\n" || !strings.HasPrefix(r.Stderr, "err\n") || r.Code != 7 {
			t.Errorf("got exit code %d, output %q, error output %q", r.Code, r.Stdout, r.Stderr)
		}
	})
	t.Run("standard input ends", func(t *testing.T) {
		input := strings.Repeat("0123456789abcde\n", 1<<16)
		sum := sha256.Sum256([]byte(input))
		want := hex.EncodeToString(sum[:]) + "  -\n"
		if got := sh.pipe(t, input, "sandbox", "exec", "-i", "box", "--", "sha256sum"); got != want {
			t.Errorf("the sum of 1 MiB is %q, want %q", got, want)
		}
	})
	t.Run("container", func(t *testing.T) {
		for container, want := range map[string]string{"main": "\n", "second": "second\n"} {
			if got := sh.kubectl(t, "sandbox", "exec", "-c", container, "box", "--", "sh", "-c", "echo $WHERE"); got != want {
				t.Errorf("in %s: got %q, want %q", container, got, want)
			}
		}
		sh.refused(t, "third", "sandbox", "exec", "-c", "third", "box", "--", "true")
	})
	t.Run("command that does not exist", func(t *testing.T) {
		sh.refused(t, "no-such-command", "sandbox", "exec", "box", "--", "no-such-command")
	})
}

// TestExecRights holds what a person may do against a real kubelet: right to the Pod comes from create on sandboxes/exec alone.
func TestExecRights(t *testing.T) {
	t.Parallel()
	sh := newShell(t)
	sh.applyReady(t, "box")
	for _, test := range []struct {
		name, verbs string
		allowed     bool
	}{
		{"reader", "get", false},
		{"operator", "get,create", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, config := sh.user(t, test.name, "--verb="+test.verbs, "--resource=sandboxes.agents.x-k8s.io/exec")
			for _, protocol := range []framework.Protocol{framework.WebSocket, framework.SPDY} {
				stdout, err := execute(t, config, protocol, sh.namespace, "box", "sh", "-c", "hostname; exit 7")
				var exit utilexec.CodeExitError
				switch {
				case test.allowed && (stdout != "box\n" || !errors.As(err, &exit) || exit.Code != 7):
					t.Errorf("%s: got %q and %v, want output and exit code of the command", protocol, stdout, err)
				case !test.allowed && (stdout != "" || err == nil || !strings.Contains(err.Error(), "forbidden")):
					t.Errorf("%s: got %q and %v, want it forbidden", protocol, stdout, err)
				}
			}
		})
	}
}

// execute runs a command in a Sandbox, over the one protocol and no other.
func execute(t *testing.T, config *rest.Config, protocol framework.Protocol, namespace, sandbox string, command ...string) (stdout string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	url := framework.SandboxExecURL(env.agents.AgentsV1beta1().RESTClient(), namespace, sandbox, command...)
	stdout, _, err = framework.Exec(ctx, config, protocol, url)
	return stdout, err
}

// TestExecStaysInSandbox is about a tenant who may write everything that a tenant can of his Sandboxes, and tries to make exec enter
// a Pod that is not one of theirs: a Pod of nobody, that of another Sandbox, and one that has the name which his own should have.
func TestExecStaysInSandbox(t *testing.T) {
	t.Parallel()
	sh := newShell(t)
	sh.applyReady(t, "mine")
	sh.applyReady(t, "other")
	sh.apply(t, framework.NewSandbox("asleep", framework.Suspended))
	sh.await(t, "Suspended", "asleep")
	for _, pod := range []string{"bare", "asleep"} {
		sh.kubectl(t, "run", pod, "--image="+framework.Image, "--command", "--", "sleep", "infinity")
	}
	sh.kubectl(t, "wait", "--for=condition=Ready", "pod/bare", "pod/asleep", "--timeout="+patience.String())

	sh.kubectl(t, "create", "serviceaccount", "tenant")
	sh.kubectl(t, "create", "rolebinding", "tenant", "--clusterrole=sandbox-edit", "--serviceaccount="+sh.namespace+":tenant")
	tenant, _ := sh.login(t, "tenant")
	tenant.kubectl(t, "sandbox", "resume", "asleep")
	for _, target := range []string{"bare", "other", "asleep"} {
		for _, sandbox := range []string{"mine", "asleep"} {
			tenant.kubectl(t, "annotate", "--overwrite", "sandbox", sandbox, v1beta1.SandboxPodNameAnnotation+"="+target)
			tenant.kubectl(t, "label", "--overwrite", "sandbox", sandbox, "run="+target,
				v1beta1.SandboxNameHashLabel+"="+naming.Hash(target), v1beta1.AdoptableLabel+"=true")
			status := fmt.Sprintf(`{"status":{"selector":"run=%s","podIPs":["10.88.0.1"]}}`, target)
			tenant.refused(t, "forbidden", "patch", "sandbox", sandbox, "--subresource=status", "--type=merge", "-p", status)
			// Status in a write of the Sandbox itself is ignored.
			tenant.kubectl(t, "patch", "sandbox", sandbox, "--type=merge", "-p", status)
		}
		if got := tenant.kubectl(t, "sandbox", "exec", "mine", "--", "hostname"); got != "mine\n" {
			t.Errorf("with %s for a target, exec reached %q", target, got)
		}
		tenant.refused(t, "no running pod", "sandbox", "exec", "asleep", "--", "hostname")
	}
}

// TestExecAudit follows an exec through the audit logs: that of kube-apiserver has the person's request and that which the server made
// in turn, under one ID; that of the server names the Pod next to the person.
func TestExecAudit(t *testing.T) {
	t.Parallel()
	sh := newShell(t)
	sh.applyReady(t, "box")
	user, _ := sh.user(t, "person", execRights()...)
	user.kubectl(t, "sandbox", "exec", "box", "--", "true")
	person := "system:serviceaccount:" + sh.namespace + ":person"

	var id string
	eventually(t, "audit events of both requests", func(context.Context) error {
		own, err := findAuditEvent(person, func(e *auditv1.Event) bool {
			return e.User.Username == person && isExec(e, "sandboxes", sh.namespace)
		})
		if err != nil {
			return fmt.Errorf("request of the person: %w", err)
		}
		id = string(own.AuditID)
		_, err = findAuditEvent(id, func(e *auditv1.Event) bool {
			return e.AuditID == own.AuditID && isExec(e, "pods", sh.namespace) &&
				e.User.Username == "system:serviceaccount:"+systemNamespace+":sandbox-apiserver"
		})
		if err != nil {
			return fmt.Errorf("request of the server with audit ID %s: %w", id, err)
		}
		return nil
	})
	eventually(t, "audit event of sandbox-apiserver", func(ctx context.Context) error {
		r := env.kubectl.Run(ctx, t, systemNamespace, "", "logs", "deployment/"+apiServer, "--since=5m")
		for line := range strings.Lines(r.Stdout) {
			var event auditv1.Event
			if json.Unmarshal([]byte(line), &event) == nil && string(event.AuditID) == id && event.User.Username == person &&
				strings.HasPrefix(event.Annotations["exec.agents.x-k8s.io/pod"], "box/") {
				return nil
			}
		}
		return fmt.Errorf("no event with audit ID %s that names person and pod %s", id, r.Stderr)
	})
}

func isExec(e *auditv1.Event, resource, namespace string) bool {
	return e.ObjectRef != nil && e.ObjectRef.Resource == resource && e.ObjectRef.Subresource == "exec" && e.ObjectRef.Namespace == namespace
}

// findAuditEvent returns the first event in kube-apiserver's log whose record contains a text and that matches.
func findAuditEvent(text string, match func(*auditv1.Event) bool) (*auditv1.Event, error) {
	var found *auditv1.Event
	err := framework.EachAuditEvent(env.auditLog, text, func(event *auditv1.Event) {
		if found == nil && match(event) {
			found = event
		}
	})
	if err == nil && found == nil {
		err = errors.New("no such audit event")
	}
	return found, err
}
