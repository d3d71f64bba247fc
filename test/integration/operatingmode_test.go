// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

// act posts a body to the suspend or resume subresource of a Sandbox.
func act(t *testing.T, namespace, name, action, body string, query ...string) (*v1beta1.Sandbox, error) {
	t.Helper()
	request := restClient().Post().Namespace(namespace).Resource("sandboxes").Name(name).SubResource(action).
		SetHeader("Content-Type", "application/json").Body([]byte(body))
	for i := 0; i < len(query); i += 2 {
		request.Param(query[i], query[i+1])
	}
	result := request.Do(t.Context())
	if err := result.Error(); err != nil {
		return nil, err
	}
	data, err := result.Raw()
	if err != nil {
		return nil, err
	}
	// A typed decoder would take the kind away.
	sandbox := &v1beta1.Sandbox{}
	return sandbox, json.Unmarshal(data, sandbox)
}

// TestSuspendAndResume follows one Sandbox: what suspension keeps is the same object afterwards, not one like it.
func TestSuspendAndResume(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	before := createReady(t, namespace, framework.NewSandbox("box", framework.WithService, framework.WithVolume("data")))
	claim, err := env.kube.CoreV1().PersistentVolumeClaims(namespace).Get(t.Context(), "data-box", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	service, err := env.kube.CoreV1().Services(namespace).Get(t.Context(), "box", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	firstPod := pod(t, namespace, "box")

	suspended, err := act(t, namespace, "box", "suspend", "{}")
	if err != nil || suspended.UID != before.UID || suspended.Spec.OperatingMode != v1beta1.SandboxOperatingModeSuspended {
		t.Fatalf("suspend: %v, answer %+v", err, suspended)
	}
	after := awaitCondition(t, namespace, "box", v1beta1.SandboxConditionSuspended)
	awaitGone(t, "Pod", env.kube.CoreV1().Pods(namespace).Get, "box")
	if len(after.Status.PodIPs) != 0 || after.Status.NodeName != "" || after.Status.Service != "box" {
		t.Errorf("status of the suspended Sandbox: %+v", after.Status)
	}
	if kept, err := env.kube.CoreV1().PersistentVolumeClaims(namespace).Get(t.Context(), "data-box", metav1.GetOptions{}); err != nil || kept.UID != claim.UID || kept.DeletionTimestamp != nil {
		t.Errorf("PersistentVolumeClaim after suspend: %v, %+v", err, kept.ObjectMeta)
	}
	if kept, err := env.kube.CoreV1().Services(namespace).Get(t.Context(), "box", metav1.GetOptions{}); err != nil || kept.UID != service.UID {
		t.Errorf("Service after suspend: %v, %+v", err, kept.ObjectMeta)
	}

	resumed, err := act(t, namespace, "box", "resume", "{}")
	if err != nil || resumed.Spec.OperatingMode != v1beta1.SandboxOperatingModeRunning {
		t.Fatalf("resume: %v, answer %+v", err, resumed)
	}
	awaitCondition(t, namespace, "box", v1beta1.SandboxConditionReady)
	secondPod := pod(t, namespace, "box")
	if secondPod.UID == firstPod.UID {
		t.Error("the Pod after resume is the one from before suspend")
	}
	for _, volume := range secondPod.Spec.Volumes {
		if volume.Name == "data" && volume.PersistentVolumeClaim != nil && volume.PersistentVolumeClaim.ClaimName == "data-box" {
			return
		}
	}
	t.Errorf("the Pod after resume does not have the volume of before: %+v", secondPod.Spec.Volumes)
}

// TestActionRequests covers what is decided from the request and the stored Sandbox alone.
func TestActionRequests(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	settled := createSettled(t, namespace, "box")
	for name, test := range map[string]struct {
		sandbox, action, body string
		code                  int32 // 0 means success
		message               string
	}{
		"kind spelled out":             {"box", "suspend", `{"apiVersion":"agents.x-k8s.io/v1beta1","kind":"SandboxSuspend"}`, 0, ""},
		"name spelled out":             {"box", "suspend", `{"metadata":{"name":"box"}}`, 0, ""},
		"preconditions that hold":      {"box", "suspend", fmt.Sprintf(`{"preconditions":{"uid":%q,"resourceVersion":%q}}`, settled.UID, settled.ResourceVersion), 0, ""},
		"another name":                 {"box", "suspend", `{"metadata":{"name":"other"}}`, 400, `"other"`},
		"another namespace":            {"box", "suspend", `{"metadata":{"namespace":"other"}}`, 400, "namespace"},
		"another kind":                 {"box", "suspend", `{"apiVersion":"agents.x-k8s.io/v1beta1","kind":"SandboxResume"}`, 400, "SandboxResume"},
		"another UID":                  {"box", "suspend", `{"preconditions":{"uid":"other"}}`, 409, "uid"},
		"an old resourceVersion":       {"box", "suspend", `{"preconditions":{"resourceVersion":"1"}}`, 409, "resourceVersion"},
		"resume: another UID":          {"box", "resume", `{"preconditions":{"uid":"other"}}`, 409, "uid"},
		"resume: an old version":       {"box", "resume", `{"preconditions":{"resourceVersion":"1"}}`, 409, "resourceVersion"},
		"resume: another name":         {"box", "resume", `{"metadata":{"name":"other"}}`, 400, `"other"`},
		"a Sandbox that is not there":  {"other", "suspend", `{}`, 404, `"other" not found`},
		"no object":                    {"box", "suspend", `[]`, 400, ""},
		"an unknown field, not strict": {"box", "suspend", `{"reason":"night"}`, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			sandbox, err := act(t, namespace, test.sandbox, test.action, test.body)
			if test.code != 0 {
				checkStatusError(t, err, test.code, test.message)
			} else if err != nil || sandbox.Name != "box" || sandbox.Kind != "Sandbox" {
				t.Errorf("got %v and %+v, want the Sandbox", err, sandbox)
			}
			checkUnchanged(t, settled)
		})
	}
	t.Run("strict", func(t *testing.T) {
		_, err := act(t, namespace, "box", "suspend", `{"reason":"night"}`, "fieldValidation", "Strict")
		checkStatusError(t, err, 400, `unknown field "reason"`)
	})
	t.Run("no body", func(t *testing.T) {
		// Either it is as good as an empty object, or the answer says that a body is missing.
		if _, err := act(t, namespace, "box", "suspend", ""); err != nil {
			checkStatusError(t, err, 400)
		}
		checkUnchanged(t, settled)
	})
	t.Run("dry run", func(t *testing.T) {
		sandbox, err := act(t, namespace, "box", "resume", "{}", "dryRun", "All")
		if err != nil || sandbox.Spec.OperatingMode != v1beta1.SandboxOperatingModeRunning {
			t.Errorf("got %v and mode %s, want the Sandbox as it would be", err, sandbox.Spec.OperatingMode)
		}
		checkUnchanged(t, settled)
	})
}

func TestActionsOwnTheirField(t *testing.T) {
	t.Parallel()
	operatingMode := fieldpath.MakePathOrDie("spec", "operatingMode")
	for name, test := range map[string]struct {
		query   []string
		manager string
	}{
		"without a field manager": {nil, "sandbox-apiserver"},
		"with a field manager":    {[]string{"fieldManager", "night-watch"}, "night-watch"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			running := manifest("box", "operatingMode: Running")
			mustKubectl(t, namespace, running, "apply", "--server-side", "-f", "-")
			suspended, err := act(t, namespace, "box", "suspend", "{}", test.query...)
			if err != nil {
				t.Fatal(err)
			}
			if owned := fieldsOf(t, suspended, test.manager); !owned.Has(operatingMode) || owned.Size() != 1 {
				t.Errorf("%s owns %s, want spec.operatingMode alone", test.manager, owned)
			}
			if owned := fieldsOf(t, suspended, "kubectl"); owned.Has(operatingMode) {
				t.Errorf("the one who applied the manifest still owns spec.operatingMode")
			}

			got := kubectl(t, namespace, running, "apply", "--server-side", "-f", "-")
			if got.Code == 0 || !strings.Contains(got.Stderr, `conflict with "`+test.manager+`"`) || !strings.Contains(got.Stderr, ".spec.operatingMode") {
				t.Errorf("apply of a manifest that says otherwise: %+v, want a conflict that names the field and %s", got, test.manager)
			}
			if mode := get(t, namespace, "box").Spec.OperatingMode; mode != v1beta1.SandboxOperatingModeSuspended {
				t.Errorf("mode is %s after the conflict", mode)
			}
			mustKubectl(t, namespace, running, "apply", "--server-side", "--force-conflicts", "-f", "-")
			if mode := get(t, namespace, "box").Spec.OperatingMode; mode != v1beta1.SandboxOperatingModeRunning {
				t.Errorf("mode is %s after the conflict was overridden", mode)
			}
		})
	}
}

func TestActionsConcurrently(t *testing.T) {
	t.Parallel()
	const callers = 50
	for name, test := range map[string]struct {
		action     func(caller int) string
		generation func(got int64) bool
	}{
		"all resume": {
			func(int) string { return "resume" },
			func(got int64) bool { return got == 2 },
		},
		"half of them suspend": {
			func(caller int) string { return []string{"resume", "suspend"}[caller%2] },
			func(got int64) bool { return got >= 2 && got <= callers+1 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			createSettled(t, namespace, "box")
			errs := make([]error, callers)
			var callersDone sync.WaitGroup
			for caller := range callers {
				callersDone.Go(func() {
					action := test.action(caller)
					sandbox, err := act(t, namespace, "box", action, "{}")
					want := map[string]v1beta1.SandboxOperatingMode{"resume": "Running", "suspend": "Suspended"}[action]
					if err == nil && sandbox.Spec.OperatingMode != want {
						err = fmt.Errorf("%s answered with mode %s", action, sandbox.Spec.OperatingMode)
					}
					errs[caller] = err
				})
			}
			callersDone.Wait()
			if err := errors.Join(errs...); err != nil {
				t.Error(err)
			}
			sandbox := get(t, namespace, "box")
			if !test.generation(sandbox.Generation) {
				t.Errorf("generation is %d", sandbox.Generation)
			}
			awaitCondition(t, namespace, "box", map[v1beta1.SandboxOperatingMode]string{
				v1beta1.SandboxOperatingModeRunning:   v1beta1.SandboxConditionReady,
				v1beta1.SandboxOperatingModeSuspended: v1beta1.SandboxConditionSuspended,
			}[sandbox.Spec.OperatingMode])
		})
	}
}

func TestActionsOnDeletedSandbox(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	createSettled(t, namespace, "box")
	if _, err := mergePatch(t.Context(), namespace, "box", `{"metadata":{"finalizers":["example.com/hold"]}}`); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if _, err := mergePatch(t.Context(), namespace, "box", `{"metadata":{"finalizers":null}}`); err != nil {
			t.Error(err)
		}
	}()
	if err := sandboxes(namespace).Delete(t.Context(), "box", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := act(t, namespace, "box", "resume", "{}")
	checkStatusError(t, err, 409, "being deleted")
}

// TestActionRights proves that the subresources are rights of their own: enough by themselves, and not part of another.
func TestActionRights(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	createSettled(t, namespace, "box")
	actor := newUser(t, namespace, rule("create", "sandboxes/suspend,sandboxes/resume")).agents(t).AgentsV1beta1().Sandboxes(namespace)
	if _, err := actor.Resume(t.Context(), "box", &v1beta1.SandboxResume{}, metav1.CreateOptions{}); err != nil {
		t.Errorf("resume with the right to: %v", err)
	}
	if _, err := actor.Suspend(t.Context(), "box", &v1beta1.SandboxSuspend{}, metav1.CreateOptions{}); err != nil {
		t.Errorf("suspend with the right to: %v", err)
	}
	_, err := actor.Get(t.Context(), "box", metav1.GetOptions{})
	checkStatusError(t, err, 403)
	_, err = actor.Patch(t.Context(), "box", types.MergePatchType, []byte(`{"spec":{"operatingMode":"Running"}}`), metav1.PatchOptions{})
	checkStatusError(t, err, 403)

	editor := newUser(t, namespace, rule("*", "sandboxes")).agents(t).AgentsV1beta1().Sandboxes(namespace)
	_, err = editor.Suspend(t.Context(), "box", &v1beta1.SandboxSuspend{}, metav1.CreateOptions{})
	checkStatusError(t, err, 403, `cannot create resource "sandboxes/suspend"`)
	_, err = editor.Resume(t.Context(), "box", &v1beta1.SandboxResume{}, metav1.CreateOptions{})
	checkStatusError(t, err, 403, `cannot create resource "sandboxes/resume"`)
}
