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
	"sigs.k8s.io/yaml"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

func TestKubectlGet(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	for i, name := range []string{"beta", "alpha"} {
		createReady(t, namespace, framework.NewSandbox(name, func(s *v1beta1.Sandbox) {
			s.Labels = map[string]string{"team": fmt.Sprintf("team-%d", i)}
		}))
	}

	const age = `\d+m?\d*s`
	for name, test := range map[string]struct {
		args []string
		want string // a regular expression that the whole output matches, runs of spaces made one
	}{
		"the columns of the CRD": {
			[]string{"get", "sandboxes"},
			`NAME READY REASON AGE\nalpha True DependenciesReady ` + age + `\nbeta True DependenciesReady ` + age + `\n`,
		},
		"one by its singular name": {[]string{"get", "sandbox", "alpha", "--no-headers"}, `alpha True DependenciesReady ` + age + `\n`},
		"by its qualified name":    {[]string{"get", "sandboxes.v1beta1.agents.x-k8s.io/alpha", "--no-headers"}, `alpha True DependenciesReady ` + age + `\n`},
		"wide": {
			[]string{"get", "sandbox", "alpha", "-o", "wide"},
			`NAME READY REASON AGE MODE IPS NODE EXPIRES\nalpha True DependenciesReady ` + age + ` Running 10\.90\.\d+\.\d+ kwok-0 <none>\n`,
		},
		"names": {[]string{"get", "sandboxes", "-o", "name"}, `sandbox\.agents\.x-k8s\.io/alpha\nsandbox\.agents\.x-k8s\.io/beta\n`},
		"beside another kind": {
			[]string{"get", "sandboxes,pods", "-o", "name"},
			`sandbox\.agents\.x-k8s\.io/alpha\nsandbox\.agents\.x-k8s\.io/beta\npod/alpha\npod/beta\n`,
		},
		"a label as a column": {
			[]string{"get", "sandboxes", "-L", "team"},
			`NAME READY REASON AGE TEAM\nalpha True DependenciesReady ` + age + ` team-1\nbeta True DependenciesReady ` + age + ` team-0\n`,
		},
		"all labels":           {[]string{"get", "sandbox", "beta", "--show-labels", "--no-headers"}, `beta True DependenciesReady ` + age + ` team=team-0\n`},
		"sorted by a label":    {[]string{"get", "sandboxes", "--sort-by=.metadata.labels.team", "-o", "name"}, `sandbox\.agents\.x-k8s\.io/beta\nsandbox\.agents\.x-k8s\.io/alpha\n`},
		"sorted as a table":    {[]string{"get", "sandboxes", "--sort-by=.metadata.labels.team", "--no-headers"}, `beta .*\nalpha .*\n`},
		"in all namespaces":    {[]string{"get", "sandboxes", "--all-namespaces", "--field-selector=metadata.namespace=" + namespace, "--no-headers"}, namespace + ` alpha .*\n` + namespace + ` beta .*\n`},
		"by a label":           {[]string{"get", "sandboxes", "-l", "team in (team-0, team-9),!other", "-o", "name"}, `sandbox\.agents\.x-k8s\.io/beta\n`},
		"by a field":           {[]string{"get", "sandboxes", "--field-selector=metadata.name=alpha", "-o", "name"}, `sandbox\.agents\.x-k8s\.io/alpha\n`},
		"custom columns":       {[]string{"get", "sandbox", "alpha", "-o", "custom-columns=M:.spec.operatingMode"}, `M\nRunning\n`},
		"a path of the status": {[]string{"get", "sandbox", "alpha", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`}, `True`},
	} {
		t.Run(name, func(t *testing.T) {
			got := oneSpace(mustKubectl(t, namespace, "", test.args...))
			if !regexp.MustCompile(`^` + test.want + `$`).MatchString(got) {
				t.Errorf("got\n%s\nwant a match of\n%s", got, test.want)
			}
		})
	}

	t.Run("as YAML", func(t *testing.T) {
		var got v1beta1.Sandbox
		if err := yaml.UnmarshalStrict([]byte(mustKubectl(t, namespace, "", "get", "sandbox", "alpha", "-o", "yaml")), &got); err != nil {
			t.Fatal(err)
		}
		if got.APIVersion != "agents.x-k8s.io/v1beta1" || got.Kind != "Sandbox" || got.Name != "alpha" {
			t.Errorf("got %s %s %s", got.APIVersion, got.Kind, got.Name)
		}
	})
}

var spaces = regexp.MustCompile(` +`)

// oneSpace makes tables independent of the width of their columns.
func oneSpace(table string) string {
	return strings.ReplaceAll(spaces.ReplaceAllString(table, " "), " \n", "\n")
}

func TestKubectlGetWatch(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := kubectlCommand(ctx, namespace, "get", "sandboxes", "--watch")
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

	create(t, namespace, framework.NewSandbox("box"))
	var lines []string
	for scanner := bufio.NewScanner(output); scanner.Scan(); {
		lines = append(lines, oneSpace(scanner.Text()))
		if strings.HasPrefix(lines[len(lines)-1], "box True DependenciesReady ") {
			break
		}
	}
	if len(lines) < 2 || strings.TrimSpace(lines[0]) != "NAME READY REASON AGE" || !strings.HasPrefix(lines[len(lines)-1], "box True DependenciesReady ") {
		t.Errorf("the watch does not end with the ready Sandbox under one header:\n%s", strings.Join(lines, "\n"))
	}
	for _, line := range lines[1:] {
		if !strings.HasPrefix(line, "box ") {
			t.Errorf("line %q is not about the Sandbox", line)
		}
	}
}

func TestKubectlExplain(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"kind":      {[]string{"sandbox"}, []string{"GROUP: agents.x-k8s.io", "KIND: Sandbox", "VERSION: v1beta1", "spec <SandboxSpec> -required-"}},
		"enum":      {[]string{"sandbox.spec.operatingMode"}, []string{"FIELD: operatingMode", "operatingMode is the run state the Sandbox is meant to be in", "Suspended"}},
		"core type": {[]string{"sandbox.spec.podTemplate.spec.containers.image"}, []string{"FIELD: image <string>", "Container image name"}},
		"status":    {[]string{"sandboxes.status.podIPs"}, []string{"FIELD: podIPs <[]string>", "addresses of the Pod"}},
		"recursive": {[]string{"sandbox.spec", "--recursive"}, []string{"volumeClaimTemplates", "shutdownPolicy", "livenessProbe"}},
		"OpenAPI v2": {
			[]string{"sandbox.spec.operatingMode", "--output=plaintext-openapiv2"},
			[]string{"operatingMode is the run state the Sandbox is meant to be in"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := strings.Join(strings.Fields(mustKubectl(t, "default", "", append([]string{"explain"}, test.args...)...)), " ")
			for _, want := range test.want {
				if !strings.Contains(got, want) {
					t.Errorf("output does not contain %q:\n%s", want, got)
				}
			}
		})
	}
}

func TestKubectlAPIResources(t *testing.T) {
	t.Parallel()
	got := oneSpace(mustKubectl(t, "default", "", "api-resources", "--api-group=agents.x-k8s.io", "-o", "wide", "--no-headers"))
	const want = "sandboxes sandbox agents.x-k8s.io/v1beta1 true Sandbox create,delete,deletecollection,get,list,patch,update,watch\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestKubectlAuthCanI(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	user := newUser(t, namespace, rule("create", "sandboxes/exec")).name
	for name, test := range map[string]struct {
		args []string
		want string
		code int
	}{
		"administrator": {args: []string{"create", "sandboxes/exec"}, want: "yes\n"},
		// To kubectl, what follows the slash is a name; this is how it spells a subresource.
		"user with the right":  {args: []string{"create", "sandboxes", "--subresource=exec", "--as=" + user}, want: "yes\n"},
		"user without a right": {args: []string{"create", "sandboxes", "--subresource=suspend", "--as=" + user}, want: "no\n", code: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := kubectl(t, namespace, "", append([]string{"auth", "can-i"}, test.args...)...)
			if got != (framework.KubectlResult{Stdout: test.want, Code: test.code}) {
				t.Errorf("got %+v, want %q on standard output, nothing on standard error and exit code %d", got, test.want, test.code)
			}
		})
	}
}

func TestKubectlApply(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string]struct {
		args                         []string
		created, unchanged, modified string
	}{
		"client side": {nil, "created", "unchanged", "configured"},
		"server side": {[]string{"--server-side"}, "serverside-applied", "serverside-applied", "serverside-applied"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			apply := func(manifest string) string {
				return mustKubectl(t, namespace, manifest, append([]string{"apply", "-f", "-"}, flags.args...)...)
			}
			suspended := manifest("box", "operatingMode: Suspended")
			if got := apply(suspended); got != "sandbox.agents.x-k8s.io/box "+flags.created+"\n" {
				t.Errorf("first apply: %q", got)
			}
			before := awaitCondition(t, namespace, "box", v1beta1.SandboxConditionSuspended)
			if got := apply(suspended); got != "sandbox.agents.x-k8s.io/box "+flags.unchanged+"\n" {
				t.Errorf("second apply: %q", got)
			}
			checkUnchanged(t, before)
			if got := apply(suspended + "  service: true\n"); got != "sandbox.agents.x-k8s.io/box "+flags.modified+"\n" {
				t.Errorf("apply of a change: %q", got)
			}
			if got := get(t, namespace, "box"); got.Spec.Service == nil || !*got.Spec.Service || got.Generation != 2 {
				t.Errorf("after the change: service %v, generation %d", got.Spec.Service, got.Generation)
			}
			apply(suspended)
			if got := get(t, namespace, "box"); got.Spec.Service != nil {
				t.Errorf("service is %v after it was removed from the manifest", *got.Spec.Service)
			}
		})
	}
}

// TestKubectlApplyRemovesContainer pins that lists merge by key: kubectl sends a strategic merge patch to kinds that take one.
func TestKubectlApplyRemovesContainer(t *testing.T) {
	t.Parallel()
	const sidecar = "podTemplate:\n    spec:\n      containers:\n      - name: sidecar\n        image: sandbox.local/busybox:1\n"
	two := strings.Replace(manifest("box", "operatingMode: Suspended"), "podTemplate:\n    spec:\n      containers:\n", sidecar, 1)
	for name, args := range map[string][]string{"client side": nil, "server side": {"--server-side"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			apply := append([]string{"apply", "-f", "-"}, args...)
			mustKubectl(t, namespace, two, apply...)
			// What somebody else adds to the other container must survive.
			mustKubectl(t, namespace, "", "patch", "sandbox", "box", "--type=strategic",
				`--patch={"spec":{"podTemplate":{"spec":{"containers":[{"name":"main","workingDir":"/tmp"}]}}}}`)
			mustKubectl(t, namespace, manifest("box", "operatingMode: Suspended"), apply...)
			containers := get(t, namespace, "box").Spec.PodTemplate.Spec.Containers
			if len(containers) != 1 || containers[0].Name != "main" || containers[0].WorkingDir != "/tmp" {
				t.Errorf("got containers %+v, want main alone with its added workingDir", containers)
			}
		})
	}
}

func TestKubectlDiff(t *testing.T) {
	t.Parallel()
	for side, args := range map[string][]string{"client side": nil, "server side": {"--server-side"}} {
		t.Run(side, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			mustKubectl(t, namespace, manifest("box", "operatingMode: Suspended"), append([]string{"apply", "-f", "-"}, args...)...)
			before := awaitCondition(t, namespace, "box", v1beta1.SandboxConditionSuspended)
			for name, test := range map[string]struct {
				mode string
				code int
				want string
			}{
				"no difference": {mode: "Suspended"},
				"a difference":  {mode: "Running", code: 1, want: "+  operatingMode: Running"},
				"an error":      {mode: "Sleeping", code: 2}, // or more
			} {
				t.Run(name, func(t *testing.T) {
					got := kubectl(t, namespace, manifest("box", "operatingMode: "+test.mode), append([]string{"diff", "-f", "-"}, args...)...)
					if min(got.Code, 2) != test.code || !strings.Contains(got.Stdout, test.want) || (test.code == 0 && got.Stdout != "") {
						t.Errorf("got %+v, want exit code %d and %q", got, test.code, test.want)
					}
					checkUnchanged(t, before)
				})
			}
		})
	}
}

// TestKubectlChange covers the verbs that change an object, one after the other on one object.
func TestKubectlChange(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	createSettled(t, namespace, "box")
	for _, test := range []struct {
		name  string
		args  []string
		stdin string
		want  string
		check func(*v1beta1.Sandbox) bool
	}{
		{
			"label", []string{"label", "sandbox", "box", "a=b"}, "", "sandbox.agents.x-k8s.io/box labeled\n",
			func(s *v1beta1.Sandbox) bool { return s.Labels["a"] == "b" },
		},
		{
			"remove a label", []string{"label", "sandbox", "box", "a-"}, "", "sandbox.agents.x-k8s.io/box unlabeled\n",
			func(s *v1beta1.Sandbox) bool { _, has := s.Labels["a"]; return !has },
		},
		{
			"annotate", []string{"annotate", "sandbox", "box", "a=b"}, "", "sandbox.agents.x-k8s.io/box annotated\n",
			func(s *v1beta1.Sandbox) bool { return s.Annotations["a"] == "b" },
		},
		{
			"JSON patch", []string{"patch", "sandbox", "box", "--type=json", `--patch=[{"op":"add","path":"/spec/service","value":true}]`}, "",
			"sandbox.agents.x-k8s.io/box patched\n",
			func(s *v1beta1.Sandbox) bool { return s.Spec.Service != nil && *s.Spec.Service },
		},
		{
			"JSON merge patch", []string{"patch", "sandbox", "box", "--type=merge", `--patch={"spec":{"service":null}}`}, "",
			"sandbox.agents.x-k8s.io/box patched\n",
			func(s *v1beta1.Sandbox) bool { return s.Spec.Service == nil },
		},
		{
			"strategic merge patch", []string{"patch", "sandbox", "box", `--patch={"spec":{"podTemplate":{"spec":{"containers":[{"name":"main","env":[{"name":"A","value":"1"}]}]}}}}`}, "",
			"sandbox.agents.x-k8s.io/box patched\n",
			func(s *v1beta1.Sandbox) bool {
				containers := s.Spec.PodTemplate.Spec.Containers
				return len(containers) == 1 && containers[0].Image == framework.Image && len(containers[0].Env) == 1
			},
		},
		{
			"patch the status", []string{"patch", "sandbox", "box", "--subresource=status", "--type=merge", `--patch={"status":{"nodeName":"patched"}}`}, "",
			"sandbox.agents.x-k8s.io/box patched\n",
			func(*v1beta1.Sandbox) bool { return true }, // The controller may have undone it already; see TestStatusIsolation.
		},
		{
			"replace", []string{"replace", "-f", "-"}, manifest("box", "operatingMode: Suspended", "service: false"), "sandbox.agents.x-k8s.io/box replaced\n",
			func(s *v1beta1.Sandbox) bool {
				return s.Spec.Service != nil && !*s.Spec.Service && len(s.Spec.PodTemplate.Spec.Containers[0].Env) == 0
			},
		},
		{
			"set by server-side apply", []string{"apply", "--server-side", "--force-conflicts", "-f", "-"}, manifest("box", "operatingMode: Suspended", "service: true"),
			"sandbox.agents.x-k8s.io/box serverside-applied\n",
			func(s *v1beta1.Sandbox) bool { return s.Spec.Service != nil && *s.Spec.Service },
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := mustKubectl(t, namespace, test.stdin, test.args...); got != test.want {
				t.Errorf("got output %q, want %q", got, test.want)
			}
			if sandbox := get(t, namespace, "box"); !test.check(sandbox) {
				t.Errorf("the change is not to be seen in %+v", sandbox)
			}
		})
	}
}

func TestKubectlEdit(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	createSettled(t, namespace, "box")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := kubectlCommand(ctx, namespace, "edit", "sandbox", "box")
	cmd.Env = append(cmd.Env, "KUBE_EDITOR=sed -i s/infinity/1h/")
	output, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(output), "sandbox.agents.x-k8s.io/box edited") {
		t.Errorf("kubectl edit: %v\n%s", err, output)
	}
	if command := get(t, namespace, "box").Spec.PodTemplate.Spec.Containers[0].Command; len(command) != 2 || command[1] != "1h" {
		t.Errorf("got command %v after the edit", command)
	}
}

func TestKubectlWaitAndDelete(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	mustKubectl(t, namespace, manifest("box"), "create", "-f", "-")
	const timeout = "--timeout=60s"
	for _, args := range [][]string{
		{"wait", "--for=condition=Ready", "sandbox/box", timeout},
		{"wait", "--for=jsonpath={.status.podIPs[0]}", "sandbox/box", timeout},
		{"patch", "sandbox", "box", "--type=merge", `--patch={"spec":{"operatingMode":"Suspended"}}`},
		{"wait", "--for=condition=Suspended", "sandbox/box", timeout},
		{"wait", "--for=condition=Ready=False", "sandbox/box", timeout},
		{"delete", "sandbox", "box", "--wait=false"},
		{"wait", "--for=delete", "sandbox/box", timeout},
		{"delete", "sandbox", "box", "--ignore-not-found"},
	} {
		mustKubectl(t, namespace, "", args...)
	}
	if got := kubectl(t, namespace, "", "delete", "sandbox", "box"); got.Code != 1 || !strings.Contains(got.Stderr, `sandboxes.agents.x-k8s.io "box" not found`) {
		t.Errorf("deleting what is not there: %+v", got)
	}
}

func TestKubectlDryRun(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	before := createSettled(t, namespace, "box")
	for name, test := range map[string]struct {
		stdin string
		args  []string
		want  string
	}{
		"create":            {manifest("other"), []string{"create", "-f", "-"}, "sandbox.agents.x-k8s.io/other created (server dry run)\n"},
		"apply":             {manifest("other"), []string{"apply", "-f", "-"}, "sandbox.agents.x-k8s.io/other created (server dry run)\n"},
		"server-side apply": {manifest("other"), []string{"apply", "--server-side", "-f", "-"}, "sandbox.agents.x-k8s.io/other serverside-applied (server dry run)\n"},
		"annotate":          {"", []string{"annotate", "sandbox", "box", "a=b"}, "sandbox.agents.x-k8s.io/box annotated (server dry run)\n"},
		"patch":             {"", []string{"patch", "sandbox", "box", "--type=merge", `--patch={"spec":{"service":true}}`}, "sandbox.agents.x-k8s.io/box patched"},
		"delete":            {"", []string{"delete", "sandbox", "box"}, "sandbox.agents.x-k8s.io \"box\" deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := mustKubectl(t, namespace, test.stdin, append(test.args, "--dry-run=server")...); !strings.HasPrefix(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
			checkUnchanged(t, before)
			list, err := sandboxes(namespace).List(t.Context(), metav1.ListOptions{})
			if err != nil || len(list.Items) != 1 {
				t.Errorf("after the dry run: %v, %d sandboxes, want 1", err, len(list.Items))
			}
		})
	}
}

func TestKubectlGenerateName(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	generated := strings.Replace(manifest("x", "operatingMode: Suspended"), "name: x", "generateName: box-", 1)
	name := regexp.MustCompile(`^sandbox\.agents\.x-k8s\.io/box-[a-z0-9]{5}\n$`)
	first, second := mustKubectl(t, namespace, generated, "create", "-f", "-", "-o", "name"), mustKubectl(t, namespace, generated, "create", "-f", "-", "-o", "name")
	if !name.MatchString(first) || !name.MatchString(second) || first == second {
		t.Errorf("got names %q and %q, want two different ones made from the prefix", first, second)
	}
}

func TestKubectlRefused(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	const storage = "volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: %s}}}}]"
	mustKubectl(t, namespace, manifest("box", "operatingMode: Suspended", fmt.Sprintf(storage, "1Gi")), "apply", "-f", "-")
	for name, test := range map[string]struct {
		manifest string
		args     []string
		want     []string
	}{
		"unknown field": {
			manifest("other", "replicas: 0"), []string{"create", "--validate=strict"},
			[]string{"Error from server (BadRequest)", `unknown field "spec.replicas"`},
		},
		"unknown field of a Pod": {
			strings.Replace(manifest("other"), "image:", "imagge: x\n        image:", 1), []string{"create", "--validate=strict"},
			[]string{"Error from server (BadRequest)", `unknown field "spec.podTemplate.spec.containers[0].imagge"`},
		},
		"bad name":          {manifest("Bad_Name"), []string{"create"}, []string{"is invalid: metadata.name: Invalid value"}},
		"bad enum":          {manifest("other", "operatingMode: suspended"), []string{"create"}, []string{"is invalid: spec.operatingMode: Unsupported value", `"Running"`, `"Suspended"`}},
		"enum of a pointer": {manifest("other", "shutdownPolicy: delete"), []string{"create"}, []string{"is invalid: spec.shutdownPolicy: Unsupported value"}},
		"changed volumeClaimTemplates": {
			manifest("box", "operatingMode: Suspended", fmt.Sprintf(storage, "2Gi")), []string{"apply"},
			[]string{"is invalid: spec.volumeClaimTemplates: Invalid value: volumeClaimTemplates is immutable"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := kubectl(t, namespace, test.manifest, append(test.args, "-f", "-")...)
			if got.Code != 1 {
				t.Errorf("exit code %d, want 1", got.Code)
			}
			for _, want := range test.want {
				if !strings.Contains(got.Stderr, want) {
					t.Errorf("standard error does not contain %q:\n%s", want, got.Stderr)
				}
			}
		})
	}
	t.Run("volumeClaimTemplates in another spelling are the same", func(t *testing.T) {
		mustKubectl(t, namespace, manifest("box", "operatingMode: Suspended", fmt.Sprintf(storage, "1024Mi")), "apply", "-f", "-")
	})
}
