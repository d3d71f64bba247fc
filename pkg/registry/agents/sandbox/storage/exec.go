// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilproxy "k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/registry/rest"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
)

const (
	// defaultContainerAnnotation, on a Pod, names the container that clients mean when they name none.
	defaultContainerAnnotation = "kubectl.kubernetes.io/default-container"
	// execPodAuditAnnotation says, in the audit event of an exec, which Pod was entered. The event of kube-apiserver with the
	// same Audit-ID names the Pod as well, but not the person.
	execPodAuditAnnotation = "exec.agents.x-k8s.io/pod"
	// podRetryAfterSeconds is the delay suggested to clients when the Pod is on its way.
	podRetryAfterSeconds = 1
)

// ExecStreamer opens a stream to a command in a Pod.
type ExecStreamer interface {
	// Exec returns a handler for the request at hand, which it connects to the command that options describe.
	Exec(namespace, pod string, options *corev1.PodExecOptions, responder utilproxy.SimpleErrorResponder) (http.Handler, error)
}

// ExecREST implements the exec subresource of Sandbox.
//
// The server enters the Pod with its own rights, which reach every Pod of the cluster. So what it checks first is all that stands
// between a person and a Pod that is not his Sandbox's.
type ExecREST struct {
	sandboxes  rest.Getter
	pods       corev1client.PodsGetter
	authorizer authorizer.Authorizer
	streamer   ExecStreamer
}

var (
	_ rest.Storage   = &ExecREST{}
	_ rest.Connecter = &ExecREST{}
)

// NewExecREST returns the storage of the exec subresource. The clients behind sandboxes and pods must not answer from a cache:
// a stale answer could name a Pod that has since become somebody else's.
func NewExecREST(sandboxes rest.Getter, pods corev1client.PodsGetter, authorizer authorizer.Authorizer, streamer ExecStreamer) *ExecREST {
	return &ExecREST{sandboxes: sandboxes, pods: pods, authorizer: authorizer, streamer: streamer}
}

// New implements rest.Storage.
func (r *ExecREST) New() runtime.Object { return &agents.SandboxExecOptions{} }

// Destroy implements rest.Storage. What the storage uses belongs to others.
func (r *ExecREST) Destroy() {}

// NewConnectOptions implements rest.Connecter.
func (r *ExecREST) NewConnectOptions() (runtime.Object, bool, string) {
	return &agents.SandboxExecOptions{}, false, ""
}

// ConnectMethods implements rest.Connecter: WebSocket handshakes are GET requests, SPDY handshakes POST.
func (r *ExecREST) ConnectMethods() []string { return []string{http.MethodGet, http.MethodPost} }

// Connect implements rest.Connecter. A Sandbox in a state that has no command run in it is answered with 409 Conflict and not
// 503, for it is the object that is not available, not the server: load balancers and alerts must not take it for an outage,
// and client-go must not retry it unasked. The cause in the details is the reason that the Ready condition gives for the state; where
// the state will pass by itself the details suggest a delay, which is sent as Retry-After.
func (r *ExecREST) Connect(ctx context.Context, name string, options runtime.Object, responder rest.Responder) (http.Handler, error) {
	execOptions, ok := options.(*agents.SandboxExecOptions)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("options of exec are of type %T", options))
	}
	if err := r.authorizeCreate(ctx); err != nil {
		return nil, err
	}
	sandbox, err := r.runningSandbox(ctx, name)
	if err != nil {
		return nil, err
	}
	pod, err := r.controlledPod(ctx, sandbox)
	if err != nil {
		return nil, err
	}
	if err := checkPodRunning(sandbox, pod); err != nil {
		return nil, err
	}
	container, err := containerFor(pod, execOptions.Container)
	if err != nil {
		return nil, err
	}
	if err := validateExecOptions(execOptions); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}

	audit.AddAuditAnnotation(ctx, execPodAuditAnnotation, pod.Name+"/"+string(pod.UID))
	handler, err := r.streamer.Exec(pod.Namespace, pod.Name, &corev1.PodExecOptions{
		Stdin:     execOptions.Stdin,
		Stdout:    execOptions.Stdout,
		Stderr:    execOptions.Stderr,
		TTY:       execOptions.TTY,
		Container: container,
		Command:   execOptions.Command,
	}, responder)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return handler, nil
}

// createAttributes are the attributes of a request with the verb create.
type createAttributes struct{ authorizer.Attributes }

// GetVerb implements authorizer.Attributes.
func (createAttributes) GetVerb() string { return "create" }

// authorizeCreate makes sure that the user may create the subresource, whatever the verb of the request. A WebSocket
// handshake has the verb get, and so would be open to all who may but read (see kubernetes/kubernetes#133515).
func (r *ExecREST) authorizeCreate(ctx context.Context) error {
	attributes, err := filters.GetAuthorizerAttributes(ctx)
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("reading the attributes of the request: %w", err))
	}
	create := createAttributes{attributes}
	if attributes.GetVerb() == create.GetVerb() {
		return nil
	}
	decision, reason, err := r.authorizer.Authorize(ctx, create)
	if decision == authorizer.DecisionAllow {
		return nil
	}
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("authorizing exec: %w", err))
	}
	return responsewriters.ForbiddenStatusError(create, reason)
}

// runningSandbox returns the Sandbox if it is meant to run.
func (r *ExecREST) runningSandbox(ctx context.Context, name string) (*agents.Sandbox, error) {
	obj, err := r.sandboxes.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	sandbox, ok := obj.(*agents.Sandbox)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("sandbox %q is of type %T", name, obj))
	}
	if sandbox.DeletionTimestamp != nil {
		return nil, newConflict(name, metav1.StatusCause{Type: "SandboxDeleting", Message: "the sandbox is being deleted"}, 0)
	}
	if sandbox.Spec.OperatingMode == agents.SandboxOperatingModeSuspended {
		return nil, newConflict(name, metav1.StatusCause{
			Type:    v1beta1.SandboxReasonSuspended,
			Message: fmt.Sprintf(`the sandbox is suspended; resume it first, with "kubectl sandbox resume %s" or by setting spec.operatingMode to Running`, name),
		}, 0)
	}
	return sandbox, nil
}

// controlledPod returns the one Pod that the Sandbox controls. Names, labels and annotations only say where to look, for users
// can write them; what counts is the UID in the Pod's controller reference.
func (r *ExecREST) controlledPod(ctx context.Context, sandbox *agents.Sandbox) (*corev1.Pod, error) {
	pods := r.pods.Pods(sandbox.Namespace)
	pod, err := pods.Get(ctx, naming.Pod(sandbox.Name), metav1.GetOptions{})
	if err == nil && controls(sandbox, pod) {
		return pod, nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, apierrors.NewInternalError(fmt.Errorf("getting the pod of sandbox %s/%s: %w", sandbox.Namespace, sandbox.Name, err))
	}

	// Pods that were adopted from elsewhere keep their names.
	selector := labels.SelectorFromSet(labels.Set{v1beta1.SandboxNameHashLabel: naming.Hash(sandbox.Name)})
	list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("listing the pods of sandbox %s/%s: %w", sandbox.Namespace, sandbox.Name, err))
	}
	controlled := slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return !controls(sandbox, &pod) })
	switch len(controlled) {
	case 0:
		return nil, newConflict(sandbox.Name, metav1.StatusCause{
			Type: v1beta1.SandboxReasonDependenciesNotReady, Message: "the sandbox has no running pod yet",
		}, podRetryAfterSeconds)
	case 1:
		return &controlled[0], nil
	default:
		return nil, newConflict(sandbox.Name, metav1.StatusCause{
			Type: v1beta1.SandboxReasonMultiplePods, Message: fmt.Sprintf("the sandbox has %d pods, where it must have one", len(controlled)),
		}, 0)
	}
}

// controls says whether the Sandbox is the controller of the Pod. Any version will do, for the reference keeps the one that its
// writer used.
func controls(sandbox *agents.Sandbox, pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.UID == "" || owner.UID != sandbox.UID {
		return false
	}
	kind := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind()
	return kind == agents.Kind("Sandbox") && pod.Namespace == sandbox.Namespace
}

// checkPodRunning returns an error if no command can be run in the Pod now.
func checkPodRunning(sandbox *agents.Sandbox, pod *corev1.Pod) error {
	if pod.DeletionTimestamp != nil {
		return newConflict(sandbox.Name, metav1.StatusCause{
			Type: v1beta1.SandboxReasonPodTerminating, Message: fmt.Sprintf("pod %q of the sandbox is terminating", pod.Name),
		}, podRetryAfterSeconds)
	}
	switch pod.Status.Phase {
	case corev1.PodRunning:
		return nil
	case corev1.PodSucceeded, corev1.PodFailed:
		reason := v1beta1.SandboxReasonPodSucceeded
		if pod.Status.Phase == corev1.PodFailed {
			reason = v1beta1.SandboxReasonPodFailed
		}
		return newConflict(sandbox.Name, metav1.StatusCause{
			Type: metav1.CauseType(reason), Message: fmt.Sprintf("pod %q of the sandbox has ended; current phase is %s", pod.Name, pod.Status.Phase),
		}, 0)
	default:
		return newConflict(sandbox.Name, metav1.StatusCause{
			Type:    v1beta1.SandboxReasonDependenciesNotReady,
			Message: fmt.Sprintf("pod %q of the sandbox is not running yet; current phase is %q", pod.Name, pod.Status.Phase),
		}, podRetryAfterSeconds)
	}
}

// containerFor returns the name of the container to run a command in: that given, if the Pod has it, or the default.
func containerFor(pod *corev1.Pod, given string) (string, error) {
	regular := make([]string, 0, len(pod.Spec.Containers))
	for i := range pod.Spec.Containers {
		regular = append(regular, pod.Spec.Containers[i].Name)
	}
	if given == "" {
		if annotated := pod.Annotations[defaultContainerAnnotation]; slices.Contains(regular, annotated) {
			return annotated, nil
		}
		return regular[0], nil
	}
	choices := slices.Concat(regular, running(pod.Status.InitContainerStatuses), running(pod.Status.EphemeralContainerStatuses))
	if !slices.Contains(choices, given) {
		return "", apierrors.NewBadRequest(fmt.Sprintf("container %q is not one of those that pod %q has to run a command in: %s",
			given, pod.Name, strings.Join(choices, ", ")))
	}
	return given, nil
}

// running returns the names of the containers that run.
func running(statuses []corev1.ContainerStatus) []string {
	var names []string
	for i := range statuses {
		if statuses[i].State.Running != nil {
			names = append(names, statuses[i].Name)
		}
	}
	return names
}

// validateExecOptions returns an error that names the option which makes the options useless.
func validateExecOptions(options *agents.SandboxExecOptions) error {
	var errs field.ErrorList
	if !options.Stdin && !options.Stdout && !options.Stderr {
		errs = append(errs, field.Required(field.NewPath("stdout"), "at least one of stdin, stdout and stderr must be true"))
	}
	if len(options.Command) == 0 || options.Command[0] == "" {
		errs = append(errs, field.Required(field.NewPath("command"), "must name the program to run"))
	}
	return errs.ToAggregate()
}

// newConflict returns a 409 Conflict whose details carry the cause and, if it is not 0, the delay in seconds after which to retry.
func newConflict(name string, cause metav1.StatusCause, retryAfterSeconds int32) *apierrors.StatusError {
	conflict := apierrors.NewConflict(agents.Resource("sandboxes"), name, fmt.Errorf("%s", cause.Message))
	conflict.ErrStatus.Details.Causes = []metav1.StatusCause{cause}
	conflict.ErrStatus.Details.RetryAfterSeconds = retryAfterSeconds
	return conflict
}
