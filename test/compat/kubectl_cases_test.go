// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"strings"
	"testing"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

// TestK1Apply: create, the same, a change, and the patch types.
func TestK1Apply(t *testing.T) {
	runRows(t, row{id: "thrice", rule: "created, unchanged, configured", run: func(t *tester) {
		namespace := newNamespace(t)
		written := manifest("box", "operatingMode: Suspended")
		labelled := strings.Replace(written, "name: box\n", "name: box\n  labels: {a: b}\n", 1)
		for _, test := range []struct{ manifest, want string }{{written, "created"}, {written, "unchanged"}, {labelled, "configured"}, {written, "configured"}} {
			if got := mustKubectl(t, namespace, test.manifest, "apply", "-f", "-"); got != "sandbox.agents.x-k8s.io/box "+test.want+"\n" {
				t.Errorf("got %q, want %s", got, test.want)
			}
		}
		if labels := get(t, namespace, "box").Labels; len(labels) != 0 {
			t.Errorf("the label that left the manifest is still there: %v", labels)
		}
	}})
}

// TestK4Wait: kubectl wait returns when what it waits for is true now, and not because it was true before.
func TestK4Wait(t *testing.T) {
	const timeout = "--timeout=60s"
	runRows(t,
		row{id: "conditions", rule: "Ready, Suspended, an address and deletion can be waited for", run: func(t *tester) {
			namespace := newNamespace(t)
			mustKubectl(t, namespace, manifest("box"), "create", "-f", "-")
			mustKubectl(t, namespace, "", "wait", "--for=condition=Ready", "sandbox/box", timeout)
			mustKubectl(t, namespace, "", "wait", "--for=jsonpath={.status.podIPs[0]}", "sandbox/box", timeout)
			mustKubectl(t, namespace, "", "wait", "--for=condition=Suspended=False", "sandbox/box", timeout)
			suspend(t, namespace, "box")
			mustKubectl(t, namespace, "", "wait", "--for=condition=Suspended", "sandbox/box", timeout)
			mustKubectl(t, namespace, "", "delete", "sandbox", "box", "--wait=false")
			mustKubectl(t, namespace, "", "wait", "--for=delete", "sandbox/box", timeout)
		}},
		row{id: "not-stale", rule: "wait for Ready right after a resume is about the new Pod", run: func(t *tester) {
			namespace := newNamespace(t)
			create(t, namespace, "box")
			await(t, namespace, "box", ready())
			before := awaitPod(t, namespace, "box")
			suspend(t, namespace, "box")
			await(t, namespace, "box", suspended())
			resume(t, namespace, "box")
			mustKubectl(t, namespace, "", "wait", "--for=condition=Ready", "sandbox/box", timeout)
			if err := ready()(get(t, namespace, "box")); err != nil || awaitPod(t, namespace, "box").UID == before.UID {
				t.Errorf("after wait: %v", err)
			}
		}},
	)
}

// TestK7Explain: kubectl explain finds every field, down to the leaves.
func TestK7Explain(t *testing.T) {
	runRows(t, row{id: "fields", rule: "the fields of the spec, of its Pod and of the status are explained", run: func(t *tester) {
		for path, want := range map[string]string{
			"sandbox.spec": "podTemplate", "sandbox.spec.podTemplate.spec.containers": "image", "sandbox.status.conditions": "lastTransitionTime",
			"sandbox.spec.volumeClaimTemplates.spec.resources": "requests", "sandbox.spec.podTemplate.spec.containers.livenessProbe.httpGet": "port",
		} {
			if got := mustKubectl(t, "default", "", "explain", path); !strings.Contains(got, want) {
				t.Errorf("%s: %s", path, got)
			}
		}
	}})
}

// TestK13Scale: a Sandbox cannot be scaled, and kubectl says so.
func TestK13Scale(t *testing.T) {
	runRows(t, row{id: "not-supported", rule: "it is an error that is about the resource, not a failure of the server; nothing changes", run: func(t *tester) {
		namespace := newNamespace(t)
		create(t, namespace, "s1", framework.Suspended)
		got := kubectl(t, namespace, "", "scale", "sandbox", "s1", "--replicas=0")
		if got.Code == 0 || !strings.Contains(got.Stderr, "Error from server (NotFound)") {
			t.Errorf("got %+v", got)
		}
		if generation := get(t, namespace, "s1").Generation; generation != 1 {
			t.Errorf("generation is %d", generation)
		}
	}})
}

// TestK15GenerateName: the name that is made is good enough for a Service.
func TestK15GenerateName(t *testing.T) {
	runRows(t,
		row{id: "with-service", rule: "a prefix of 58 characters and a hyphen gives a name that a Service can have", run: func(t *tester) {
			namespace := newNamespace(t)
			sandbox := create(t, namespace, "", unscheduled, framework.WithService, func(s *v1beta1.Sandbox) { s.GenerateName = strings.Repeat("a", 57) + "-" })
			if len(sandbox.Name) != 63 {
				t.Errorf("the name has %d characters", len(sandbox.Name))
			}
			await(t, namespace, sandbox.Name, func(s *v1beta1.Sandbox) error { return conditions(whileStarting("; Service Exists"))(s) })
		}},
		row{id: "many", rule: "two hundred names of one prefix are all different", run: func(t *tester) {
			namespace := newNamespace(t)
			seen := map[string]bool{}
			for range 200 {
				seen[create(t, namespace, "", framework.Suspended, func(s *v1beta1.Sandbox) { s.GenerateName = "a-" }).Name] = true
			}
			if len(seen) != 200 {
				t.Errorf("%d names", len(seen))
			}
		}},
	)
}

// TestK16StockCommands: kubectl itself cannot enter a Sandbox and says so, and still can a Pod.
func TestK16StockCommands(t *testing.T) {
	runRows(t, row{id: "exec-and-logs", rule: "they fail with what is wrong, and a Pod is a Pod", run: func(t *tester) {
		namespace := newNamespace(t)
		create(t, namespace, "s1")
		await(t, namespace, "s1", ready())
		for _, args := range [][]string{{"exec", "sandbox/s1", "--", "true"}, {"logs", "sandbox/s1"}, {"port-forward", "sandbox/s1", "80"}} {
			if got := kubectl(t, namespace, "", args...); got.Code == 0 || !strings.Contains(got.Stderr, "Sandbox") {
				t.Errorf("kubectl %s: %+v", args[0], got)
			}
		}
		mustKubectl(t, namespace, "", "exec", "pod/s1", "--", "true")
	}})
}
