// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

// TestDeleteDuringRestart deletes Sandboxes, and the namespace that they are in, while the server is replaced: it must never look
// to the garbage collector as if owners were gone, nor keep anything from going.
func TestDeleteDuringRestart(t *testing.T) {
	t.Run("Sandboxes", func(t *testing.T) {
		sh := newShell(t)
		sh.applyReady(t, "kept", framework.WithVolume("home"), framework.WithService)
		pod := sh.kubectl(t, "get", "pod", "kept", "-o", "jsonpath={.metadata.uid}")
		applyAll(t, sh)
		sh.kubectl(t, "delete", "sandboxes", "-l", "doomed", "--wait=false")
		restart(t, apiServer)
		for _, name := range doomed() {
			sh.insist(t, "wait", "--for=delete", "sandbox/"+name, "pod/"+name, "service/"+name, "persistentvolumeclaim/home-"+name, "--timeout="+patience.String())
		}
		if got := sh.kubectl(t, "get", "pod", "kept", "-o", "jsonpath={.metadata.uid}"); got != pod {
			t.Errorf("the pod of a sandbox that was not deleted has UID %s, had %s", got, pod)
		}
		sh.kubectl(t, "get", "service/kept", "persistentvolumeclaim/home-kept")
	})
	t.Run("Namespace", func(t *testing.T) {
		sh := newShell(t)
		applyAll(t, sh)
		sh.kubectl(t, "delete", "namespace", sh.namespace, "--wait=false")
		restart(t, apiServer)
		sh.insist(t, "wait", "--for=delete", "namespace/"+sh.namespace, "--timeout="+patience.String())
	})
}

// doomed are the names of Sandboxes to delete.
func doomed() []string {
	names := make([]string, 3)
	for i := range names {
		names[i] = fmt.Sprintf("doomed-%d", i)
	}
	return names
}

// applyAll applies the doomed Sandboxes with everything that a Sandbox can own, and waits until they are ready.
func applyAll(t *testing.T, sh shell) {
	t.Helper()
	for _, name := range doomed() {
		sandbox := framework.NewSandbox(name, framework.WithVolume("home"), framework.WithService)
		sandbox.Labels = map[string]string{"doomed": ""}
		sh.apply(t, sandbox)
	}
	for _, name := range doomed() {
		sh.await(t, "Ready", name)
	}
}
