// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

// TestSandbox is the main job: a Sandbox is made, used, suspended, resumed with what was written to it, and deleted with all it owns.
func TestSandbox(t *testing.T) {
	t.Parallel()
	sh := newShell(t)
	sh.applyReady(t, "box", framework.WithVolume("home"), framework.WithService)
	if got := sh.kubectl(t, "sandbox", "exec", "box", "--", "sh", "-c", "echo hello from $(hostname) | tee /home/greeting"); got != "hello from box\n" {
		t.Fatalf("exec printed %q", got)
	}
	claim := sh.kubectl(t, "get", "persistentvolumeclaim", "home-box", "-o", "jsonpath={.metadata.uid}")

	sh.kubectl(t, "sandbox", "suspend", "box", "--wait")
	if got := sh.kubectl(t, "get", "pods", "-o", "name"); got != "" {
		t.Errorf("a suspended sandbox has pods: %s", got)
	}
	sh.refused(t, "suspended", "sandbox", "exec", "box", "--", "true")

	sh.kubectl(t, "sandbox", "resume", "box", "--wait")
	if got := sh.kubectl(t, "sandbox", "exec", "box", "--", "cat", "/home/greeting"); got != "hello from box\n" {
		t.Errorf("after resume the file has %q", got)
	}
	if got := sh.kubectl(t, "get", "persistentvolumeclaim", "home-box", "-o", "jsonpath={.metadata.uid}"); got != claim {
		t.Errorf("the claim has UID %s, had %s", got, claim)
	}

	sh.kubectl(t, "delete", "sandbox", "box", "--timeout="+patience.String())
	sh.awaitNoChildren(t)
}

// awaitNoChildren waits until nothing is left of what Sandboxes own.
func (sh shell) awaitNoChildren(t *testing.T) {
	t.Helper()
	for _, kind := range []string{"pods", "services", "persistentvolumeclaims"} {
		sh.kubectl(t, "wait", "--for=delete", kind, "--all", "--timeout="+patience.String())
	}
}

// TestApplyAfterSuspend makes sure that a manifest which says Running does not silently wake what was suspended.
func TestApplyAfterSuspend(t *testing.T) {
	t.Parallel()
	sh := newShell(t)
	manifest := manifests(t, framework.NewSandbox("box", func(s *v1beta1.Sandbox) { s.Spec.OperatingMode = v1beta1.SandboxOperatingModeRunning }))
	sh.pipe(t, manifest, "apply", "--server-side", "-f", "-")
	sh.await(t, "Ready", "box")
	sh.kubectl(t, "sandbox", "suspend", "box", "--wait")

	r := sh.run(t, manifest, "apply", "--server-side", "-f", "-")
	if r.Code == 0 || !strings.Contains(r.Stderr, "conflict") || !strings.Contains(r.Stderr, ".spec.operatingMode") {
		t.Errorf("apply: exit code %d, want a conflict about .spec.operatingMode\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	if mode := sh.get(t, "box").Spec.OperatingMode; mode != v1beta1.SandboxOperatingModeSuspended {
		t.Errorf("operatingMode is %s after the conflict", mode)
	}
	sh.pipe(t, manifest, "apply", "--server-side", "--force-conflicts", "-f", "-")
	sh.await(t, "Ready", "box")
}
