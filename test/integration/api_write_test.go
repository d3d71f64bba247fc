// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

// forged is a value that nothing but a test writes.
const forged = "forged"

// TestStatusIsolation looks at responses: between two requests the controller may write.
func TestStatusIsolation(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)

	created := create(t, namespace, framework.NewSandbox("box", framework.Suspended, func(s *v1beta1.Sandbox) { s.Status.NodeName = forged }))
	if diff := cmp.Diff(v1beta1.SandboxStatus{}, created.Status); diff != "" {
		t.Errorf("a created Sandbox has a status (-want +got):\n%s", diff)
	}
	awaitCondition(t, namespace, "box", v1beta1.SandboxConditionSuspended)

	updated := update(t, namespace, "box", func(s *v1beta1.Sandbox) {
		s.Status.NodeName = forged
		s.Labels = map[string]string{"a": "b"}
	})
	if updated.Status.NodeName == forged || updated.Labels["a"] != "b" {
		t.Errorf("PUT of the main resource: labels %v, status %+v", updated.Labels, updated.Status)
	}
	patched, err := mergePatch(t.Context(), namespace, "box", `{"status":{"nodeName":"forged"}}`)
	if err != nil || patched.Status.NodeName == forged {
		t.Errorf("PATCH of the main resource: %v, status %+v", err, patched.Status)
	}

	eventually(t, "PUT of the status", func(ctx context.Context) error {
		sandbox, err := sandboxes(namespace).Get(ctx, "box", metav1.GetOptions{})
		if err != nil {
			return err
		}
		want := sandbox.DeepCopy()
		sandbox.Status.NodeName = forged
		sandbox.Spec.OperatingMode = v1beta1.SandboxOperatingModeRunning
		sandbox.Labels = map[string]string{"a": forged}
		sandbox.Annotations = map[string]string{"a": forged}
		sandbox.Finalizers = []string{"example.com/forged"}
		got, err := sandboxes(namespace).UpdateStatus(ctx, sandbox, metav1.UpdateOptions{})
		if err != nil {
			return err
		}
		want.Status.NodeName, want.ResourceVersion, want.ManagedFields = forged, got.ResourceVersion, got.ManagedFields
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("PUT of the status (-want +got):\n%s", diff)
		}
		return nil
	})
	patched, err = mergePatch(t.Context(), namespace, "box", `{"metadata":{"labels":{"a":"forged"}},"spec":{"operatingMode":"Running"},"status":{"nodeName":"forged"}}`, "status")
	if err != nil || patched.Status.NodeName != forged || patched.Labels["a"] != "b" || patched.Spec.OperatingMode != v1beta1.SandboxOperatingModeSuspended {
		t.Errorf("PATCH of the status: %v, labels %v, mode %s, status %+v", err, patched.Labels, patched.Spec.OperatingMode, patched.Status)
	}
}

func TestStatusNeedsItsOwnRight(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	createSettled(t, namespace, "box")
	tenant := newUser(t, namespace, rule("get,update,patch", "sandboxes")).agents(t).AgentsV1beta1().Sandboxes(namespace)
	_, err := tenant.Patch(t.Context(), "box", types.MergePatchType, []byte(`{"status":{"nodeName":"forged"}}`), metav1.PatchOptions{}, "status")
	checkStatusError(t, err, 403, `cannot patch resource "sandboxes/status"`)
}

func TestGeneration(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	if created := create(t, namespace, framework.NewSandbox("box", framework.Suspended, func(s *v1beta1.Sandbox) { s.Generation = 9 })); created.Generation != 1 {
		t.Errorf("generation is %d at creation, want 1", created.Generation)
	}
	for _, test := range []struct {
		name, patch  string
		subresources []string
		want         int64
	}{
		{"label", `{"metadata":{"labels":{"a":"b"}}}`, nil, 1},
		{"status", `{"status":{"nodeName":"forged"}}`, []string{"status"}, 1},
		{"the same spec", `{"spec":{"operatingMode":"Suspended"}}`, nil, 1},
		{"spec", `{"spec":{"service":true}}`, nil, 2},
		{"spec of the Pod", `{"spec":{"podTemplate":{"metadata":{"labels":{"a":"b"}}}}}`, nil, 3},
		{"generation itself", `{"metadata":{"generation":7}}`, nil, 3},
	} {
		patched, err := mergePatch(t.Context(), namespace, "box", test.patch, test.subresources...)
		if err != nil || patched.Generation != test.want {
			t.Errorf("%s: %v, generation %d, want %d", test.name, err, patched.Generation, test.want)
		}
	}
	suspended, err := sandboxes(namespace).Suspend(t.Context(), "box", &v1beta1.SandboxSuspend{}, metav1.CreateOptions{})
	if err != nil || suspended.Generation != 3 {
		t.Errorf("suspend of a suspended Sandbox: %v, generation %d, want 3", err, suspended.Generation)
	}
	resumed, err := sandboxes(namespace).Resume(t.Context(), "box", &v1beta1.SandboxResume{}, metav1.CreateOptions{})
	if err != nil || resumed.Generation != 4 {
		t.Errorf("resume: %v, generation %d, want 4", err, resumed.Generation)
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	for name, body := range map[string]string{
		"absent": `{"metadata":{"name":"absent"},"spec":{"podTemplate":{"spec":{"containers":[{"name":"main","image":"a"}]}}}}`,
		"null":   `{"metadata":{"name":"null"},"spec":{"operatingMode":null,"shutdownPolicy":null,"service":null,"podTemplate":{"spec":{"containers":[{"name":"main","image":"a"}]}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			var sandbox v1beta1.Sandbox
			err := restClient().Post().Namespace(namespace).Resource("sandboxes").Body([]byte(body)).SetHeader("Content-Type", "application/json").
				Do(t.Context()).Into(&sandbox)
			if err != nil {
				t.Fatal(err)
			}
			if sandbox.Spec.OperatingMode != v1beta1.SandboxOperatingModeRunning || sandbox.Spec.ShutdownPolicy == nil || *sandbox.Spec.ShutdownPolicy != v1beta1.ShutdownPolicyRetain {
				t.Errorf("got spec %+v, want the defaults Running and Retain", sandbox.Spec)
			}
			if sandbox.Spec.Service != nil {
				t.Errorf("service is %v, want it unset", *sandbox.Spec.Service)
			}
		})
	}
}

// TestResetFields proves that server-side apply gives nobody a field that the endpoint does not write.
func TestResetFields(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	const body = `{"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox","metadata":{"name":"box","labels":{"a":"b"}},
		"spec":{"operatingMode":"Suspended","podTemplate":{"spec":{"containers":[{"name":"main","image":"a"}]}}},"status":{"nodeName":"forged"}}`
	force := true
	for _, test := range []struct {
		endpoint     string
		subresources []string
		owned, not   []fieldpath.Path
	}{
		{
			"main", nil,
			[]fieldpath.Path{fieldpath.MakePathOrDie("spec", "operatingMode"), fieldpath.MakePathOrDie("metadata", "labels", "a")},
			[]fieldpath.Path{fieldpath.MakePathOrDie("status", "nodeName")},
		},
		{
			"status", []string{"status"},
			[]fieldpath.Path{fieldpath.MakePathOrDie("status", "nodeName")},
			[]fieldpath.Path{fieldpath.MakePathOrDie("spec", "operatingMode"), fieldpath.MakePathOrDie("metadata", "labels", "a")},
		},
	} {
		t.Run(test.endpoint, func(t *testing.T) {
			manager := "manager-of-" + test.endpoint
			sandbox, err := sandboxes(namespace).Patch(t.Context(), "box", types.ApplyPatchType, []byte(body),
				metav1.PatchOptions{FieldManager: manager, Force: &force}, test.subresources...)
			if err != nil {
				t.Fatal(err)
			}
			owned := fieldsOf(t, sandbox, manager)
			for _, path := range test.owned {
				if !owned.Has(path) {
					t.Errorf("%s does not own %s but %s", manager, path, owned)
				}
			}
			for _, path := range test.not {
				if owned.Has(path) {
					t.Errorf("%s owns %s, which the endpoint ignores", manager, path)
				}
			}
		})
	}
}

// fieldsOf returns all fields that a manager owns.
func fieldsOf(t *testing.T, sandbox *v1beta1.Sandbox, manager string) *fieldpath.Set {
	t.Helper()
	all := fieldpath.NewSet()
	for _, entry := range sandbox.ManagedFields {
		if entry.Manager != manager {
			continue
		}
		set := fieldpath.NewSet()
		if err := set.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			t.Fatal(err)
		}
		all = all.Union(set)
	}
	return all
}

func TestUpdatePreconditions(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	settled := createSettled(t, namespace, "box")
	for name, test := range map[string]struct {
		modify  func(*v1beta1.Sandbox)
		code    int32
		message string
	}{
		"the resourceVersion read": {modify: func(*v1beta1.Sandbox) {}},
		"an old resourceVersion":   {func(s *v1beta1.Sandbox) { s.ResourceVersion = "1" }, 409, "the object has been modified"},
		"no resourceVersion":       {func(s *v1beta1.Sandbox) { s.ResourceVersion = "" }, 422, "metadata.resourceVersion: Invalid value"},
		"another UID":              {func(s *v1beta1.Sandbox) { s.UID = "another" }, 409, "UID"},
		"a name that is not there": {func(s *v1beta1.Sandbox) { s.Name, s.UID = "other", "" }, 404, `"other" not found`},
	} {
		t.Run(name, func(t *testing.T) {
			sandbox := settled.DeepCopy()
			test.modify(sandbox)
			_, err := sandboxes(namespace).Update(t.Context(), sandbox, metav1.UpdateOptions{})
			if test.code == 0 && err == nil {
				return
			}
			checkStatusError(t, err, test.code, test.message)
		})
	}
}

func TestDeletePreconditionsAndFinalizers(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	createSettled(t, namespace, "box")
	if _, err := mergePatch(t.Context(), namespace, "box", `{"metadata":{"finalizers":["example.com/hold"]}}`); err != nil {
		t.Fatal(err)
	}
	other := types.UID("other")
	err := sandboxes(namespace).Delete(t.Context(), "box", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}})
	checkStatusError(t, err, 409, "UID")
	for range 2 { // The second finds the first at work, and changes nothing.
		if err := sandboxes(namespace).Delete(t.Context(), "box", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if get(t, namespace, "box").DeletionTimestamp == nil {
		t.Error("a deleted Sandbox with a finalizer has no deletionTimestamp")
	}
	if _, err := mergePatch(t.Context(), namespace, "box", `{"metadata":{"finalizers":null}}`); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, "Sandbox", sandboxes(namespace).Get, "box")
}

func TestDeleteCollection(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	for i := range 6 {
		create(t, namespace, framework.NewSandbox(fmt.Sprintf("box-%d", i), framework.Suspended, func(s *v1beta1.Sandbox) {
			s.Labels = map[string]string{"half": fmt.Sprint(i % 2)}
		}))
	}
	remaining := func() int {
		t.Helper()
		list, err := sandboxes(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return len(list.Items)
	}
	err := sandboxes(namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "spec.bogus=1"})
	checkStatusError(t, err, 400, "spec.bogus")
	if got := remaining(); got != 6 {
		t.Errorf("%d sandboxes are left by a selector that was refused, want 6", got)
	}
	if err := sandboxes(namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "half=1"}); err != nil || remaining() != 3 {
		t.Errorf("deleting half: %v, %d sandboxes are left, want 3", err, remaining())
	}
	if err := sandboxes(namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil || remaining() != 0 {
		t.Errorf("deleting all: %v, %d sandboxes are left, want 0", err, remaining())
	}
}

func TestFieldValidation(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	const body = `{"metadata":{"name":"%s"},"spec":{"replicas":0,"operatingMode":"Suspended","podTemplate":{"spec":{"containers":[{"name":"main","image":"a"}]}}}}`
	for mode, wantWarning := range map[string]bool{"Ignore": false, "Warn": true} {
		t.Run(mode, func(t *testing.T) {
			var sandbox v1beta1.Sandbox
			result := restClient().Post().Namespace(namespace).Resource("sandboxes").Param("fieldValidation", mode).
				SetHeader("Content-Type", "application/json").Body(fmt.Appendf(nil, body, "box-"+string(mode[0]|0x20))).Do(t.Context())
			if err := result.Into(&sandbox); err != nil {
				t.Fatal(err)
			}
			if got := len(result.Warnings()) == 1 && bytes.Contains([]byte(result.Warnings()[0].Text), []byte(`unknown field "spec.replicas"`)); got != wantWarning {
				t.Errorf("got warnings %v, want one: %v", result.Warnings(), wantWarning)
			}
		})
	}
	t.Run("Strict", func(t *testing.T) {
		err := restClient().Post().Namespace(namespace).Resource("sandboxes").Param("fieldValidation", "Strict").
			SetHeader("Content-Type", "application/json").Body(fmt.Appendf(nil, body, "box-s")).Do(t.Context()).Error()
		checkStatusError(t, err, 400, `unknown field "spec.replicas"`)
	})
}

func TestInvalid(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	createSettled(t, namespace, "box")
	for name, test := range map[string]struct {
		sandbox *v1beta1.Sandbox
		field   string
	}{
		"name":                        {framework.NewSandbox("-a"), "metadata.name"},
		"name too long for a Service": {framework.NewSandbox("a-name-of-sixty-four-characters-which-is-one-more-than-a-service"[:64], framework.WithService), "metadata.name"},
		"operatingMode":               {framework.NewSandbox("a", func(s *v1beta1.Sandbox) { s.Spec.OperatingMode = "Paused" }), "spec.operatingMode"},
		"no containers":               {framework.NewSandbox("a", func(s *v1beta1.Sandbox) { s.Spec.PodTemplate.Spec.Containers = nil }), "spec.podTemplate.spec.containers"},
		"duplicate volumes":           {framework.NewSandbox("a", framework.WithVolume("data"), framework.WithVolume("data")), "spec.volumeClaimTemplates[1].metadata.name"},
		"nameless volume":             {framework.NewSandbox("a", framework.WithVolume("")), "spec.volumeClaimTemplates[0].metadata.name"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := sandboxes(namespace).Create(t.Context(), test.sandbox, metav1.CreateOptions{})
			checkStatusError(t, err, 422, test.field+": ")
		})
	}
	t.Run("volumeClaimTemplates added", func(t *testing.T) {
		_, err := mergePatch(t.Context(), namespace, "box",
			`{"spec":{"volumeClaimTemplates":[{"metadata":{"name":"data"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}]}}`)
		checkStatusError(t, err, 422, "spec.volumeClaimTemplates: ")
	})
	t.Run("volumeClaimTemplates empty where there are none", func(t *testing.T) {
		// A typed server cannot tell an empty list from none; upstream's CRD refuses this. What counts is that nothing changes.
		before := get(t, namespace, "box")
		if _, err := mergePatch(t.Context(), namespace, "box", `{"spec":{"volumeClaimTemplates":[]}}`); err != nil {
			checkStatusError(t, err, 422, "spec.volumeClaimTemplates: ")
		}
		checkUnchanged(t, before)
	})
}

// TestProtobuf proves that the API speaks protobuf, and that nothing is lost in it.
func TestProtobuf(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	config := rest.CopyConfig(env.config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf // Without JSON, an answer in it would be an error.
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	protobuf := client.AgentsV1beta1().Sandboxes(namespace)
	if _, err := protobuf.Create(t.Context(), framework.NewSandbox("box", framework.Suspended, framework.WithService, framework.WithVolume("data")), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	want := awaitCondition(t, namespace, "box", v1beta1.SandboxConditionSuspended)
	got, err := protobuf.Get(t.Context(), "box", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.FilterPath(isTypeMeta, cmp.Ignore())); diff != "" {
		t.Errorf("protobuf differs from JSON (-JSON +protobuf):\n%s", diff)
	}
	suspended, err := protobuf.Suspend(t.Context(), "box", &v1beta1.SandboxSuspend{}, metav1.CreateOptions{})
	if err != nil || suspended.ResourceVersion != want.ResourceVersion {
		t.Errorf("suspend in protobuf: %v", err)
	}
}

// isTypeMeta selects what protobuf carries outside of the object.
func isTypeMeta(path cmp.Path) bool { return path.Last().String() == ".TypeMeta" }

// restClient is for what the typed client cannot express.
func restClient() rest.Interface { return env.agents.AgentsV1beta1().RESTClient() }
