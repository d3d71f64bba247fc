// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned/typed/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

const (
	patience     = framework.Patience
	pollInterval = framework.PollInterval
)

// eventually waits until check returns nil, and fails the test with its last error if it never does.
func eventually(t *testing.T, what string, check func(ctx context.Context) error) {
	t.Helper()
	framework.Eventually(t, patience, what, check)
}

// eventuallyWithin is eventually for what may take longer.
func eventuallyWithin(t *testing.T, timeout time.Duration, what string, check func(ctx context.Context) error) {
	t.Helper()
	framework.Eventually(t, timeout, what, check)
}

// newNamespace makes a namespace in which Pods can be created, and deletes it at the end of the test.
func newNamespace(t *testing.T) string {
	t.Helper()
	return framework.NewNamespace(t, env.kube, "it-", func(ctx context.Context, namespace string) { describe(ctx, t, namespace) })
}

// describe logs what is in a namespace and who wrote what there.
func describe(ctx context.Context, t *testing.T, namespace string) {
	t.Helper()
	env.kubectl.Describe(ctx, t, namespace)
	events, err := auditEvents(namespace)
	if err != nil {
		t.Log(err)
	}
	for _, event := range events {
		if !slices.Contains([]string{"get", "list", "watch"}, event.Verb) {
			t.Logf("%s %s %s: %s %s %s %s: %d", event.StageTimestamp.Format(time.RFC3339Nano), event.User.Username, event.UserAgent, event.Verb,
				event.ObjectRef.Resource, event.ObjectRef.Name, event.ObjectRef.Subresource, event.ResponseStatus.Code)
		}
	}
}

// auditEvents returns what kube-apiserver recorded of the requests about objects in a namespace that it has answered.
func auditEvents(namespace string) ([]auditv1.Event, error) {
	return env.cluster.AuditEvents(namespace)
}

func sandboxes(namespace string) agentsv1beta1.SandboxInterface {
	return env.agents.AgentsV1beta1().Sandboxes(namespace)
}

// create creates a Sandbox.
func create(t *testing.T, namespace string, sandbox *v1beta1.Sandbox) *v1beta1.Sandbox {
	t.Helper()
	created, err := sandboxes(namespace).Create(t.Context(), sandbox, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating Sandbox %s/%s: %v", namespace, sandbox.Name, err)
	}
	return created
}

// get returns a Sandbox.
func get(t *testing.T, namespace, name string) *v1beta1.Sandbox {
	t.Helper()
	sandbox, err := sandboxes(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("getting Sandbox %s/%s: %v", namespace, name, err)
	}
	return sandbox
}

// createReady creates a Sandbox and returns it when it is ready.
func createReady(t *testing.T, namespace string, sandbox *v1beta1.Sandbox) *v1beta1.Sandbox {
	t.Helper()
	create(t, namespace, sandbox)
	return awaitCondition(t, namespace, sandbox.Name, v1beta1.SandboxConditionReady)
}

// createSettled creates a suspended Sandbox and returns it when its controller has nothing left to write.
func createSettled(t *testing.T, namespace, name string) *v1beta1.Sandbox {
	t.Helper()
	create(t, namespace, framework.NewSandbox(name, framework.Suspended))
	return awaitCondition(t, namespace, name, v1beta1.SandboxConditionSuspended)
}

// awaitCondition waits until a condition of a Sandbox is true for its present spec.
func awaitCondition(t *testing.T, namespace, name, conditionType string) *v1beta1.Sandbox {
	t.Helper()
	var sandbox *v1beta1.Sandbox
	eventually(t, fmt.Sprintf("condition %s of Sandbox %s/%s", conditionType, namespace, name), func(ctx context.Context) (err error) {
		if sandbox, err = sandboxes(namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		return checkCondition(sandbox, conditionType)
	})
	return sandbox
}

// checkCondition returns an error unless a condition is true and was observed of the present spec.
func checkCondition(sandbox *v1beta1.Sandbox, conditionType string) error {
	condition := meta.FindStatusCondition(sandbox.Status.Conditions, conditionType)
	switch {
	case condition == nil:
		return fmt.Errorf("Sandbox %s has no condition %s but %+v", sandbox.Name, conditionType, sandbox.Status.Conditions)
	case condition.Status != metav1.ConditionTrue || condition.ObservedGeneration != sandbox.Generation:
		return fmt.Errorf("Sandbox %s of generation %d has %+v", sandbox.Name, sandbox.Generation, *condition)
	}
	return nil
}

// update changes a Sandbox by read, modify and write, again if somebody else was faster.
func update(t *testing.T, namespace, name string, modify func(*v1beta1.Sandbox)) *v1beta1.Sandbox {
	t.Helper()
	var updated *v1beta1.Sandbox
	eventually(t, "updating Sandbox "+name, func(ctx context.Context) error {
		sandbox, err := sandboxes(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		modify(sandbox)
		updated, err = sandboxes(namespace).Update(ctx, sandbox, metav1.UpdateOptions{})
		return err
	})
	return updated
}

// pod returns the Pod of a Sandbox.
func pod(t *testing.T, namespace, name string) *corev1.Pod {
	t.Helper()
	pod, err := env.kube.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("getting Pod %s/%s: %v", namespace, name, err)
	}
	return pod
}

// awaitGone waits until an object is not found.
func awaitGone[T any](t *testing.T, what string, get func(ctx context.Context, name string, options metav1.GetOptions) (T, error), name string) {
	t.Helper()
	framework.AwaitGone(t, what, get, name)
}

// nextEvent returns the next event of a watch and fails the test if there is none.
func nextEvent(t *testing.T, watcher watch.Interface) watch.Event {
	t.Helper()
	return framework.NextEvent(t, watcher)
}

// checkStatusError fails the test unless err is an API error of the given code, with a message that contains all the given parts.
func checkStatusError(t *testing.T, err error, code int32, parts ...string) {
	t.Helper()
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		t.Fatalf("got error %v (%T), want an API error of code %d", err, err, code)
	}
	if got := status.Status(); got.Code != code {
		t.Errorf("got code %d (%s: %s), want %d", got.Code, got.Reason, got.Message, code)
	}
	for _, part := range parts {
		if message := status.Status().Message; !strings.Contains(message, part) {
			t.Errorf("message %q does not contain %q", message, part)
		}
	}
}

// checkUnchanged fails the test if a Sandbox is stored otherwise than before.
func checkUnchanged(t *testing.T, before *v1beta1.Sandbox) {
	t.Helper()
	if diff := cmp.Diff(before, get(t, before.Namespace, before.Name)); diff != "" {
		t.Errorf("the stored Sandbox changed (-before +after):\n%s", diff)
	}
}

// kubectl runs kubectl in a namespace, with standard input.
func kubectl(t *testing.T, namespace, stdin string, args ...string) framework.KubectlResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return env.kubectl.Run(ctx, t, namespace, stdin, args...)
}

// kubectlCommand returns a command that knows nothing of the user's own configuration.
func kubectlCommand(ctx context.Context, namespace string, args ...string) *exec.Cmd {
	return env.kubectl.Command(ctx, namespace, args...)
}

// mustKubectl runs kubectl and returns its standard output. It fails the test if kubectl does.
func mustKubectl(t *testing.T, namespace, stdin string, args ...string) string {
	t.Helper()
	return kubectl(t, namespace, stdin, args...).Output(t)
}

// manifest returns a Sandbox as users write it, followed by more lines of its spec.
func manifest(name string, specLines ...string) string { return framework.Manifest(name, specLines...) }

// mergePatch patches a Sandbox with a JSON merge patch.
func mergePatch(ctx context.Context, namespace, name, patch string, subresources ...string) (*v1beta1.Sandbox, error) {
	return sandboxes(namespace).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
}

// asSandbox returns the Sandbox of a watch event and fails the test if it is something else.
func asSandbox(t *testing.T, object runtime.Object) *v1beta1.Sandbox {
	t.Helper()
	sandbox, ok := object.(*v1beta1.Sandbox)
	if !ok {
		t.Fatalf("got %T %+v, want a Sandbox", object, object)
	}
	return sandbox
}
