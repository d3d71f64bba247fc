// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bufio"
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

// Manifests as users write them. The pool has as many members as the test says.
const (
	templateManifest = `apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxTemplate
metadata: {name: t1}
spec:
  podTemplate:
    spec:
      containers:
      - name: main
        image: ` + framework.Image + `
`
	poolManifest = `apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxWarmPool
metadata: {name: p1}
spec:
  replicas: %d
  sandboxTemplateRef: {name: t1}
`
	claimManifest = `apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxClaim
metadata: {name: c1}
spec:
  warmPoolRef: {name: p1}
`
)

func TestKubectlGetClaims(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	fillPool(t, namespace, 2)
	sandbox := createBound(t, namespace, "warm").Status.Sandbox.Name
	if _, err := claims(namespace).Create(t.Context(), framework.NewClaim("lost", "nope"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitClaim(t, namespace, "lost", claimReason(extensionsv1beta1.ClaimReasonWarmPoolNotFound))
	awaitPool(t, namespace, 2)
	if _, err := pools(namespace).Create(t.Context(), framework.NewPool("empty", templateName, 0), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	const age = `\d+m?\d*s`
	for name, test := range map[string]struct {
		args []string
		want string // a regular expression that the whole output matches, runs of spaces made one
	}{
		"claims": {
			[]string{"get", "sandboxclaims"},
			`NAME READY SANDBOX REASON AGE\nlost False WarmPoolNotFound ` + age + `\nwarm True ` + sandbox + ` DependenciesReady ` + age + `\n`,
		},
		"one by its short name":   {[]string{"get", "sandboxclaim", "warm", "--no-headers"}, `warm True ` + sandbox + ` DependenciesReady ` + age + `\n`},
		"pools by the short name": {[]string{"get", "swp"}, `NAME READY DESIRED AGE\nempty 0 ` + age + `\np1 2 2 ` + age + `\n`},
		"wide":                    {[]string{"get", "swp", "p1", "-o", "wide"}, `NAME READY DESIRED TEMPLATE AGE\np1 2 2 t1 ` + age + `\n`},
		"templates":               {[]string{"get", "sandboxtemplates"}, `NAME AGE\nt1 ` + age + `\n`},
		"several kinds": {
			[]string{"get", "sandboxtemplate,swp,sandboxclaim", "-o", "name"},
			`sandboxtemplate\.extensions\.agents\.x-k8s\.io/t1\n(sandboxwarmpool\.extensions\.agents\.x-k8s\.io/.*\n){2}(sandboxclaim\.extensions\.agents\.x-k8s\.io/.*\n){2}`,
		},
		"by a field":           {[]string{"get", "sandboxclaims", "--field-selector=status.sandbox.name=" + sandbox, "-o", "name"}, `sandboxclaim\.extensions\.agents\.x-k8s\.io/warm\n`},
		"a path of the status": {[]string{"get", "sandboxclaim", "warm", "-o", `jsonpath={.status.sandbox.name}`}, sandbox},
	} {
		t.Run(name, func(t *testing.T) {
			got := oneSpace(mustKubectl(t, namespace, "", test.args...))
			if !regexp.MustCompile(`^` + test.want + `$`).MatchString(got) {
				t.Errorf("got\n%s\nwant a match of\n%s", got, test.want)
			}
		})
	}
}

// TestKubectlClaims walks through what a user does, with manifests.
func TestKubectlClaims(t *testing.T) {
	t.Parallel()
	for side, flag := range map[string]string{"client side": "--server-side=false", "server side": "--server-side=true"} {
		t.Run(side, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			apply := func(manifest string) string {
				t.Helper()
				return mustKubectl(t, namespace, manifest, "apply", flag, "-f", "-")
			}
			apply(templateManifest + "---\n" + fmt.Sprintf(poolManifest, 2) + "---\n" + claimManifest)
			const timeout = "--timeout=60s"
			mustKubectl(t, namespace, "", "wait", "--for=condition=Ready", "sandboxclaim/c1", timeout)
			mustKubectl(t, namespace, "", "wait", "--for=jsonpath={.status.readyReplicas}=2", "swp/p1", timeout)
			before := awaitClaim(t, namespace, "c1", announced)
			if got := kubectl(t, namespace, claimManifest, "diff", flag, "-f", "-"); got.Code != 0 {
				t.Errorf("diff of what was applied: %+v", got)
			}
			apply(claimManifest)
			if after := awaitClaim(t, namespace, "c1", announced); after.Generation != before.Generation || after.Status.Sandbox.Name != before.Status.Sandbox.Name {
				t.Errorf("applied twice: before %+v, after %+v", before, after)
			}
			apply(claimManifest + "  lifecycle: {ttlSecondsAfterFinished: 60}\n")
			if got := awaitClaim(t, namespace, "c1", announced); got.Generation != 2 || got.Spec.Lifecycle == nil {
				t.Errorf("generation %d, lifecycle %+v", got.Generation, got.Spec.Lifecycle)
			}
			apply(claimManifest)
			if got := awaitClaim(t, namespace, "c1", announced); got.Spec.Lifecycle != nil {
				t.Errorf("lifecycle is %+v after it was removed from the manifest", got.Spec.Lifecycle)
			}
			apply(fmt.Sprintf(poolManifest, 1))
			awaitPool(t, namespace, 1)
			mustKubectl(t, namespace, "", "delete", "sandboxclaim", "c1", timeout)
			mustKubectl(t, namespace, "", "wait", "--for=delete", "sandbox/"+before.Status.Sandbox.Name, timeout)
			mustKubectl(t, namespace, "", "delete", "swp,sandboxtemplate", "--all", timeout)
		})
	}
}

// TestKubectlGetClaimsWatch proves that a watch of tables shows a claim from its creation on.
func TestKubectlGetClaimsWatch(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	createTemplate(t, namespace)
	createPool(t, namespace, 0)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := kubectlCommand(ctx, namespace, "get", "sandboxclaims", "--watch")
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		_ = cmd.Wait() // It was killed.
	}()
	createClaim(t, namespace, "c1")
	var lines []string
	for scanner := bufio.NewScanner(output); scanner.Scan(); {
		lines = append(lines, oneSpace(scanner.Text()))
		if strings.HasPrefix(lines[len(lines)-1], "c1 True c1 DependenciesReady ") {
			return
		}
	}
	t.Errorf("the watch does not show the ready claim:\n%s", strings.Join(lines, "\n"))
}

func TestKubectlExtensionsAPIResources(t *testing.T) {
	t.Parallel()
	got := oneSpace(mustKubectl(t, "default", "", "api-resources", "--api-group=extensions.agents.x-k8s.io", "-o", "wide", "--no-headers"))
	const verbs = " create,delete,deletecollection,get,list,patch,update,watch\n"
	const want = "sandboxclaims sandboxclaim extensions.agents.x-k8s.io/v1beta1 true SandboxClaim" + verbs +
		"sandboxtemplates sandboxtemplate extensions.agents.x-k8s.io/v1beta1 true SandboxTemplate" + verbs +
		"sandboxwarmpools swp extensions.agents.x-k8s.io/v1beta1 true SandboxWarmPool" + verbs
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestKubectlExplainExtensions(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"sandboxclaim":                                          "KIND: SandboxClaim",
		"sandboxclaim.spec.warmPoolRef.name":                    "FIELD: name <string>",
		"sandboxclaim.spec.lifecycle.shutdownPolicy":            "DeleteForeground",
		"sandboxclaim.status.sandbox.podIPs":                    "FIELD: podIPs <[]string>",
		"swp.spec.updateStrategy.type":                          "OnReplenish",
		"swp.status.readyReplicas":                              "FIELD: readyReplicas <integer>",
		"sandboxtemplate.spec.podTemplate.spec.containers.name": "FIELD: name <string>",
		"sandboxtemplate.spec.networkPolicy.egress.to.ipBlock":  "FIELD: ipBlock <IPBlock>",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			got := strings.Join(strings.Fields(mustKubectl(t, "default", "", "explain", path)), " ")
			if !strings.Contains(got, want) || !strings.Contains(got, "DESCRIPTION: ") || strings.Contains(got, "<empty>") {
				t.Errorf("%q, or a description, is not in\n%s", want, got)
			}
		})
	}
}

// TestKubectlDryRunOfClaim proves that the preflight of clients takes nothing.
func TestKubectlDryRunOfClaim(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	pool := fillPool(t, namespace, 1)
	const want = "sandboxclaim.extensions.agents.x-k8s.io/c1 created (server dry run)\n"
	if got := mustKubectl(t, namespace, claimManifest, "create", "--dry-run=server", "-f", "-"); got != want {
		t.Errorf("got %q", got)
	}
	if owned, err := ownedBy(t.Context(), namespace, pool.UID); err != nil || len(owned) != 1 {
		t.Errorf("%v, the pool has %d members", err, len(owned))
	}
	list, err := claims(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("%v, there are %d claims", err, len(list.Items))
	}
}
