// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/validation"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/extensions/sandboxwarmpool"
)

// replicasPaths say which field of a pool the owner of Scale's spec.replicas owns, by served version.
var replicasPaths = managedfields.ResourcePathMappings{
	v1beta1.SchemeGroupVersion.String(): fieldpath.MakePathOrDie("spec", "replicas"),
}

// ScaleREST serves sandboxwarmpools/scale: the number of members in a form that kubectl scale and autoscalers know of any kind.
type ScaleREST struct {
	rest.TableConvertor
	pools *REST
}

var (
	_ rest.Patcher                  = &ScaleREST{}
	_ rest.GroupVersionKindProvider = &ScaleREST{}
)

// NewScaleREST returns the endpoint of the scale of pools.
func NewScaleREST(pools *REST) *ScaleREST {
	return &ScaleREST{sandboxwarmpool.NewScaleTableConvertor(clock.RealClock{}), pools}
}

// GroupVersionKind implements rest.GroupVersionKindProvider: a Scale is not of the group of pools.
func (*ScaleREST) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return autoscalingv1.SchemeGroupVersion.WithKind("Scale")
}

// New returns an empty Scale.
func (*ScaleREST) New() runtime.Object { return &autoscalingv1.Scale{} }

// Destroy does nothing: the store belongs to REST.
func (*ScaleREST) Destroy() {}

// Get returns the Scale of a pool.
func (r *ScaleREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	obj, err := r.pools.Get(ctx, name, options)
	if err != nil {
		return nil, err
	}
	return scaleOf(obj.(*extensions.SandboxWarmPool)), nil
}

// Update changes the number of members of an existing pool. It never creates one, whatever the caller allows. Admission judges the
// Scale, which is what was sent.
func (r *ScaleREST) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, _ rest.ValidateObjectFunc,
	updateValidation rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	obj, _, err := r.pools.Update(ctx, name, &scaledPool{objInfo}, rest.ValidateAllObjectFunc, onScales(updateValidation), false, options)
	if err != nil {
		return nil, false, err
	}
	return scaleOf(obj.(*extensions.SandboxWarmPool)), false, nil
}

// onScales has the Scales of pools judged instead of the pools.
func onScales(validate rest.ValidateObjectUpdateFunc) rest.ValidateObjectUpdateFunc {
	return func(ctx context.Context, obj, old runtime.Object) error {
		return validate(ctx, scaleOf(obj.(*extensions.SandboxWarmPool)), scaleOf(old.(*extensions.SandboxWarmPool)))
	}
}

// scaleOf returns the Scale of a pool, without the owners of its fields.
func scaleOf(pool *extensions.SandboxWarmPool) *autoscalingv1.Scale {
	return &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{
			Name:              pool.Name,
			Namespace:         pool.Namespace,
			UID:               pool.UID,
			ResourceVersion:   pool.ResourceVersion,
			CreationTimestamp: pool.CreationTimestamp,
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: sandboxwarmpool.Replicas(pool)},
		Status: autoscalingv1.ScaleStatus{Replicas: pool.Status.Replicas, Selector: pool.Status.Selector},
	}
}

// scaledPool turns a change of a Scale into one of its pool.
type scaledPool struct {
	scale rest.UpdatedObjectInfo
}

// Preconditions implements rest.UpdatedObjectInfo.
func (p *scaledPool) Preconditions() *metav1.Preconditions { return p.scale.Preconditions() }

// UpdatedObject returns the pool with the number of members that the Scale says. The ownership of the number moves with it: it would
// otherwise be changed back by the next server-side apply of the pool, without a conflict.
func (p *scaledPool) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	pool := old.DeepCopyObject().(*extensions.SandboxWarmPool)
	if pool.ResourceVersion == "" {
		return nil, apierrors.NewNotFound(extensions.Resource("sandboxwarmpools/scale"), pool.Name)
	}
	fields := managedfields.NewScaleHandler(pool.ManagedFields, v1beta1.SchemeGroupVersion, replicasPaths)
	oldScale := scaleOf(pool)
	var err error
	if oldScale.ManagedFields, err = fields.ToSubresource(); err != nil {
		return nil, err
	}
	obj, err := p.scale.UpdatedObject(ctx, oldScale)
	if err != nil {
		return nil, err
	}
	scale, ok := obj.(*autoscalingv1.Scale)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a Scale: %T", obj))
	}
	if errs := validation.ValidateScale(scale); len(errs) > 0 {
		return nil, apierrors.NewInvalid(autoscalingv1.SchemeGroupVersion.WithKind("Scale").GroupKind(), pool.Name, errs)
	}
	if scale.UID != "" && scale.UID != pool.UID {
		return nil, apierrors.NewConflict(extensions.Resource("sandboxwarmpools/scale"), pool.Name,
			fmt.Errorf("the UID in metadata.uid (%s) does not match that of the pool (%s)", scale.UID, pool.UID))
	}
	pool.Spec.Replicas, pool.ResourceVersion = &scale.Spec.Replicas, scale.ResourceVersion
	if pool.ManagedFields, err = fields.ToParent(scale.ManagedFields); err != nil {
		return nil, err
	}
	return pool, nil
}
