// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned/typed/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

const (
	// patience is how long something may take that takes a second on an idle machine.
	patience     = time.Minute
	pollInterval = 50 * time.Millisecond
)

// eventually waits until check returns nil, and fails the test with its last error if it never does.
func eventually(t *testing.T, what string, check func(ctx context.Context) error) {
	t.Helper()
	eventuallyWithin(t, patience, what, check)
}

// eventuallyWithin is eventually for what may take longer.
func eventuallyWithin(t *testing.T, timeout time.Duration, what string, check func(ctx context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), pollInterval, timeout, true, func(ctx context.Context) (bool, error) {
		err := check(ctx)
		// That time was up during the check says less than the answer before.
		if err == nil || ctx.Err() == nil {
			last = err
		}
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: not within %v: %v", what, timeout, last)
	}
}

// newNamespace makes a namespace in which Pods can be created, and deletes it at the end of the test.
func newNamespace(t *testing.T) string {
	t.Helper()
	namespaces := env.kube.CoreV1().Namespaces()
	namespace, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "it-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating a namespace: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		if t.Failed() {
			describe(ctx, t, namespace.Name)
		}
		if err := namespaces.Delete(ctx, namespace.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("deleting namespace %s: %v", namespace.Name, err)
		}
	})
	// Without it the first Pod would be refused, and made a backoff later.
	eventually(t, "default ServiceAccount of a new namespace", func(ctx context.Context) error {
		_, err := env.kube.CoreV1().ServiceAccounts(namespace.Name).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	return namespace.Name
}

// describe logs what is in a namespace and who wrote what there.
func describe(ctx context.Context, t *testing.T, namespace string) {
	t.Helper()
	for _, args := range [][]string{{"get", "sandboxes", "-o", "yaml"}, {"get", "pods,services,persistentvolumeclaims,events"}} {
		result := runKubectl(ctx, t, namespace, "", args...)
		t.Logf("kubectl %s\n%s%s", strings.Join(args, " "), result.stdout, result.stderr)
	}
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
	data, err := os.ReadFile(env.auditLog())
	if err != nil {
		return nil, err
	}
	var events []auditv1.Event
	for line := range bytes.Lines(data) {
		var event auditv1.Event
		if !bytes.Contains(line, []byte(namespace)) || json.Unmarshal(line, &event) != nil {
			continue // Another namespace, or a line that is being written.
		}
		if event.ObjectRef != nil && event.ObjectRef.Namespace == namespace && event.ResponseStatus != nil {
			events = append(events, event)
		}
	}
	return events, nil
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
	eventually(t, what+" "+name+" is gone", func(ctx context.Context) error {
		_, err := get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		return errors.New("it is still there")
	})
}

// nextEvent returns the next event of a watch and fails the test if there is none.
func nextEvent(t *testing.T, watcher watch.Interface) watch.Event {
	t.Helper()
	select {
	case event, open := <-watcher.ResultChan():
		if !open {
			t.Fatal("the watch ended where an event was expected")
		}
		return event
	case <-time.After(patience):
		t.Fatalf("no event within %v", patience)
	}
	return watch.Event{}
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

// kubectlResult is what a run of kubectl had to say.
type kubectlResult struct {
	stdout, stderr string
	code           int
}

// kubectl runs kubectl in a namespace, with standard input.
func kubectl(t *testing.T, namespace, stdin string, args ...string) kubectlResult {
	t.Helper()
	return runKubectl(t.Context(), t, namespace, stdin, args...)
}

func runKubectl(ctx context.Context, t *testing.T, namespace, stdin string, args ...string) kubectlResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := kubectlCommand(ctx, namespace, args...)
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("kubectl %v: %v", args, err)
	}
	return kubectlResult{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// kubectlCommand returns a command that knows nothing of the user's own configuration.
func kubectlCommand(ctx context.Context, namespace string, args ...string) *exec.Cmd {
	// Before its name kubectl takes no flags for a plugin, and at the end there may be the command of an exec.
	args = slices.Insert(slices.Clone(args), 1, "--namespace="+namespace)
	cmd := exec.CommandContext(ctx, env.program("kubectl"), args...)
	cmd.Env = []string{
		"KUBECONFIG=" + env.kubeconfig(),
		"HOME=" + filepath.Join(env.dir, "home"),
		// kubectl finds the plugin there.
		"PATH=" + env.binDir + string(os.PathListSeparator) + os.Getenv("PATH"),
	}
	return cmd
}

// mustKubectl runs kubectl and returns its standard output. It fails the test if kubectl does.
func mustKubectl(t *testing.T, namespace, stdin string, args ...string) string {
	t.Helper()
	result := kubectl(t, namespace, stdin, args...)
	if result.code != 0 {
		t.Fatalf("kubectl %v: exit code %d\n%s%s", args, result.code, result.stdout, result.stderr)
	}
	return result.stdout
}

// manifest returns a Sandbox as users write it, followed by more lines of its spec.
func manifest(name string, specLines ...string) string {
	const head = `apiVersion: agents.x-k8s.io/v1beta1
kind: Sandbox
metadata:
  name: %s
spec:
  podTemplate:
    spec:
      containers:
      - name: main
        image: sandbox.local/busybox:1
        command: [sleep, infinity]
`
	lines := fmt.Sprintf(head, name)
	for _, line := range specLines {
		lines += "  " + line + "\n"
	}
	return lines
}

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
