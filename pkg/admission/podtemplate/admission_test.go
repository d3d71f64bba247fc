// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package podtemplate

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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
)

func newSandbox(tweaks ...func(*agents.Sandbox)) *agents.Sandbox {
	sandbox := &agents.Sandbox{ObjectMeta: metav1.ObjectMeta{Name: "s1", Namespace: "default", UID: "uid"}}
	sandbox.Spec.PodTemplate.Spec.Containers = []corev1.Container{{Name: "main", Image: "image"}}
	for _, tweak := range tweaks {
		tweak(sandbox)
	}
	return sandbox
}

func named(name string) func(*agents.Sandbox) { return func(s *agents.Sandbox) { s.Name = name } }
func claimedBy(uid string) func(*agents.Sandbox) {
	return func(s *agents.Sandbox) {
		s.Labels = map[string]string{agentsv1beta1.ClaimUIDLabel: uid}
		s.Spec.PodTemplate.Metadata.Labels = map[string]string{agentsv1beta1.ClaimUIDLabel: uid}
	}
}
func labelled(s *agents.Sandbox) {
	s.Spec.PodTemplate.Metadata.Labels = map[string]string{"example.com/a": "b"}
}
func in(namespace string) func(*agents.Sandbox) {
	return func(s *agents.Sandbox) { s.Namespace = namespace }
}
func image(image string) func(*agents.Sandbox) {
	return func(s *agents.Sandbox) { s.Spec.PodTemplate.Spec.Containers[0].Image = image }
}
func suspended(s *agents.Sandbox) { s.Spec.OperatingMode = agents.SandboxOperatingModeSuspended }
func deleting(s *agents.Sandbox) {
	now := metav1.Now()
	s.DeletionTimestamp = &now
}

// request is a create, or an update if old is given.
func request(sandbox, old *agents.Sandbox, subresource string) admission.Attributes {
	operation, oldObject := admission.Create, runtime.Object(nil)
	if old != nil {
		operation, oldObject = admission.Update, old
	}
	return admission.NewAttributesRecord(sandbox, oldObject, agents.SchemeGroupVersion.WithKind("Sandbox"), sandbox.Namespace, sandbox.Name,
		agents.SchemeGroupVersion.WithResource("sandboxes"), subresource, operation, nil, false, nil)
}

func newTemplate(tweaks ...func(*extensions.SandboxTemplate)) *extensions.SandboxTemplate {
	template := &extensions.SandboxTemplate{ObjectMeta: metav1.ObjectMeta{Name: "t1", Namespace: "default"}}
	template.Spec.PodTemplate.Spec.Containers = []corev1.Container{{Name: "main", Image: "image"}}
	for _, tweak := range tweaks {
		tweak(template)
	}
	return template
}

func unmanaged(t *extensions.SandboxTemplate) {
	t.Spec.NetworkPolicyManagement = extensions.NetworkPolicyManagementUnmanaged
}

func withVolume(t *extensions.SandboxTemplate) {
	t.Spec.VolumeClaimTemplates = []agents.PersistentVolumeClaimTemplate{{Metadata: agents.EmbeddedObjectMetadata{Name: "data"}}}
}

func injecting(t *extensions.SandboxTemplate) {
	t.Spec.EnvVarsInjectionPolicy = extensions.EnvVarsInjectionPolicyAllowed
}

// templateRequest is a create, or an update if old is given.
func templateRequest(template, old *extensions.SandboxTemplate) admission.Attributes {
	operation, oldObject := admission.Create, runtime.Object(nil)
	if old != nil {
		operation, oldObject = admission.Update, old
	}
	return admission.NewAttributesRecord(template, oldObject, extensions.SchemeGroupVersion.WithKind("SandboxTemplate"), template.Namespace, template.Name,
		extensions.SchemeGroupVersion.WithResource("sandboxtemplates"), "", operation, nil, false, nil)
}

// poolRequest is about a kind that leads to no Pod by itself.
func poolRequest() admission.Attributes {
	return admission.NewAttributesRecord(&extensions.SandboxWarmPool{}, nil, extensions.SchemeGroupVersion.WithKind("SandboxWarmPool"), "default", "p1",
		extensions.SchemeGroupVersion.WithResource("sandboxwarmpools"), "", admission.Create, nil, false, nil)
}

// warnings records what would be sent in Warning headers.
type warnings []string

func (w *warnings) AddWarning(_, text string) { *w = append(*w, text) }

// newPlugin returns a plugin whose kube-apiserver answers every create of a Pod with the given error. A fake takes its part because
// answers such as an exhausted quota are to be had at will.
func newPlugin(t *testing.T, answer error) (*Plugin, *kubefake.Clientset) {
	t.Helper()
	client := kubefake.NewClientset()
	client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		create := action.(clienttesting.CreateActionImpl)
		if diff := cmp.Diff([]string{metav1.DryRunAll}, create.CreateOptions.DryRun); diff != "" {
			t.Errorf("the Pod is created in earnest (-want +got):\n%s", diff)
		}
		return true, create.GetObject(), answer
	})
	plugin := New()
	plugin.SetExternalKubeClientSet(client)
	if err := plugin.ValidateInitialization(); err != nil {
		t.Fatal(err)
	}
	return plugin, client
}

func TestAnswers(t *testing.T) {
	pods, pod := schema.GroupResource{Resource: "pods"}, schema.GroupKind{Kind: "Pod"}
	spec := field.NewPath("spec")
	forbidden := func(why string) error { return apierrors.NewForbidden(pods, "s1", errors.New(why)) }
	for _, test := range []struct {
		name        string
		answer      error
		wantCode    int32
		wantMessage string
		wantFields  []string
		wantWarning string
	}{
		{name: "a Pod that can be made"},
		{name: "a Pod whose name is taken", answer: apierrors.NewAlreadyExists(pods, "s1")},
		{name: "one mistake", answer: apierrors.NewInvalid(pod, "s1", field.ErrorList{field.Required(spec.Child("containers").Index(0).Child("image"), "")}),
			wantCode:    http.StatusUnprocessableEntity,
			wantMessage: `Sandbox.agents.x-k8s.io "s1" is invalid: spec.podTemplate.spec.containers[0].image: Required value`,
			wantFields:  []string{"spec.podTemplate.spec.containers[0].image"}},
		{name: "several mistakes", answer: apierrors.NewInvalid(pod, "s1", field.ErrorList{
			field.Invalid(field.NewPath("metadata", "labels"), "?", "no label"), field.Invalid(field.NewPath("metadata", "name"), "s1", "no name"),
		}), wantCode: http.StatusUnprocessableEntity,
			wantMessage: `Sandbox.agents.x-k8s.io "s1" is invalid: [spec.podTemplate.metadata.labels: Invalid value: "?": no label, metadata.name: Invalid value: "s1": no name]`,
			wantFields:  []string{"spec.podTemplate.metadata.labels", "metadata.name"}},
		{name: "a policy of the cluster", answer: &apierrors.StatusError{ErrStatus: metav1.Status{
			Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: "policy 'p' denied request: no",
		}}, wantCode: http.StatusUnprocessableEntity,
			wantMessage: `Sandbox.agents.x-k8s.io "s1" is invalid: spec.podTemplate: policy 'p' denied request: no`},
		{name: "the namespace's Pod security level", answer: forbidden(`violates PodSecurity "restricted:latest": privileged`), wantCode: http.StatusForbidden,
			wantMessage: `sandboxes.agents.x-k8s.io "s1" is forbidden: spec.podTemplate: violates PodSecurity "restricted:latest": privileged`},
		{name: "an exhausted quota", answer: forbidden("exceeded quota: q"), wantWarning: "exceeded quota: q"},
		{name: "a missing ServiceAccount", answer: forbidden("error looking up service account default/x"), wantWarning: "service account default/x"},
		{name: "a webhook that is down", answer: apierrors.NewInternalError(errors.New("failed calling webhook")), wantWarning: "failed calling webhook"},
		{name: "a kube-apiserver that is not reached", answer: errors.New("connection refused"), wantWarning: "connection refused"},
		{name: "a kube-apiserver that is too slow", answer: context.DeadlineExceeded, wantWarning: "deadline exceeded"},
		{name: "a webhook that takes no part in dry runs", answer: apierrors.NewBadRequest(`admission webhook "w" does not support dry run`)},
	} {
		t.Run(test.name, func(t *testing.T) {
			plugin, _ := newPlugin(t, test.answer)
			var warned warnings
			err := plugin.Validate(warning.WithWarningRecorder(t.Context(), &warned), request(newSandbox(), nil, ""), nil)
			if got := strings.Join(warned, "\n"); !strings.Contains(got, test.wantWarning) || (got == "") != (test.wantWarning == "") {
				t.Errorf("warned %q, want %q", got, test.wantWarning)
			}
			if test.wantCode == 0 {
				if err != nil {
					t.Errorf("refused with %v", err)
				}
				return
			}
			var status apierrors.APIStatus
			if !errors.As(err, &status) {
				t.Fatalf("error is %v, want a Status", err)
			}
			got := status.Status()
			if got.Code != test.wantCode || got.Message != test.wantMessage {
				t.Errorf("refused with %d %s\nwant %d %s", got.Code, got.Message, test.wantCode, test.wantMessage)
			}
			var fields []string
			for _, cause := range got.Details.Causes {
				fields = append(fields, cause.Field)
			}
			if diff := cmp.Diff(test.wantFields, fields); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRequests counts what requests cost: kube-apiserver is asked about a template once, and about nothing else.
func TestRequests(t *testing.T) {
	for _, test := range []struct {
		name     string
		requests []admission.Attributes
		want     int
	}{
		{"create", []admission.Attributes{request(newSandbox(), nil, "")}, 1},
		{"two of one template", []admission.Attributes{request(newSandbox(), nil, ""), request(newSandbox(named("s2")), nil, "")}, 1},
		{"two of one template for two claims", []admission.Attributes{request(newSandbox(claimedBy("c1")), nil, ""), request(newSandbox(claimedBy("c2")), nil, "")}, 1},
		{"two of one template with other labels", []admission.Attributes{request(newSandbox(), nil, ""), request(newSandbox(labelled), nil, "")}, 2},
		{"two templates", []admission.Attributes{request(newSandbox(), nil, ""), request(newSandbox(image("other")), nil, "")}, 2},
		{"two namespaces", []admission.Attributes{request(newSandbox(), nil, ""), request(newSandbox(in("other")), nil, "")}, 2},
		{"change of the template", []admission.Attributes{request(newSandbox(image("other")), newSandbox(), "")}, 1},
		{"change of something else", []admission.Attributes{request(newSandbox(suspended), newSandbox(), "")}, 0},
		{"status", []admission.Attributes{request(newSandbox(image("other")), newSandbox(), "status")}, 0},
		{"template", []admission.Attributes{templateRequest(newTemplate(), nil)}, 1},
		{"change of a template's volumes", []admission.Attributes{templateRequest(newTemplate(withVolume), newTemplate())}, 1},
		{"change that takes a template's DNS defaults away", []admission.Attributes{templateRequest(newTemplate(unmanaged), newTemplate())}, 1},
		{"change of what a template lets claims do", []admission.Attributes{templateRequest(newTemplate(injecting), newTemplate())}, 0},
		{"pool", []admission.Attributes{poolRequest()}, 0},
		{"finalizers of one that is being deleted", []admission.Attributes{request(newSandbox(image("other"), deleting), newSandbox(), "")}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			plugin, client := newPlugin(t, nil)
			for _, request := range test.requests {
				if err := plugin.Validate(t.Context(), request, nil); err != nil {
					t.Fatal(err)
				}
			}
			if got := len(client.Actions()); got != test.want {
				t.Errorf("%d requests to kube-apiserver, want %d: %v", got, test.want, client.Actions())
			}
		})
	}
}

func TestRefusalsAreNotRemembered(t *testing.T) {
	plugin, client := newPlugin(t, apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "s1", nil))
	for range 2 {
		if err := plugin.Validate(t.Context(), request(newSandbox(), nil, ""), nil); !apierrors.IsInvalid(err) {
			t.Fatalf("error is %v, want Invalid", err)
		}
	}
	if got := len(client.Actions()); got != 2 {
		t.Errorf("%d requests to kube-apiserver, want 2: what was wrong with the namespace may have been put right", got)
	}
}

// TestTemplateRefusal checks that what is wrong with the Pod of a template is said of the template.
func TestTemplateRefusal(t *testing.T) {
	for name, test := range map[string]struct {
		answer error
		want   string
	}{
		"invalid": {
			apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "t1", field.ErrorList{field.Required(field.NewPath("spec", "containers"), "")}),
			`SandboxTemplate.extensions.agents.x-k8s.io "t1" is invalid: spec.podTemplate.spec.containers: Required value`,
		},
		"forbidden": {
			apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "t1", errors.New(`violates PodSecurity "restricted:latest": privileged`)),
			`sandboxtemplates.extensions.agents.x-k8s.io "t1" is forbidden: spec.podTemplate: violates PodSecurity "restricted:latest": privileged`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			plugin, _ := newPlugin(t, test.answer)
			err := plugin.Validate(t.Context(), templateRequest(newTemplate(), nil), nil)
			if err == nil || err.Error() != test.want {
				t.Errorf("error is %v\nwant %s", err, test.want)
			}
		})
	}
}

// TestTemplateDefaults checks that the Pod which kube-apiserver is asked about is the one that a Sandbox of the template would have.
func TestTemplateDefaults(t *testing.T) {
	plugin, client := newPlugin(t, nil)
	if err := plugin.Validate(t.Context(), templateRequest(newTemplate(), nil), nil); err != nil {
		t.Fatal(err)
	}
	pod := client.Actions()[0].(clienttesting.CreateAction).GetObject().(*corev1.Pod)
	if pod.Spec.AutomountServiceAccountToken == nil || *pod.Spec.AutomountServiceAccountToken || pod.Spec.DNSPolicy != corev1.DNSNone {
		t.Errorf("asked about a Pod without the secure defaults: automountServiceAccountToken %v, dnsPolicy %q",
			pod.Spec.AutomountServiceAccountToken, pod.Spec.DNSPolicy)
	}
	if pod.Namespace != "default" {
		t.Errorf("asked about a Pod in namespace %q, want default", pod.Namespace)
	}
}
