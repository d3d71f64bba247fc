// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

// matchAll matches the operations on resources of any group, or of the given one.
func matchAll(group, resource string, operations ...admissionregistrationv1.OperationType) *admissionregistrationv1.MatchResources {
	return &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
		RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: operations,
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{resource}},
		},
	}}}
}

// validate makes a policy with one expression for one namespace.
func validate(t *testing.T, namespace, name, expression string, match *admissionregistrationv1.MatchResources) {
	t.Helper()
	reason := metav1.StatusReasonForbidden
	policies, bindings := env.kube.AdmissionregistrationV1().ValidatingAdmissionPolicies(), env.kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	name = namespace + "-" + name
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: match,
			Validations:      []admissionregistrationv1.Validation{{Expression: expression, Message: "the policy says no", Reason: &reason}},
		},
	}
	if _, err := policies.Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        name,
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			MatchResources: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			},
		},
	}
	if _, err := bindings.Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	deleteAtTheEnd(t, name, bindings, policies)
}

// deleteAtTheEnd deletes what has a name from collections, one after the other.
func deleteAtTheEnd(t *testing.T, name string, collections ...interface {
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
}) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		for _, collection := range collections {
			if err := collection.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestValidatingAdmissionPolicy(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	const all = admissionregistrationv1.OperationAll
	validate(t, namespace, "main", "object == null || object.spec.operatingMode != 'Running'", matchAll(v1beta1.GroupName, "sandboxes", all))
	eventually(t, "a policy on sandboxes", func(ctx context.Context) error {
		_, err := sandboxes(namespace).Create(ctx, framework.NewSandbox("running"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsForbidden(err) {
			checkStatusError(t, err, 403, "the policy says no")
			return nil
		}
		return errors.Join(errors.New("creation is not refused"), err)
	})
	createSettled(t, namespace, "box")
	_, err := mergePatch(t.Context(), namespace, "box", `{"spec":{"operatingMode":"Running"}}`)
	checkStatusError(t, err, 403, "the policy says no")
}

func TestValidatingAdmissionPolicyOnExec(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	createReady(t, namespace, framework.NewSandbox("box"))
	validate(t, namespace, "exec", "object.command[0] != 'id'", matchAll(v1beta1.GroupName, "sandboxes/exec", admissionregistrationv1.Connect))
	for _, protocol := range []framework.Protocol{framework.WebSocket, framework.SPDY} {
		eventually(t, "a policy on exec over "+string(protocol), func(ctx context.Context) error {
			_, _, err := execute(ctx, env.config, protocol, namespace, "box", "id")
			if isForbidden(err) {
				return nil
			}
			return errors.Join(errors.New("the command is not refused"), err)
		})
		stdout, _, err := execute(t.Context(), env.config, protocol, namespace, "box", "echo", "hello")
		if err != nil || stdout != "hello\n" {
			t.Errorf("%s: a command that the policy allows: %q, %v", protocol, stdout, err)
		}
	}
}

func TestValidatingAdmissionPolicyOnActions(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	createSettled(t, namespace, "box")
	validate(t, namespace, "resume", "false", matchAll(v1beta1.GroupName, "sandboxes/resume", admissionregistrationv1.Create))
	eventually(t, "a policy on resume", func(ctx context.Context) error {
		_, err := sandboxes(namespace).Resume(ctx, "box", &v1beta1.SandboxResume{}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsForbidden(err) {
			return nil
		}
		return errors.Join(errors.New("resume is not refused"), err)
	})
	if _, err := sandboxes(namespace).Suspend(t.Context(), "box", &v1beta1.SandboxSuspend{}, metav1.CreateOptions{}); err != nil {
		t.Errorf("suspend, which the policy does not match: %v", err)
	}
}

// TestMutatingAdmissionPolicy has a policy that matches everything. The server learns the schema of its own kinds from
// kube-apiserver, which has it from the server: right after a start writes must come through all the same. It is not parallel,
// because the policy is everybody's and the server is restarted.
func TestMutatingAdmissionPolicy(t *testing.T) {
	namespace := newNamespace(t)
	const name, annotation = "integration-catch-all", "example.com/mutated"
	policies, bindings := env.kube.AdmissionregistrationV1().MutatingAdmissionPolicies(), env.kube.AdmissionregistrationV1().MutatingAdmissionPolicyBindings()
	fail := admissionregistrationv1.Fail
	_, err := policies.Create(t.Context(), &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			FailurePolicy:      &fail,
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			MatchConstraints:   matchAll("*", "*", admissionregistrationv1.Create, admissionregistrationv1.Update),
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType: admissionregistrationv1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{
					Expression: `Object{metadata: Object.metadata{annotations: {"` + annotation + `": "yes"}}}`,
				},
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	deleteAtTheEnd(t, name, bindings, policies)
	_, err = bindings.Create(t.Context(), &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	awaitMutation := func() {
		t.Helper()
		eventually(t, "a Sandbox that the policy changed", func(ctx context.Context) error {
			sandbox, err := sandboxes(namespace).Create(ctx, framework.NewSandbox("box"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err == nil && sandbox.Annotations[annotation] != "yes" {
				err = errors.New("it is not changed")
			}
			return err
		})
	}
	awaitMutation()
	restart(t, sandboxAPIServer)
	awaitMutation()
	createReady(t, namespace, framework.NewSandbox("box"))
	for _, action := range []string{"suspend", "resume"} {
		if _, err := act(t, namespace, "box", action, "{}"); err != nil {
			t.Errorf("%s: %v", action, err)
		}
	}
}

func TestNamespaceLifecycle(t *testing.T) {
	t.Parallel()
	_, err := sandboxes("no-such-namespace").Create(t.Context(), framework.NewSandbox("box"), metav1.CreateOptions{})
	checkStatusError(t, err, 404, `namespaces "no-such-namespace" not found`)

	namespace := newNamespace(t)
	create(t, namespace, framework.NewSandbox("held", framework.Suspended, func(s *v1beta1.Sandbox) { s.Finalizers = []string{"example.com/hold"} }))
	if err := env.kube.CoreV1().Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		if _, err := mergePatch(ctx, namespace, "held", `{"metadata":{"finalizers":null}}`); err != nil {
			t.Error(err)
		}
	})
	eventually(t, "creation is refused in a namespace that is being deleted", func(ctx context.Context) error {
		_, err := sandboxes(namespace).Create(ctx, framework.NewSandbox("box", framework.Suspended), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsForbidden(err) && apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return nil
		}
		return errors.Join(errors.New("it is not refused as it should"), err)
	})
	if _, err := mergePatch(t.Context(), namespace, "held", `{"metadata":{"labels":{"a":"b"}}}`); err != nil {
		t.Errorf("an update in a namespace that is being deleted: %v", err)
	}
}

// TestResourceQuota does not rely on kube-controller-manager to notice objects come and go: for half a minute after it lost or has
// not yet found our API it does not, and would count again within five minutes only.
func TestResourceQuota(t *testing.T) {
	t.Parallel()
	for resource, operations := range map[corev1.ResourceName]countedKind{
		"count/sandboxes.agents.x-k8s.io": countedAs(sandboxes, func(name string) *v1beta1.Sandbox {
			return framework.NewSandbox(name, framework.Suspended)
		}),
		"count/sandboxclaims.extensions.agents.x-k8s.io": countedAs(claims, func(name string) *extensionsv1beta1.SandboxClaim {
			return framework.NewClaim(name, "no-such-pool")
		}),
		"count/sandboxtemplates.extensions.agents.x-k8s.io": countedAs(templates, func(name string) *extensionsv1beta1.SandboxTemplate {
			return framework.NewTemplate(name)
		}),
		"count/sandboxwarmpools.extensions.agents.x-k8s.io": countedAs(pools, func(name string) *extensionsv1beta1.SandboxWarmPool {
			return framework.NewPool(name, "no-such-template", 0)
		}),
	} {
		t.Run(string(resource), func(t *testing.T) {
			t.Parallel()
			testResourceQuota(t, resource, operations)
		})
	}
}

// countedKind is what a test of quotas does with objects of a kind.
type countedKind struct {
	create, delete func(ctx context.Context, namespace, name string) error
	// gone waits until there is no object of the name.
	gone func(t *testing.T, namespace, name string)
}

// countedAs returns what is done through a client with objects that make makes.
func countedAs[T any, C interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
	Get(context.Context, string, metav1.GetOptions) (T, error)
}](client func(namespace string) C, make func(name string) T) countedKind {
	return countedKind{
		create: func(ctx context.Context, namespace, name string) error {
			_, err := client(namespace).Create(ctx, make(name), metav1.CreateOptions{})
			return err
		},
		delete: func(ctx context.Context, namespace, name string) error {
			return client(namespace).Delete(ctx, name, metav1.DeleteOptions{})
		},
		gone: func(t *testing.T, namespace, name string) {
			t.Helper()
			awaitGone(t, "the object", client(namespace).Get, name)
		},
	}
}

func testResourceQuota(t *testing.T, counted corev1.ResourceName, kind countedKind) {
	const countPatience = 3 * time.Minute
	ctx, namespace := t.Context(), newNamespace(t)
	quotas := env.kube.CoreV1().ResourceQuotas(namespace)
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "quota"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{counted: resource.MustParse("1")}},
	}
	if _, err := quotas.Create(ctx, quota, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	otherLimit := 1000
	awaitUsed := func(want string) {
		t.Helper()
		eventuallyWithin(t, countPatience, "use of the quota", func(ctx context.Context) error {
			// Any change of a quota has everything counted that it limits.
			otherLimit++
			quota, err := quotas.Patch(ctx, "quota", types.MergePatchType, fmt.Appendf(nil, `{"spec":{"hard":{"pods":"%d"}}}`, otherLimit), metav1.PatchOptions{})
			if err != nil {
				return err
			}
			if used, ok := quota.Status.Used[counted]; !ok || used.String() != want {
				return fmt.Errorf("used is %+v, want %s", quota.Status.Used, want)
			}
			return nil
		})
	}
	awaitUsed("0")
	if err := kind.create(ctx, namespace, "first"); err != nil {
		t.Fatal(err)
	}
	// The server itself counts what it admits.
	checkStatusError(t, kind.create(ctx, namespace, "second"), 403, "exceeded quota: quota")
	if err := kind.delete(ctx, namespace, "first"); err != nil {
		t.Fatal(err)
	}
	kind.gone(t, namespace, "first")
	awaitUsed("0")
	if err := kind.create(ctx, namespace, "second"); err != nil {
		t.Error(err)
	}
}

// TestTemplateThatIsNoPod is about templates of which no Sandbox could have a Pod.
func TestTemplateThatIsNoPod(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	container := func(change func(*corev1.Container)) *extensionsv1beta1.SandboxTemplate {
		return framework.NewTemplate("t1", func(t *extensionsv1beta1.SandboxTemplate) { change(&t.Spec.PodTemplate.Spec.Containers[0]) })
	}
	invalid := container(func(c *corev1.Container) { c.ImagePullPolicy = "Sometimes" })
	privileged := container(func(c *corev1.Container) { c.SecurityContext = &corev1.SecurityContext{Privileged: new(true)} })

	_, err := templates(namespace).Create(t.Context(), invalid, metav1.CreateOptions{})
	checkStatusError(t, err, 422, `SandboxTemplate.extensions.agents.x-k8s.io "t1" is invalid: spec.podTemplate.spec.containers[0].imagePullPolicy: `)
	if _, err := templates(namespace).Create(t.Context(), privileged, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Errorf("a privileged template where nothing forbids it: %v", err)
	}
	if _, err := env.kube.CoreV1().Namespaces().Patch(t.Context(), namespace, types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"baseline"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	// What was accepted a moment ago is not asked about again.
	privileged.Spec.PodTemplate.Spec.Containers[0].Name = "other"
	eventually(t, "a privileged template to be refused", func(ctx context.Context) error {
		_, err := templates(namespace).Create(ctx, privileged, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsForbidden(err) {
			checkStatusError(t, err, 403, `"t1" is forbidden: spec.podTemplate: violates PodSecurity "baseline:latest"`)
			return nil
		}
		return errors.Join(errors.New("it is not"), err)
	})
	createTemplate(t, namespace)
	_, err = templates(namespace).Patch(t.Context(), templateName, types.JSONPatchType,
		[]byte(`[{"op":"add","path":"/spec/podTemplate/spec/containers/0/imagePullPolicy","value":"Sometimes"}]`), metav1.PatchOptions{})
	checkStatusError(t, err, 422, "spec.podTemplate.spec.containers[0].imagePullPolicy: ")
}
