// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxtemplate

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/informer"
	sandboxfake "github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned/fake"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
)

const (
	testNamespace = "tenant"
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

// fixture is a Controller between fake servers and caches that hold only what a test puts there: nothing flows from one to the
// other, so each test says how far the cache lags.
type fixture struct {
	*Controller
	t         *testing.T
	kube      *fake.Clientset
	templates *sandboxfake.Clientset
	clock     *clocktesting.FakeClock
	events    chan string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, kube: fake.NewClientset(), templates: sandboxfake.NewSimpleClientset(), clock: clocktesting.NewFakeClock(testTime())}
	recorder := events.NewFakeRecorder(10)
	f.events = recorder.Events
	controller, err := New(Config{
		KubeClient: f.kube, SandboxClient: f.templates,
		PolicyInformers: NewPolicyInformerFactory(f.kube), SandboxInformers: informer.NewFactory(f.templates),
		Recorder: recorder, Clock: f.clock,
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Controller = controller
	return f
}

// onServer puts objects where live reads and writes find them.
func (f *fixture) onServer(objects ...runtime.Object) *fixture {
	f.t.Helper()
	for _, object := range objects {
		tracker := f.kube.Tracker()
		if _, ok := object.(*extensionsv1beta1.SandboxTemplate); ok {
			tracker = f.templates.Tracker()
		}
		if err := tracker.Add(object.DeepCopyObject()); err != nil {
			f.t.Fatal(err)
		}
	}
	return f
}

// inCache puts objects where the informers keep them.
func (f *fixture) inCache(objects ...runtime.Object) *fixture {
	f.t.Helper()
	for _, object := range objects {
		indexer := f.config.PolicyInformers.Networking().V1().NetworkPolicies().Informer().GetIndexer()
		if _, ok := object.(*extensionsv1beta1.SandboxTemplate); ok {
			indexer = f.config.SandboxInformers.Extensions().V1beta1().SandboxTemplates().Informer().GetIndexer()
		}
		if err := indexer.Update(object.DeepCopyObject()); err != nil {
			f.t.Fatal(err)
		}
	}
	return f
}

func (f *fixture) everywhere(objects ...runtime.Object) *fixture {
	f.t.Helper()
	return f.onServer(objects...).inCache(objects...)
}

func (f *fixture) pass() (time.Duration, error) {
	f.t.Helper()
	return f.reconcile(context.Background(), cache.NewObjectName(testNamespace, testName))
}

func (f *fixture) mustPass() {
	f.t.Helper()
	if _, err := f.pass(); err != nil {
		f.t.Fatalf("unexpected error: %v", err)
	}
}

// policy returns the NetworkPolicy on the server, or nil.
func (f *fixture) policy() *networkingv1.NetworkPolicy {
	f.t.Helper()
	policy, err := f.kube.Tracker().Get(networkingv1.SchemeGroupVersion.WithResource("networkpolicies"), testNamespace, testPolicy)
	if err != nil {
		return nil
	}
	return policy.(*networkingv1.NetworkPolicy)
}

// wantRequests checks what was asked of the servers since the last call, as "verb resource".
func (f *fixture) wantRequests(want ...string) {
	f.t.Helper()
	var got []string
	for _, action := range append(f.kube.Actions(), f.templates.Actions()...) {
		got = append(got, action.GetVerb()+" "+action.GetResource().Resource)
	}
	f.kube.ClearActions()
	f.templates.ClearActions()
	if !slices.Equal(got, want) {
		f.t.Errorf("requests are\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

func (f *fixture) wantEvents(want ...string) {
	f.t.Helper()
	var got []string
	for len(f.events) > 0 {
		got = append(got, <-f.events)
	}
	if !slices.Equal(got, want) {
		f.t.Errorf("events are\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

func (f *fixture) refuse(verb string, err error) {
	f.kube.PrependReactor(verb, "networkpolicies", func(ktesting.Action) (bool, runtime.Object, error) { return true, nil, err })
}
