// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/registrytest"
)

func (e endpoints) getScale(t *testing.T) *autoscalingv1.Scale {
	t.Helper()
	obj, err := e.scale.Get(registrytest.Context(t.Context()), "pool", &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*autoscalingv1.Scale)
}

// put sends the Scale as PUT does.
func (e endpoints) put(t *testing.T, scale *autoscalingv1.Scale, options metav1.UpdateOptions) (*autoscalingv1.Scale, error) {
	t.Helper()
	obj, _, err := e.scale.Update(registrytest.Context(t.Context()), "pool", rest.DefaultUpdatedObjectInfo(scale),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &options)
	if err != nil {
		return nil, err
	}
	return obj.(*autoscalingv1.Scale), nil
}

func TestGetScale(t *testing.T) {
	e := newEndpoints(t)
	pool := e.create(t)
	pool.Status = extensions.SandboxWarmPoolStatus{Replicas: 2, ReadyReplicas: 1, Selector: "a=b"}
	if _, _, err := e.status.Update(registrytest.Context(t.Context()), "pool", rest.DefaultUpdatedObjectInfo(pool),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	pool = e.get(t)
	want := &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{
			Name: "pool", Namespace: registrytest.Namespace, UID: pool.UID, ResourceVersion: pool.ResourceVersion, CreationTimestamp: pool.CreationTimestamp,
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: 3},
		Status: autoscalingv1.ScaleStatus{Replicas: 2, Selector: "a=b"},
	}
	if diff := cmp.Diff(want, e.getScale(t)); diff != "" {
		t.Errorf("scale (-want +got):\n%s", diff)
	}
}

func TestPutScale(t *testing.T) {
	e := newEndpoints(t)
	want := e.create(t)
	scale := e.getScale(t)
	scale.Spec.Replicas, scale.Status.Replicas = 0, 9
	answer, err := e.put(t, scale, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(e.getScale(t), answer); diff != "" {
		t.Errorf("the answer is not what was stored (-stored +answer):\n%s", diff)
	}
	got := e.get(t)
	want.Spec.Replicas, want.Generation, want.ResourceVersion = new(int32), 2, got.ResourceVersion
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pool (-want +got):\n%s", diff)
	}
}

func TestPutScaleRefuses(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*autoscalingv1.Scale)
		want   int32
	}{
		{"fewer than none", func(s *autoscalingv1.Scale) { s.Spec.Replicas = -1 }, http.StatusUnprocessableEntity},
		{"another version", func(s *autoscalingv1.Scale) { s.ResourceVersion = "1" }, http.StatusConflict},
		{"no version, as for custom resources", func(s *autoscalingv1.Scale) { s.ResourceVersion = "" }, http.StatusUnprocessableEntity},
		{"another UID", func(s *autoscalingv1.Scale) { s.UID = "other" }, http.StatusConflict},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := newEndpoints(t)
			before := e.create(t)
			scale := e.getScale(t)
			scale.Spec.Replicas = 5
			test.change(scale)
			_, err := e.put(t, scale, metav1.UpdateOptions{})
			var status apierrors.APIStatus
			if !errors.As(err, &status) || status.Status().Code != test.want {
				t.Errorf("error is %v, want one with code %d", err, test.want)
			}
			if diff := cmp.Diff(before, e.get(t)); diff != "" {
				t.Errorf("stored pool changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestPutScaleOfNoPool(t *testing.T) {
	e := newEndpoints(t)
	scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: "pool", Namespace: registrytest.Namespace}}
	if _, err := e.put(t, scale, metav1.UpdateOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("error is %v, want NotFound", err)
	}
}

func TestPutScaleDryRunStoresNothing(t *testing.T) {
	e := newEndpoints(t)
	before := e.create(t)
	scale := e.getScale(t)
	scale.Spec.Replicas = 5
	answer, err := e.put(t, scale, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		t.Fatal(err)
	}
	if answer.Spec.Replicas != 5 {
		t.Errorf("the answer says %d, want 5", answer.Spec.Replicas)
	}
	if diff := cmp.Diff(before, e.get(t)); diff != "" {
		t.Errorf("stored pool changed (-before +after):\n%s", diff)
	}
}

// TestAdmissionSeesScales checks that what judges a request is shown what was sent and what it replaces.
func TestAdmissionSeesScales(t *testing.T) {
	e := newEndpoints(t)
	e.create(t)
	scale := e.getScale(t)
	scale.Spec.Replicas = 5
	seen := [2]int32{}
	_, _, err := e.scale.Update(registrytest.Context(t.Context()), "pool", rest.DefaultUpdatedObjectInfo(scale), rest.ValidateAllObjectFunc,
		func(_ context.Context, obj, old runtime.Object) error {
			seen = [2]int32{obj.(*autoscalingv1.Scale).Spec.Replicas, old.(*autoscalingv1.Scale).Spec.Replicas}
			return nil
		}, false, &metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if want := [2]int32{5, 3}; seen != want {
		t.Errorf("saw %v, want %v", seen, want)
	}
}

// owners are what the generic handlers keep managedFields with.
type owners struct {
	pools, scales *managedfields.FieldManager
}

func (e endpoints) owners(t *testing.T) owners {
	t.Helper()
	types := registrytest.TypeConverter(t, e.scheme, v1beta1.SandboxWarmPool{}.OpenAPIModelName(), autoscalingv1.Scale{}.OpenAPIModelName())
	manager := func(kind schema.GroupVersionKind, subresource string) *managedfields.FieldManager {
		hub := schema.GroupVersion{Group: kind.Group, Version: runtime.APIVersionInternal}
		m, err := managedfields.NewDefaultFieldManager(types, e.scheme, e.scheme, e.scheme, kind, hub, subresource, nil)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	return owners{
		pools:  manager(v1beta1.SchemeGroupVersion.WithKind("SandboxWarmPool"), ""),
		scales: manager(autoscalingv1.SchemeGroupVersion.WithKind("Scale"), "scale"),
	}
}

// apply applies a manifest of the pool with so many members, as server-side apply does.
func (e endpoints) apply(t *testing.T, o owners, replicas int64, force bool) error {
	t.Helper()
	manifest := unstructuredPool(replicas)
	_, _, err := e.Update(registrytest.Context(t.Context()), "pool", rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		return o.pools.Apply(old, manifest, "applier", force)
	}), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	return err
}

// TestOwnershipOfReplicasMoves checks that who has scaled a pool owns its number: who applies another one is told, and not obeyed.
func TestOwnershipOfReplicasMoves(t *testing.T) {
	const template = `{"f:spec":{"f:sandboxTemplateRef":{"f:name":{}}}}`
	e := newEndpoints(t)
	o := e.owners(t)
	e.create(t, func(p *extensions.SandboxWarmPool) {
		p.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: "creator", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: v1beta1.SchemeGroupVersion.String(),
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(template),
		}}
	})
	if err := e.apply(t, o, 3, true); err != nil {
		t.Fatal(err)
	}
	_, _, err := e.scale.Update(registrytest.Context(t.Context()), "pool", rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		scale := old.DeepCopyObject().(*autoscalingv1.Scale)
		scale.Spec.Replicas = 5
		return o.scales.Update(old, scale, "scaler")
	}), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"creator": template, "applier": template, "scaler": `{"f:spec":{"f:replicas":{}}}`}
	got := map[string]string{}
	for _, entry := range e.get(t).ManagedFields {
		got[entry.Manager] = entry.FieldsV1.GetRawString()
		if entry.Manager == "scaler" && entry.APIVersion != v1beta1.SchemeGroupVersion.String() {
			t.Errorf("the scaler owns a field of %s, want one of the pool's version", entry.APIVersion)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
	if err := e.apply(t, o, 3, false); !apierrors.IsConflict(err) {
		t.Errorf("applying another number: error is %v, want Conflict", err)
	}
	if replicas := *e.get(t).Spec.Replicas; replicas != 5 {
		t.Errorf("the pool is to have %d members, want 5", replicas)
	}
	if err := e.apply(t, o, 3, true); err != nil {
		t.Errorf("applying it by force: %v", err)
	}
	if replicas := e.getScale(t).Spec.Replicas; replicas != 3 {
		t.Errorf("the pool is to have %d members, want 3", replicas)
	}
}

func unstructuredPool(replicas int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1beta1.SchemeGroupVersion.String(),
		"kind":       "SandboxWarmPool",
		"metadata":   map[string]any{"name": "pool", "namespace": registrytest.Namespace},
		"spec":       map[string]any{"replicas": replicas, "sandboxTemplateRef": map[string]any{"name": "template"}},
	}}
}
