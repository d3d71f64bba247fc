// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilproxy "k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
)

const (
	testNamespace = "ns"
	testSandbox   = "box"
	testUID       = types.UID("box-uid")
)

// sandboxGetter is a rest.Getter that knows one Sandbox.
type sandboxGetter struct{ sandbox *agents.Sandbox }

func (g sandboxGetter) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	if name != g.sandbox.Name || genericapirequest.NamespaceValue(ctx) != g.sandbox.Namespace {
		return nil, apierrors.NewNotFound(agents.Resource("sandboxes"), name)
	}
	return g.sandbox, nil
}

// recordingStreamer records what it is asked for.
type recordingStreamer struct {
	pod     string
	options *corev1.PodExecOptions
	err     error
}

func (s *recordingStreamer) Exec(namespace, pod string, options *corev1.PodExecOptions, _ utilproxy.SimpleErrorResponder) (http.Handler, error) {
	s.pod, s.options = namespace+"/"+pod, options
	return http.NotFoundHandler(), s.err
}

func newSandbox(mutate ...func(*agents.Sandbox)) *agents.Sandbox {
	sandbox := &agents.Sandbox{
		ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: testSandbox, UID: testUID},
		Spec:       agents.SandboxSpec{OperatingMode: agents.SandboxOperatingModeRunning},
	}
	for _, f := range mutate {
		f(sandbox)
	}
	return sandbox
}

// newPod returns a running Pod of the given name that the test Sandbox controls.
func newPod(name string, mutate ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: testNamespace,
			Name:      name,
			Labels:    map[string]string{"agents.x-k8s.io/sandbox-name-hash": naming.Hash(testSandbox)},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "agents.x-k8s.io/v1beta1", Kind: "Sandbox", Name: testSandbox, UID: testUID, Controller: ptr.To(true),
			}},
		},
		Spec: corev1.PodSpec{
			InitContainers:      []corev1.Container{{Name: "setup"}, {Name: "sidecar"}},
			Containers:          []corev1.Container{{Name: "first"}, {Name: "second"}},
			EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debugger"}}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning,
			InitContainerStatuses: []corev1.ContainerStatus{
				{Name: "setup", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}},
				{Name: "sidecar", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
			},
			EphemeralContainerStatuses: []corev1.ContainerStatus{
				{Name: "debugger", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
			},
		},
	}
	for _, f := range mutate {
		f(pod)
	}
	return pod
}

func ownedBy(mutate func(*metav1.OwnerReference)) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { mutate(&pod.OwnerReferences[0]) }
}

func withUID(uid types.UID) func(*corev1.Pod) {
	return ownedBy(func(owner *metav1.OwnerReference) { owner.UID = uid })
}

func withPhase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.Phase = phase }
}

func withDefaultContainer(name string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Annotations = map[string]string{"kubectl.kubernetes.io/default-container": name}
	}
}

func requestContext(ctx context.Context, verb string) context.Context {
	ctx = genericapirequest.WithNamespace(ctx, testNamespace)
	ctx = genericapirequest.WithUser(ctx, &user.DefaultInfo{Name: "alice"})
	return genericapirequest.WithRequestInfo(ctx, &genericapirequest.RequestInfo{
		IsResourceRequest: true, Verb: verb, APIGroup: agents.GroupName, APIVersion: "v1beta1",
		Namespace: testNamespace, Resource: "sandboxes", Subresource: "exec", Name: testSandbox,
	})
}

func denyAll(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionNoOpinion, "no rule", nil
}

func TestExecFindsThePodAndTheContainer(t *testing.T) {
	tests := []struct {
		name          string
		sandbox       *agents.Sandbox
		pods          []runtime.Object
		container     string
		wantPod       string
		wantContainer string
	}{
		{
			name:          "pod of the sandbox's name, first container",
			pods:          []runtime.Object{newPod(testSandbox)},
			wantPod:       "ns/box",
			wantContainer: "first",
		},
		{
			name:          "operating mode left out",
			sandbox:       newSandbox(func(s *agents.Sandbox) { s.Spec.OperatingMode = "" }),
			pods:          []runtime.Object{newPod(testSandbox)},
			wantPod:       "ns/box",
			wantContainer: "first",
		},
		{
			name: "owner reference with another version of the group",
			pods: []runtime.Object{newPod(testSandbox, ownedBy(func(o *metav1.OwnerReference) {
				o.APIVersion = "agents.x-k8s.io/v1alpha1"
			}))},
			wantPod:       "ns/box",
			wantContainer: "first",
		},
		{
			name:          "adopted pod of another name",
			pods:          []runtime.Object{newPod("pool-member")},
			wantPod:       "ns/pool-member",
			wantContainer: "first",
		},
		{
			name: "adopted pod while a stranger holds the sandbox's name and another its label",
			pods: []runtime.Object{
				newPod(testSandbox, withUID("other")), newPod("labelled", withUID("other")), newPod("pool-member"),
			},
			wantPod:       "ns/pool-member",
			wantContainer: "first",
		},
		{
			name: "pod-name annotation of the sandbox does not lead elsewhere",
			sandbox: newSandbox(func(s *agents.Sandbox) {
				s.Annotations = map[string]string{"agents.x-k8s.io/pod-name": "victim"}
			}),
			pods:          []runtime.Object{newPod("victim", withUID("other")), newPod(testSandbox)},
			wantPod:       "ns/box",
			wantContainer: "first",
		},
		{
			name:          "default container by annotation",
			pods:          []runtime.Object{newPod(testSandbox, withDefaultContainer("second"))},
			wantPod:       "ns/box",
			wantContainer: "second",
		},
		{
			name:          "default container annotation naming none of the containers",
			pods:          []runtime.Object{newPod(testSandbox, withDefaultContainer("gone"))},
			wantPod:       "ns/box",
			wantContainer: "first",
		},
		{
			name:          "given container before the annotated",
			pods:          []runtime.Object{newPod(testSandbox, withDefaultContainer("first"))},
			container:     "second",
			wantPod:       "ns/box",
			wantContainer: "second",
		},
		{
			name:          "running init container",
			pods:          []runtime.Object{newPod(testSandbox)},
			container:     "sidecar",
			wantPod:       "ns/box",
			wantContainer: "sidecar",
		},
		{
			name:          "running ephemeral container",
			pods:          []runtime.Object{newPod(testSandbox)},
			container:     "debugger",
			wantPod:       "ns/box",
			wantContainer: "debugger",
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if tc.sandbox == nil {
				tc.sandbox = newSandbox()
			}
			streamer := &recordingStreamer{}
			exec := NewExecREST(sandboxGetter{tc.sandbox}, fake.NewClientset(tc.pods...).CoreV1(), authorizer.AuthorizerFunc(denyAll), streamer)
			options := &agents.SandboxExecOptions{
				Stdin: true, Stdout: true, TTY: true, Container: tc.container, Command: []string{"sh", "-c", "a&b"},
			}

			handler, err := exec.Connect(requestContext(t.Context(), "create"), testSandbox, options, nil)
			if err != nil || handler == nil {
				t.Fatalf("Connect returned handler %v, error %v", handler, err)
			}
			if streamer.pod != tc.wantPod {
				t.Errorf("stream to pod %q, want %q", streamer.pod, tc.wantPod)
			}
			want := &corev1.PodExecOptions{
				Stdin: true, Stdout: true, TTY: true, Container: tc.wantContainer, Command: []string{"sh", "-c", "a&b"},
			}
			if diff := cmp.Diff(want, streamer.options); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExecRefuses(t *testing.T) {
	now := metav1.Now()
	validOptions := func() *agents.SandboxExecOptions {
		return &agents.SandboxExecOptions{Stdout: true, Command: []string{"true"}}
	}
	noPodYet := "the sandbox has no running pod yet"

	tests := []struct {
		name       string
		sandbox    *agents.Sandbox
		request    string
		options    *agents.SandboxExecOptions
		pods       []runtime.Object
		podsFail   string
		streamFail error
		code       int32
		cause      metav1.CauseType
		retry      int32
		message    string
	}{
		{
			name:    "no such sandbox",
			request: "other",
			code:    http.StatusNotFound,
			message: `"other" not found`,
		},
		{
			name:    "sandbox being deleted",
			sandbox: newSandbox(func(s *agents.Sandbox) { s.DeletionTimestamp = &now }),
			pods:    []runtime.Object{newPod(testSandbox)},
			code:    http.StatusConflict,
			cause:   "SandboxDeleting",
			message: "is being deleted",
		},
		{
			name:    "sandbox suspended",
			sandbox: newSandbox(func(s *agents.Sandbox) { s.Spec.OperatingMode = agents.SandboxOperatingModeSuspended }),
			pods:    []runtime.Object{newPod(testSandbox)},
			code:    http.StatusConflict,
			cause:   "SandboxSuspended",
			message: `kubectl sandbox resume box`,
		},
		{
			name:    "no pod",
			code:    http.StatusConflict,
			cause:   "DependenciesNotReady",
			retry:   1,
			message: noPodYet,
		},
		{
			name:    "pod of the name controlled by an earlier sandbox of the same name",
			pods:    []runtime.Object{newPod(testSandbox, withUID("earlier"))},
			code:    http.StatusConflict,
			cause:   "DependenciesNotReady",
			retry:   1,
			message: noPodYet,
		},
		{
			name:    "pod of the name without owner",
			pods:    []runtime.Object{newPod(testSandbox, func(p *corev1.Pod) { p.OwnerReferences = nil })},
			code:    http.StatusConflict,
			cause:   "DependenciesNotReady",
			retry:   1,
			message: noPodYet,
		},
		{
			name:    "pod owned but not controlled",
			pods:    []runtime.Object{newPod(testSandbox, ownedBy(func(o *metav1.OwnerReference) { o.Controller = nil }))},
			code:    http.StatusConflict,
			cause:   "DependenciesNotReady",
			retry:   1,
			message: noPodYet,
		},
		{
			name:    "controller of another kind with the same UID",
			pods:    []runtime.Object{newPod(testSandbox, ownedBy(func(o *metav1.OwnerReference) { o.Kind = "SandboxClaim" }))},
			code:    http.StatusConflict,
			cause:   "DependenciesNotReady",
			retry:   1,
			message: noPodYet,
		},
		{
			name:    "controller of another group with the same UID",
			pods:    []runtime.Object{newPod(testSandbox, ownedBy(func(o *metav1.OwnerReference) { o.APIVersion = "example.com/v1beta1" }))},
			code:    http.StatusConflict,
			cause:   "DependenciesNotReady",
			retry:   1,
			message: noPodYet,
		},
		{
			name:    "sandbox and reference both without UID",
			sandbox: newSandbox(func(s *agents.Sandbox) { s.UID = "" }),
			pods:    []runtime.Object{newPod(testSandbox, withUID(""))},
			code:    http.StatusConflict,
			cause:   "DependenciesNotReady",
			retry:   1,
			message: noPodYet,
		},
		{
			name: "pod named by annotation and labelled alike, of another sandbox",
			sandbox: newSandbox(func(s *agents.Sandbox) {
				s.Annotations = map[string]string{"agents.x-k8s.io/pod-name": "victim"}
			}),
			pods:    []runtime.Object{newPod("victim", withUID("other"))},
			code:    http.StatusConflict,
			cause:   "DependenciesNotReady",
			retry:   1,
			message: noPodYet,
		},
		{
			name:    "pod of the same name and owner in another namespace",
			pods:    []runtime.Object{newPod(testSandbox, func(p *corev1.Pod) { p.Namespace = "elsewhere" })},
			code:    http.StatusConflict,
			cause:   "DependenciesNotReady",
			retry:   1,
			message: noPodYet,
		},
		{
			name:    "controlled pod with neither the name nor the label",
			pods:    []runtime.Object{newPod("lost", func(p *corev1.Pod) { p.Labels = nil })},
			code:    http.StatusConflict,
			cause:   "DependenciesNotReady",
			retry:   1,
			message: noPodYet,
		},
		{
			name:    "several pods",
			pods:    []runtime.Object{newPod("one"), newPod("two")},
			code:    http.StatusConflict,
			cause:   "MultiplePods",
			message: "2 pods",
		},
		{
			name:    "pod terminating",
			pods:    []runtime.Object{newPod(testSandbox, func(p *corev1.Pod) { p.DeletionTimestamp = &now })},
			code:    http.StatusConflict,
			cause:   "PodTerminating",
			retry:   1,
			message: `pod "box" of the sandbox is terminating`,
		},
		{
			name:    "pod pending",
			pods:    []runtime.Object{newPod(testSandbox, withPhase(corev1.PodPending))},
			code:    http.StatusConflict,
			cause:   "DependenciesNotReady",
			retry:   1,
			message: `current phase is "Pending"`,
		},
		{
			name:    "pod succeeded",
			pods:    []runtime.Object{newPod(testSandbox, withPhase(corev1.PodSucceeded))},
			code:    http.StatusConflict,
			cause:   "PodSucceeded",
			message: "current phase is Succeeded",
		},
		{
			name:    "pod failed",
			pods:    []runtime.Object{newPod(testSandbox, withPhase(corev1.PodFailed))},
			code:    http.StatusConflict,
			cause:   "PodFailed",
			message: "current phase is Failed",
		},
		{
			name:    "unknown container",
			options: &agents.SandboxExecOptions{Stdout: true, Command: []string{"true"}, Container: "third"},
			pods:    []runtime.Object{newPod(testSandbox)},
			code:    http.StatusBadRequest,
			message: `container "third" is not one of those that pod "box" has to run a command in: first, second, sidecar, debugger`,
		},
		{
			name:    "init container that has ended",
			options: &agents.SandboxExecOptions{Stdout: true, Command: []string{"true"}, Container: "setup"},
			pods:    []runtime.Object{newPod(testSandbox)},
			code:    http.StatusBadRequest,
			message: `container "setup" is not one of`,
		},
		{
			name:    "no stream",
			options: &agents.SandboxExecOptions{Command: []string{"true"}},
			pods:    []runtime.Object{newPod(testSandbox)},
			code:    http.StatusBadRequest,
			message: "stdout: Required value",
		},
		{
			name:    "no command",
			options: &agents.SandboxExecOptions{Stdout: true},
			pods:    []runtime.Object{newPod(testSandbox)},
			code:    http.StatusBadRequest,
			message: "command: Required value",
		},
		{
			name:     "getting the pod fails",
			podsFail: "get",
			code:     http.StatusInternalServerError,
			message:  "getting the pod of sandbox ns/box: broken",
		},
		{
			name:     "listing the pods fails",
			podsFail: "list",
			code:     http.StatusInternalServerError,
			message:  "listing the pods of sandbox ns/box: broken",
		},
		{
			name:       "opening the stream fails",
			pods:       []runtime.Object{newPod(testSandbox)},
			streamFail: errors.New("broken"),
			code:       http.StatusInternalServerError,
			message:    "broken",
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if tc.sandbox == nil {
				tc.sandbox = newSandbox()
			}
			if tc.request == "" {
				tc.request = testSandbox
			}
			if tc.options == nil {
				tc.options = validOptions()
			}
			client := fake.NewClientset(tc.pods...)
			if tc.podsFail != "" {
				client.PrependReactor(tc.podsFail, "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, errors.New("broken")
				})
			}
			streamer := &recordingStreamer{err: tc.streamFail}
			exec := NewExecREST(sandboxGetter{tc.sandbox}, client.CoreV1(), authorizer.AuthorizerFunc(denyAll), streamer)

			_, err := exec.Connect(requestContext(t.Context(), "create"), tc.request, tc.options, nil)
			if streamer.pod != "" && tc.streamFail == nil {
				t.Errorf("a stream to %s was opened", streamer.pod)
			}
			var status apierrors.APIStatus
			if !errors.As(err, &status) {
				t.Fatalf("error = %v, want an API error", err)
			}
			got := status.Status()
			if got.Code != tc.code || !strings.Contains(got.Message, tc.message) {
				t.Errorf("status = %d %q, want %d %q", got.Code, got.Message, tc.code, tc.message)
			}
			if tc.code != http.StatusConflict {
				return
			}
			if len(got.Details.Causes) != 1 || got.Details.Causes[0].Type != tc.cause {
				t.Errorf("causes = %v, want one of type %q", got.Details.Causes, tc.cause)
			}
			if got.Details.RetryAfterSeconds != tc.retry {
				t.Errorf("retry after %d s, want %d s", got.Details.RetryAfterSeconds, tc.retry)
			}
		})
	}
}

func TestExecAuthorizesCreate(t *testing.T) {
	tests := []struct {
		name      string
		verb      string
		decision  authorizer.Decision
		err       error
		wantAsked string
		wantCode  int32
		message   string
	}{
		{name: "POST was authorized by the handler chain", verb: "create", decision: authorizer.DecisionDeny},
		{name: "GET with create allowed", verb: "get", decision: authorizer.DecisionAllow, wantAsked: "create"},
		{
			name: "GET with create denied", verb: "get", decision: authorizer.DecisionDeny,
			wantAsked: "create", wantCode: http.StatusForbidden,
			message: `User "alice" cannot create resource "sandboxes/exec" in API group "agents.x-k8s.io" in the namespace "ns": a reason`,
		},
		{
			name: "GET without opinion on create", verb: "get", decision: authorizer.DecisionNoOpinion,
			wantAsked: "create", wantCode: http.StatusForbidden, message: `cannot create resource "sandboxes/exec"`,
		},
		{
			name: "GET with the authorizer failing", verb: "get", decision: authorizer.DecisionNoOpinion, err: errors.New("broken"),
			wantAsked: "create", wantCode: http.StatusInternalServerError, message: "authorizing exec: broken",
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var asked []authorizer.Attributes
			authorize := func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
				asked = append(asked, a)
				return tc.decision, "a reason", tc.err
			}
			exec := NewExecREST(sandboxGetter{newSandbox()}, fake.NewClientset(newPod(testSandbox)).CoreV1(),
				authorizer.AuthorizerFunc(authorize), &recordingStreamer{})
			options := &agents.SandboxExecOptions{Stdout: true, Command: []string{"true"}}

			_, err := exec.Connect(requestContext(t.Context(), tc.verb), testSandbox, options, nil)
			var gotCode int32
			if status := apierrors.APIStatus(nil); errors.As(err, &status) {
				gotCode = status.Status().Code
			} else if err != nil {
				t.Fatalf("error = %v, want an API error", err)
			}
			if gotCode != tc.wantCode {
				t.Errorf("code = %d (%v), want %d", gotCode, err, tc.wantCode)
			}
			if tc.message != "" && !strings.Contains(err.Error(), tc.message) {
				t.Errorf("error = %v, want it to contain %q", err, tc.message)
			}
			if tc.wantAsked == "" {
				if len(asked) != 0 {
					t.Errorf("the authorizer was asked %d times", len(asked))
				}
				return
			}
			if len(asked) != 1 {
				t.Fatalf("the authorizer was asked %d times, want once", len(asked))
			}
			a := asked[0]
			got := []string{a.GetUser().GetName(), a.GetVerb(), a.GetAPIGroup(), a.GetResource(), a.GetSubresource(), a.GetNamespace(), a.GetName()}
			want := []string{"alice", tc.wantAsked, "agents.x-k8s.io", "sandboxes", "exec", testNamespace, testSandbox}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("attributes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExecRefusesRequestsWithoutAttributes(t *testing.T) {
	exec := NewExecREST(sandboxGetter{newSandbox()}, fake.NewClientset(newPod(testSandbox)).CoreV1(),
		authorizer.AuthorizerFunc(denyAll), &recordingStreamer{})
	ctx := genericapirequest.WithNamespace(t.Context(), testNamespace)
	_, err := exec.Connect(ctx, testSandbox, &agents.SandboxExecOptions{Stdout: true, Command: []string{"true"}}, nil)
	if !apierrors.IsInternalError(err) {
		t.Errorf("error = %v, want an internal error", err)
	}
}
