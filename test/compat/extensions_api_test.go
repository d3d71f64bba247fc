// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
)

func extensionsREST() rest.Interface { return env.agents.ExtensionsV1beta1().RESTClient() }

// postExtension sends an object of the extensions group in JSON, as somebody does who has no library, and stores nothing. A field that
// there is none of is an error.
func postExtension(t *tester, namespace, resource, kind, spec string) rest.Result {
	t.Helper()
	body := fmt.Sprintf(`{"apiVersion":"extensions.agents.x-k8s.io/v1beta1","kind":%q,"metadata":{"name":"a"},"spec":{%s}}`, kind, spec)
	return extensionsREST().Post().Namespace(namespace).Resource(resource).SetHeader("Content-Type", "application/json").
		Param("dryRun", "All").Param("fieldValidation", "Strict").Body([]byte(body)).Do(t.Context())
}

// refusal is what is wrong with a spec: the code of the answer, and what its message has.
type refusal struct {
	spec    string
	codes   []int32
	message string
}

// TestPoolFields has the rules of the fields of a pool.
func TestPoolFields(t *testing.T) {
	const ref = `"sandboxTemplateRef":{"name":"t1"}`
	post := func(t *tester, spec string) rest.Result {
		t.Helper()
		return postExtension(t, newNamespace(t), "sandboxwarmpools", "SandboxWarmPool", spec)
	}
	rows := []row{
		{id: "defaults", rule: "replicas is 1; a strategy without a type is OnReplenish, and none is made up", run: func(t *tester) {
			bare := raw(t, post(t, ref))
			if replicas, strategy := at(bare, "spec", "replicas"), at(bare, "spec", "updateStrategy"); replicas != float64(1) || strategy != nil {
				t.Errorf("replicas is %v, updateStrategy %v", replicas, strategy)
			}
			if got := at(raw(t, post(t, ref+`,"replicas":null,"updateStrategy":{}`)), "spec", "updateStrategy", "type"); got != "OnReplenish" {
				t.Errorf("the type is %v", got)
			}
		}},
		{id: "columns", rule: "kubectl get shows Name, Ready, Desired and Age; what is zero is shown as nothing", run: func(t *tester) {
			namespace := newNamespace(t)
			idlePool(t, namespace)
			awaitPool(t, namespace, "p1", 0, 0)
			table := table(t, extensionsREST(), namespace, "sandboxwarmpools")
			got := strings.Replace(strings.Join(columnsOf(table), " "), " Template", "", 1) // It came with v1.0.5.
			if want := "Name Ready Desired Age"; got != want {
				t.Errorf("columns are %s, want %s", got, want)
			}
			if cells := table.Rows[0].Cells; cells[0] != "p1" || cells[1] != nil && fmt.Sprint(cells[1]) != "" || fmt.Sprint(cells[2]) != "0" {
				t.Errorf("got %v", cells)
			}
		}},
		{id: "columns-template", rule: "and the template", beyond: "since v1.0.5", run: func(t *tester) {
			namespace := newNamespace(t)
			idlePool(t, namespace)
			table := table(t, extensionsREST(), namespace, "sandboxwarmpools")
			for i, column := range table.ColumnDefinitions {
				if column.Name == "Template" && table.Rows[0].Cells[i] == "t1" {
					return
				}
			}
			t.Errorf("got %+v", table)
		}},
	}
	for id, test := range map[string]refusal{
		"no-template":          {`"replicas":1`, invalid, "spec.sandboxTemplateRef"},
		"no-template-name":     {`"sandboxTemplateRef":{}`, invalid, "spec.sandboxTemplateRef.name: Required value"},
		"replicas-negative":    {ref + `,"replicas":-1`, invalid, "spec.replicas"},
		"replicas-a-string":    {ref + `,"replicas":"3"`, malformed, "replicas"},
		"replicas-too-many":    {ref + `,"replicas":2147483648`, malformed, "replicas"},
		"replicas-no-integer":  {ref + `,"replicas":1.5`, malformed, "replicas"},
		"strategy-unknown":     {ref + `,"updateStrategy":{"type":"RollingUpdate"}`, invalid, "spec.updateStrategy.type: Unsupported value"},
		"field-of-another-api": {ref + `,"template":{}`, []int32{400}, `unknown field "spec.template"`},
	} {
		rows = append(rows, row{id: id, rule: "refused: " + test.message, run: func(t *tester) {
			refused(t, test.spec, post(t, test.spec).Error(), test.codes, test.message)
		}})
	}
	runRows(t, rows...)
}

// TestClaimFields has the rules of the fields of a claim that need neither its pool nor its template.
func TestClaimFields(t *testing.T) {
	const ref = `"warmPoolRef":{"name":"p1"}`
	post := func(t *tester, spec string) rest.Result {
		t.Helper()
		return postExtension(t, newNamespace(t), "sandboxclaims", "SandboxClaim", spec)
	}
	rows := []row{
		{id: "lifecycle", rule: "a time to live of nothing and the deletion in the foreground are what a claim may have", run: func(t *tester) {
			got := raw(t, post(t, ref+`,"lifecycle":{"ttlSecondsAfterFinished":0,"shutdownPolicy":"DeleteForeground","shutdownTime":"2030-01-01T09:00:00+09:00"}`))
			want := map[string]any{"ttlSecondsAfterFinished": float64(0), "shutdownPolicy": "DeleteForeground"}
			lifecycle, _ := at(got, "spec", "lifecycle").(map[string]any)
			shutdown, err := time.Parse(time.RFC3339, fmt.Sprint(lifecycle["shutdownTime"]))
			if err != nil || !shutdown.Equal(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)) {
				t.Errorf("%v, shutdownTime is %v", err, lifecycle["shutdownTime"])
			}
			delete(lifecycle, "shutdownTime")
			if diff := cmp.Diff(want, lifecycle); diff != "" {
				t.Errorf("lifecycle (-want +got):\n%s", diff)
			}
		}},
		{id: "empty-value", rule: "a variable may be empty", run: func(t *tester) {
			got := raw(t, post(t, ref+`,"env":[{"name":"A","value":""}]`))
			if diff := cmp.Diff([]any{map[string]any{"name": "A", "value": ""}}, at(got, "spec", "env")); diff != "" {
				t.Errorf("env (-want +got):\n%s", diff)
			}
		}},
		{id: "no-value", rule: "one without a value is refused, or empty", run: func(t *tester) {
			result := post(t, ref+`,"env":[{"name":"A"}]`)
			if err := result.Error(); err != nil {
				refused(t, "no value", err, invalid, "spec.env[0].value: Required value")
				return
			}
			if diff := cmp.Diff([]any{map[string]any{"name": "A", "value": ""}}, at(raw(t, result), "spec", "env")); diff != "" {
				t.Errorf("env (-want +got):\n%s", diff)
			}
		}},
		{id: "columns", rule: "kubectl get shows Name, Ready, Sandbox, Reason and Age", run: func(t *tester) {
			namespace := newNamespace(t)
			fillPool(t, namespace, 1)
			claim := bind(t, namespace, "c1")
			table := table(t, extensionsREST(), namespace, "sandboxclaims")
			if diff := cmp.Diff([]string{"Name", "Ready", "Sandbox", "Reason", "Age"}, columnsOf(table)); diff != "" {
				t.Errorf("columns (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]any{"c1", "True", claim.Status.Sandbox.Name, "DependenciesReady"}, table.Rows[0].Cells[:4]); diff != "" {
				t.Errorf("cells (-want +got):\n%s", diff)
			}
		}},
		{id: "status-is-apart", rule: "a status that is sent with a claim is dropped", run: func(t *tester) {
			claim := createClaim(t, newNamespace(t), "c1", func(c *extensionsv1beta1.SandboxClaim) { c.Status.Sandbox.Name = "forged" })
			if claim.Status.Sandbox.Name != "" {
				t.Errorf("status is %+v", claim.Status)
			}
		}},
	}
	for id, test := range map[string]refusal{
		"no-pool":             {``, invalid, "spec.warmPoolRef"},
		"no-pool-name":        {`"warmPoolRef":{}`, invalid, "spec.warmPoolRef.name: Required value"},
		"ttl-negative":        {ref + `,"lifecycle":{"ttlSecondsAfterFinished":-1}`, invalid, "spec.lifecycle.ttlSecondsAfterFinished"},
		"ttl-too-long":        {ref + `,"lifecycle":{"ttlSecondsAfterFinished":2147483648}`, malformed, "ttlSecondsAfterFinished"},
		"policy-unknown":      {ref + `,"lifecycle":{"shutdownPolicy":"delete"}`, invalid, "spec.lifecycle.shutdownPolicy: Unsupported value"},
		"time-without-zone":   {ref + `,"lifecycle":{"shutdownTime":"2030-01-01T10:00:00"}`, malformed, ""},
		"variable-nameless":   {ref + `,"env":[{"value":"a"}]`, invalid, "spec.env[0].name: Required value"},
		"field-of-v1alpha1":   {ref + `,"sandboxTemplateRef":{"name":"t1"}`, []int32{400}, `unknown field "spec.sandboxTemplateRef"`},
		"volume-without-spec": {ref + `,"volumeClaimTemplates":[{"metadata":{"name":"data"}}]`, invalid, "spec.volumeClaimTemplates[0].spec"},
	} {
		rows = append(rows, row{id: id, rule: "refused: " + test.message, run: func(t *tester) {
			refused(t, test.spec, post(t, test.spec).Error(), test.codes, test.message)
		}})
	}
	runRows(t, rows...)
}

// TestClaimEvents has the events about claims.
func TestClaimEvents(t *testing.T) {
	awaitEvent := func(t *tester, namespace, reason, action, note string) {
		t.Helper()
		eventually(t, "event "+reason, func(context.Context) error {
			events := recorded(t, namespace, "SandboxClaim", "c1", reason)
			for _, event := range events {
				if event.Type == "Normal" && event.Action == action && event.Note == note {
					return nil
				}
			}
			return fmt.Errorf("there are %+v", events)
		})
	}
	runRows(t,
		row{id: "adopted", rule: "a warm claim has SandboxAdopted", run: func(t *tester) {
			namespace := newNamespace(t)
			fillPool(t, namespace, 1)
			claim := bind(t, namespace, "c1")
			awaitEvent(t, namespace, "SandboxAdopted", "Adoption", fmt.Sprintf("Adopted warm pool Sandbox %q", claim.Status.Sandbox.Name))
		}},
		row{id: "provisioned", rule: "a cold one SandboxProvisioned", run: func(t *tester) {
			namespace := newNamespace(t)
			idlePool(t, namespace)
			createClaim(t, namespace, "c1")
			awaitEvent(t, namespace, "SandboxProvisioned", "Provisioning", `Created Sandbox "c1"`)
		}},
		row{id: "expired", rule: "one whose time is over ClaimExpired", run: func(t *tester) {
			namespace := newNamespace(t)
			idlePool(t, namespace)
			createClaim(t, namespace, "c1", withLifecycle(extensionsv1beta1.Lifecycle{ShutdownTime: new(metav1.NewTime(time.Now().Add(-time.Second)))}))
			awaitEvent(t, namespace, "ClaimExpired", "Claim Expired", "Claim expired")
		}},
	)
}
