// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

// claimBody is what the Python SDK sends, with more annotations.
func claimBody(name string, annotations map[string]string) map[string]any {
	all := map[string]string{"agents.x-k8s.io/client-first-requested-at": time.Now().UTC().Format("2006-01-02T15:04:05.000000+00:00")}
	for key, value := range annotations {
		all[key] = value
	}
	return map[string]any{
		"apiVersion": "extensions.agents.x-k8s.io/v1beta1",
		"kind":       "SandboxClaim",
		"metadata":   map[string]any{"name": name, "annotations": all, "labels": map[string]string{"agents.x-k8s.io/created-by": "python-client"}},
		"spec":       map[string]any{"warmPoolRef": map[string]any{"name": poolName}},
	}
}

// postClaim creates a claim without any library of this project's, and returns the resourceVersion of the response.
func postClaim(t *testing.T, namespace string, body map[string]any) string {
	t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	response, err := extensionsREST().Post().AbsPath("/apis/extensions.agents.x-k8s.io/v1beta1/namespaces", namespace, "sandboxclaims").
		SetHeader("Content-Type", "application/json").SetHeader("Accept", "application/json").Body(data).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var created metav1.PartialObjectMetadata
	if err := json.Unmarshal(response, &created); err != nil || created.ResourceVersion == "" {
		t.Fatalf("%v, got %s", err, response)
	}
	return created.ResourceVersion
}

// claimEvent is what the Python SDK reads of an event.
type claimEvent struct {
	Type   string
	Object struct {
		Metadata struct{ ResourceVersion string }
		Status   struct {
			Sandbox    struct{ Name string }
			Conditions []struct{ Type, Status, Reason string }
		}
		Code int
	}
}

func (e claimEvent) ready() bool {
	for _, condition := range e.Object.Status.Conditions {
		if condition.Type == "Ready" && condition.Status == "True" {
			return e.Object.Status.Sandbox.Name != ""
		}
	}
	return false
}

// awaitReadyEvent watches one claim as the Python SDK does, from a resourceVersion, and returns the name of the Sandbox that the first
// event names which says that the claim is ready.
func awaitReadyEvent(ctx context.Context, namespace, name, resourceVersion string) (string, error) {
	stream, err := extensionsREST().Get().AbsPath("/apis/extensions.agents.x-k8s.io/v1beta1/namespaces", namespace, "sandboxclaims").
		SetHeader("Accept", "application/json").Param("watch", "True").Param("fieldSelector", "metadata.name="+name).
		Param("resourceVersion", resourceVersion).Param("timeoutSeconds", "15").Stream(ctx)
	if err != nil {
		return "", err
	}
	defer stream.Close()
	var seen []string
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event claimEvent
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return "", err
		}
		if event.Type != "ADDED" && event.Type != "MODIFIED" {
			return "", fmt.Errorf("got %s", lines.Text())
		}
		if event.ready() {
			return event.Object.Status.Sandbox.Name, nil
		}
		seen = append(seen, lines.Text())
	}
	return "", errors.Join(lines.Err(), fmt.Errorf("the watch ended after %d events, none of which says that the claim is ready:\n%s", len(seen), strings.Join(seen, "\n")))
}

// TestClaimOfPythonSDK does what that client does: it creates a claim, looks at nothing in the response but the resourceVersion, and
// deletes the claim again unless a watch from there tells that the claim is ready.
func TestClaimOfPythonSDK(t *testing.T) {
	t.Parallel()
	forged := map[string]string{
		extensionsv1beta1.ControllerFirstObservedAtAnnotation: "2020-01-01T00:00:00Z",
		extensionsv1beta1.ClaimFirstReadyAtAnnotation:         "2020-01-01T00:00:00Z",
		extensionsv1beta1.SandboxNameAnnotation:               "victim",
	}
	for name, test := range map[string]struct {
		members     int32
		annotations map[string]string
		from        string // the resourceVersion of the watch; that of the response if it is empty
	}{
		"warm":                     {members: 1},
		"warm, forged annotations": {members: 1, annotations: forged},
		"warm, from any version":   {members: 1, from: "0"},
		"cold":                     {},
		"cold, forged annotations": {annotations: forged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			fillPool(t, namespace, test.members)
			resourceVersion := postClaim(t, namespace, claimBody("sandbox-claim-0a1b2c3d", test.annotations))
			if test.from != "" {
				resourceVersion = test.from
			}
			sandbox, err := awaitReadyEvent(t.Context(), namespace, "sandbox-claim-0a1b2c3d", resourceVersion)
			if err != nil {
				t.Fatal(err)
			}
			if got := get(t, namespace, sandbox); !ready(got) {
				t.Errorf("its Sandbox has conditions %+v", got.Status.Conditions)
			}
			claim := awaitClaim(t, namespace, "sandbox-claim-0a1b2c3d", claimReady)
			for key, value := range test.annotations {
				if claim.Annotations[key] == value {
					t.Errorf("annotation %s of the client is still there", key)
				}
			}
			if claim.Annotations[extensionsv1beta1.ClientFirstRequestedAtAnnotation] == "" || claim.Labels[v1beta1.CreatedByLabel] != "python-client" {
				t.Errorf("of what the client says of itself is left %v %v", claim.Annotations, claim.Labels)
			}
		})
	}
}

// TestClaimOfGoSDK does what that client does: it creates a claim under a generated name, finds out which Sandbox it got, and waits
// until that is ready.
func TestClaimOfGoSDK(t *testing.T) {
	t.Parallel()
	for name, members := range map[string]int32{"warm": 1, "cold": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			fillPool(t, namespace, members)
			created := createClaim(t, namespace, "", func(claim *extensionsv1beta1.SandboxClaim) {
				claim.GenerateName = "sandbox-claim-"
				claim.Labels = map[string]string{v1beta1.CreatedByLabel: "go-client"}
				claim.Annotations = map[string]string{extensionsv1beta1.ClientFirstRequestedAtAnnotation: time.Now().UTC().Format(time.RFC3339Nano)}
			})
			if !strings.HasPrefix(created.Name, "sandbox-claim-") || len(created.Name) != len("sandbox-claim-")+5 {
				t.Errorf("the name is %s", created.Name)
			}
			sandbox := resolveSandbox(t, namespace, created.Name)
			list, err := sandboxes(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + sandbox})
			if err != nil || len(list.Items) != 1 {
				t.Fatalf("%v, %d Sandboxes", err, len(list.Items))
			}
			if ready(&list.Items[0]) {
				return
			}
			watcher, err := sandboxes(namespace).Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + sandbox, ResourceVersion: list.ResourceVersion})
			if err != nil {
				t.Fatal(err)
			}
			defer watcher.Stop()
			for {
				event := nextEvent(t, watcher)
				if event.Type != watch.Modified {
					t.Fatalf("got %s %+v", event.Type, event.Object)
				}
				if ready(asSandbox(t, event.Object)) {
					return
				}
			}
		})
	}
}

// ready says whether a Sandbox is ready, as clients look at it: whatever generation that is about.
func ready(sandbox *v1beta1.Sandbox) bool {
	return meta.IsStatusConditionTrue(sandbox.Status.Conditions, v1beta1.SandboxConditionReady)
}

// resolveSandbox returns the name of the Sandbox of a claim: that which it says now, or else the first that a watch without a version
// tells.
func resolveSandbox(t *testing.T, namespace, claim string) string {
	t.Helper()
	got, err := claims(namespace).Get(t.Context(), claim, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Status.Sandbox.Name != "" {
		return got.Status.Sandbox.Name
	}
	watcher, err := claims(namespace).Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + claim})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	for {
		event := nextEvent(t, watcher)
		claim, ok := event.Object.(*extensionsv1beta1.SandboxClaim)
		if !ok || event.Type == watch.Deleted {
			t.Fatalf("got %s %+v", event.Type, event.Object)
		}
		if claim.Status.Sandbox.Name != "" {
			return claim.Status.Sandbox.Name
		}
	}
}

// TestPoolOfSDK does what the reinforcement learning client does with pools: dry runs before it begins, a creation that may meet
// another of its kind, a patch of the replicas, and a watch without a version until enough members are ready.
func TestPoolOfSDK(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	if _, err := templates(namespace).Create(t.Context(), framework.NewTemplate(templateName), dryRun()); err != nil {
		t.Errorf("dry run of a template: %v", err)
	}
	if _, err := pools(namespace).Create(t.Context(), framework.NewPool(poolName, templateName, 1), dryRun()); err != nil {
		t.Errorf("dry run of a pool: %v", err)
	}
	createTemplate(t, namespace)
	createPool(t, namespace, 0)
	_, err := pools(namespace).Create(t.Context(), framework.NewPool(poolName, templateName, 2), metav1.CreateOptions{})
	checkStatusError(t, err, 409, `"p1" already exists`)
	if _, err := patchPool(t.Context(), namespace, `{"spec":{"replicas":2}}`); err != nil {
		t.Fatal(err)
	}
	watcher, err := pools(namespace).Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + poolName, TimeoutSeconds: new(int64(60))})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	if event := nextEvent(t, watcher); event.Type != watch.Added {
		t.Errorf("the first event is %s", event.Type)
	}
	for {
		pool, ok := nextEvent(t, watcher).Object.(*extensionsv1beta1.SandboxWarmPool)
		if !ok {
			t.Fatal("the watch ended with an error")
		}
		if pool.Status.ReadyReplicas >= 2 {
			return
		}
	}
}
