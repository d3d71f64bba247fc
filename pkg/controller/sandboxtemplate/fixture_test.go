// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxtemplate

import (
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/informer"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/controllertest"
)

const (
	testNamespace = controllertest.Namespace
	testName      = "python"
	testPolicy    = "python-network-policy"
	testUID       = types.UID("template-uid")
)

func testTime() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// testTemplate returns a template that has its label already, changed by the given functions.
func testTemplate(changes ...func(*extensionsv1beta1.SandboxTemplate)) *extensionsv1beta1.SandboxTemplate {
	template := &extensionsv1beta1.SandboxTemplate{ObjectMeta: metav1.ObjectMeta{
		Namespace: testNamespace, Name: testName, UID: testUID, ResourceVersion: "100",
		Labels:            map[string]string{agentsv1beta1.SandboxTemplateRefHashLabel: naming.Hash(testName)},
		CreationTimestamp: metav1.NewTime(testTime().Add(-time.Minute)),
	}}
	for _, change := range changes {
		change(template)
	}
	return template
}

func unmanaged(template *extensionsv1beta1.SandboxTemplate) {
	template.Spec.NetworkPolicyManagement = extensionsv1beta1.NetworkPolicyManagementUnmanaged
}

func denyAll(template *extensionsv1beta1.SandboxTemplate) {
	template.Spec.NetworkPolicy = &extensionsv1beta1.NetworkPolicySpec{}
}

// testNetworkPolicy returns the NetworkPolicy that the controller would have made for the template, changed by the given functions.
func testNetworkPolicy(template *extensionsv1beta1.SandboxTemplate, changes ...func(*networkingv1.NetworkPolicy)) *networkingv1.NetworkPolicy {
	policy := desiredPolicy(template)
	policy.UID, policy.ResourceVersion = "policy-uid", "50"
	for _, change := range changes {
		change(policy)
	}
	return policy
}

func disown(policy *networkingv1.NetworkPolicy)  { policy.OwnerReferences = nil }
func inherit(policy *networkingv1.NetworkPolicy) { policy.OwnerReferences[0].UID = "earlier" }
func oldGroup(policy *networkingv1.NetworkPolicy) {
	policy.OwnerReferences[0].APIVersion = "example.com/v1"
}
func oldVersion(policy *networkingv1.NetworkPolicy) {
	policy.OwnerReferences[0].APIVersion = "extensions.agents.x-k8s.io/v1alpha1"
}

// fixture is a Controller and the World around it.
type fixture struct {
	*Controller
	*controllertest.World[*fixture]
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{}
	f.World = controllertest.NewWorld(t, f)
	f.Kube = fake.NewClientset()
	f.KubeInformers, f.Informers = NewPolicyInformerFactory(f.Kube), informer.NewFactory(f.Server)
	controller, err := New(Config{
		KubeClient: f.Kube, SandboxClient: f.Server, PolicyInformers: f.KubeInformers, SandboxInformers: f.Informers,
		Recorder: f.Recorder, Clock: clocktesting.NewFakeClock(testTime()),
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Controller, f.Reconcile, f.Name = controller, controller.reconcile, testName
	return f
}

// policy returns the NetworkPolicy on the server, or nil.
func (f *fixture) policy() *networkingv1.NetworkPolicy {
	f.T.Helper()
	policy, err := f.Kube.Tracker().Get(networkingv1.SchemeGroupVersion.WithResource("networkpolicies"), testNamespace, testPolicy)
	if err != nil {
		return nil
	}
	return policy.(*networkingv1.NetworkPolicy)
}
