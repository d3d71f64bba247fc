// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/install"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/agents/sandbox/storage"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/status"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/registrytest"
)

const namespace = registrytest.Namespace

// endpoints are the endpoints of sandboxes over a real etcd.
type endpoints struct {
	*storage.REST
	status  *status.REST
	suspend *storage.SuspendREST
	resume  *storage.ResumeREST
}

func newEndpoints(t *testing.T) endpoints {
	t.Helper()
	scheme := runtime.NewScheme()
	install.Install(scheme)
	codec := registrytest.Codec(t, scheme, agents.SchemeGroupVersion, v1beta1.SchemeGroupVersion)
	rest, status, err := storage.NewREST(scheme, registrytest.RESTOptions(codec, agents.Resource("sandboxes"), registrytest.StartEtcd(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(rest.Destroy)
	suspend, resume, err := storage.NewOperatingModeREST(scheme, registrytest.TypeConverter(t, scheme, v1beta1.Sandbox{}.OpenAPIModelName()), rest)
	if err != nil {
		t.Fatal(err)
	}
	return endpoints{rest, status, suspend, resume}
}

func validSandbox() *agents.Sandbox {
	return &agents.Sandbox{
		ObjectMeta: metav1.ObjectMeta{Name: "sandbox", Namespace: namespace},
		Spec: agents.SandboxSpec{
			SandboxBlueprint: agents.SandboxBlueprint{
				PodTemplate: agents.PodTemplate{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "image"}}}},
			},
			OperatingMode:  agents.SandboxOperatingModeRunning,
			ShutdownPolicy: ptr.To(agents.ShutdownPolicyRetain),
		},
	}
}

// creatorFields is what the creator of a Sandbox owns, besides the operating mode that the tests change.
var creatorFields = metav1.ManagedFieldsEntry{
	Manager: "creator", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "agents.x-k8s.io/v1beta1",
	FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:shutdownPolicy":{}}}`),
}

// create stores a valid Sandbox as the generic handlers would, which give every field an owner.
func (e endpoints) create(t *testing.T) *agents.Sandbox {
	t.Helper()
	sandbox := validSandbox()
	sandbox.ManagedFields = []metav1.ManagedFieldsEntry{creatorFields}
	obj, err := e.Create(registrytest.Context(t.Context()), sandbox, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*agents.Sandbox)
}

func (e endpoints) get(t *testing.T) *agents.Sandbox {
	t.Helper()
	obj, err := e.Get(registrytest.Context(t.Context()), "sandbox", &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*agents.Sandbox)
}

// TestStandardBehaviour runs the library's own suite for stored resources.
func TestStandardBehaviour(t *testing.T) {
	registrytest.Standard[*agents.Sandbox]{
		NewStore: func(t *testing.T) *genericregistry.Store { return newEndpoints(t).Store },
		Valid:    validSandbox,
		Change:   func(s *agents.Sandbox) { s.Spec.PodTemplate.Spec.Containers[0].Image = "other" },
		Spoil:    func(s *agents.Sandbox) { s.Spec.OperatingMode = "Paused" },
	}.Test(t)
}

func TestStatusIsWrittenByStatusAlone(t *testing.T) {
	e := newEndpoints(t)
	created := e.create(t)
	change := created.DeepCopy()
	change.Status.NodeName = "node"
	change.Spec.OperatingMode = agents.SandboxOperatingModeSuspended

	if _, _, err := e.status.Update(registrytest.Context(t.Context()), "sandbox", rest.DefaultUpdatedObjectInfo(change),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	want := created.DeepCopy()
	want.Status.NodeName = "node"
	got := e.get(t)
	want.ResourceVersion = got.ResourceVersion
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("after a write to status (-want +got):\n%s", diff)
	}
}

func TestStatusNeverCreates(t *testing.T) {
	_, _, err := newEndpoints(t).status.Update(registrytest.Context(t.Context()), "sandbox", rest.DefaultUpdatedObjectInfo(validSandbox()),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, true, &metav1.UpdateOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("error is %v, want NotFound", err)
	}
}

func TestSuspendAndResume(t *testing.T) {
	e := newEndpoints(t)
	created := e.create(t)
	ctx := registrytest.Context(t.Context())

	suspended, err := e.suspend.Create(ctx, "sandbox", &agents.SandboxSuspend{}, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := suspended.(*agents.Sandbox)
	if diff := cmp.Diff(e.get(t), got); diff != "" {
		t.Errorf("the answer is not what was stored (-stored +answer):\n%s", diff)
	}
	if got.Spec.OperatingMode != agents.SandboxOperatingModeSuspended || got.Generation != created.Generation+1 {
		t.Errorf("mode %s at generation %d, want Suspended at %d", got.Spec.OperatingMode, got.Generation, created.Generation+1)
	}
	want := []metav1.ManagedFieldsEntry{creatorFields, {
		Manager: "sandbox-apiserver", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "agents.x-k8s.io/v1beta1",
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:operatingMode":{}}}`), Subresource: "suspend",
	}}
	ignoreTime := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Time" }, cmp.Ignore())
	if diff := cmp.Diff(want, got.ManagedFields, ignoreTime); diff != "" {
		t.Errorf("field owners (-want +got):\n%s", diff)
	}

	again, err := e.suspend.Create(ctx, "sandbox", &agents.SandboxSuspend{}, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(suspended, again); diff != "" {
		t.Errorf("suspending twice changed (-once +twice):\n%s", diff)
	}

	resumed, err := e.resume.Create(ctx, "sandbox", &agents.SandboxResume{}, rest.ValidateAllObjectFunc, &metav1.CreateOptions{FieldManager: "me"})
	if err != nil {
		t.Fatal(err)
	}
	got = resumed.(*agents.Sandbox)
	if got.Spec.OperatingMode != agents.SandboxOperatingModeRunning {
		t.Errorf("mode %s after resume, want Running", got.Spec.OperatingMode)
	}
	want[1].Manager, want[1].Subresource = "me", "resume"
	if diff := cmp.Diff(want, got.ManagedFields, ignoreTime); diff != "" {
		t.Errorf("field owners (-want +got):\n%s", diff)
	}
}

func TestSuspendDryRunStoresNothing(t *testing.T) {
	e := newEndpoints(t)
	created := e.create(t)
	obj, err := e.suspend.Create(registrytest.Context(t.Context()), "sandbox", &agents.SandboxSuspend{}, rest.ValidateAllObjectFunc,
		&metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		t.Fatal(err)
	}
	if mode := obj.(*agents.Sandbox).Spec.OperatingMode; mode != agents.SandboxOperatingModeSuspended {
		t.Errorf("the answer says %s, want Suspended", mode)
	}
	if diff := cmp.Diff(created, e.get(t)); diff != "" {
		t.Errorf("stored object changed (-before +after):\n%s", diff)
	}
}

func TestSuspendRefuses(t *testing.T) {
	refuse := func(context.Context, runtime.Object) error {
		return apierrors.NewForbidden(agents.Resource("sandboxes"), "sandbox", nil)
	}
	for _, test := range []struct {
		name     string
		body     agents.SandboxSuspend
		target   string
		validate rest.ValidateObjectFunc
		deleting bool
		want     int32
	}{
		{name: "a Sandbox that is not there", target: "other", want: http.StatusNotFound},
		{name: "a body that names another Sandbox", body: agents.SandboxSuspend{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, want: http.StatusBadRequest},
		{name: "another UID", body: agents.SandboxSuspend{Preconditions: &agents.Preconditions{UID: ptr.To(types.UID("other"))}}, want: http.StatusConflict},
		{name: "another resourceVersion", body: agents.SandboxSuspend{Preconditions: &agents.Preconditions{ResourceVersion: ptr.To("0")}}, want: http.StatusConflict},
		{name: "what admission refuses", validate: refuse, want: http.StatusForbidden},
		{name: "a Sandbox that is being deleted", deleting: true, want: http.StatusConflict},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := newEndpoints(t)
			e.create(t)
			if test.deleting {
				foreground := metav1.DeletePropagationForeground
				if _, _, err := e.Delete(registrytest.Context(t.Context()), "sandbox", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
					t.Fatal(err)
				}
			}
			before := e.get(t)
			target := test.target
			if target == "" {
				target = "sandbox"
			}
			_, err := e.suspend.Create(registrytest.Context(t.Context()), target, &test.body, test.validate, &metav1.CreateOptions{})
			status, ok := err.(apierrors.APIStatus)
			if !ok || status.Status().Code != test.want {
				t.Errorf("error is %v, want one with code %d", err, test.want)
			}
			if diff := cmp.Diff(before, e.get(t)); diff != "" {
				t.Errorf("stored object changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestSuspendWithMatchingPreconditions(t *testing.T) {
	e := newEndpoints(t)
	created := e.create(t)
	body := &agents.SandboxSuspend{Preconditions: &agents.Preconditions{UID: &created.UID, ResourceVersion: &created.ResourceVersion}}
	if _, err := e.suspend.Create(registrytest.Context(t.Context()), "sandbox", body, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
}
