// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/precondition"
)

// defaultFieldManager owns spec.operatingMode after a suspend or resume whose caller named no field manager.
const defaultFieldManager = "sandbox-apiserver"

// operatingModeREST serves an action that sets spec.operatingMode: a POST of a small body on the Sandbox, answered with the
// Sandbox. It sets a level and is therefore safe to repeat: a second call changes nothing, not even the resourceVersion.
//
// Custom actions as POST on a subresource follow pods/eviction; see the API conventions on "verbs on resources".
type operatingModeREST struct {
	sandboxes rest.Updater
	mode      agents.SandboxOperatingMode
	// fields keeps managedFields for changes that do not come through the generic handlers. Without an owner a later server-side
	// apply of a manifest that says otherwise would undo the change without a conflict.
	fields *managedfields.FieldManager
}

// SuspendREST serves sandboxes/suspend.
type SuspendREST struct{ operatingModeREST }

// ResumeREST serves sandboxes/resume.
type ResumeREST struct{ operatingModeREST }

var (
	_ rest.NamedCreater = &SuspendREST{}
	_ rest.NamedCreater = &ResumeREST{}
)

// NewOperatingModeREST returns the endpoints of sandboxes/suspend and sandboxes/resume. types converts Sandboxes to the typed form in
// which field ownership is tracked. It fails if types does not know Sandbox.
func NewOperatingModeREST(scheme *runtime.Scheme, types managedfields.TypeConverter, sandboxes rest.Updater) (*SuspendREST, *ResumeREST, error) {
	action := func(mode agents.SandboxOperatingMode, subresource string) (operatingModeREST, error) {
		fields, err := managedfields.NewDefaultFieldManager(types, scheme, scheme, scheme,
			v1beta1.SchemeGroupVersion.WithKind("Sandbox"), agents.SchemeGroupVersion, subresource, nil)
		if err != nil {
			return operatingModeREST{}, fmt.Errorf("tracking field ownership for sandboxes/%s: %w", subresource, err)
		}
		return operatingModeREST{sandboxes: sandboxes, mode: mode, fields: fields}, nil
	}
	suspend, err := action(agents.SandboxOperatingModeSuspended, "suspend")
	if err != nil {
		return nil, nil, err
	}
	resume, err := action(agents.SandboxOperatingModeRunning, "resume")
	if err != nil {
		return nil, nil, err
	}
	return &SuspendREST{suspend}, &ResumeREST{resume}, nil
}

// New returns an empty body of sandboxes/suspend.
func (*SuspendREST) New() runtime.Object { return &agents.SandboxSuspend{} }

// Create suspends the Sandbox of the given name and returns it. It fails with BadRequest if the body names another Sandbox, and with
// Conflict if a precondition does not hold or the Sandbox is being deleted.
func (r *SuspendREST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	body, ok := obj.(*agents.SandboxSuspend)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a SandboxSuspend: %T", obj))
	}
	return r.set(ctx, name, body, &body.ObjectMeta, body.Preconditions, validate, options)
}

// New returns an empty body of sandboxes/resume.
func (*ResumeREST) New() runtime.Object { return &agents.SandboxResume{} }

// Create resumes the Sandbox of the given name and returns it. It fails as SuspendREST.Create does.
func (r *ResumeREST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	body, ok := obj.(*agents.SandboxResume)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a SandboxResume: %T", obj))
	}
	return r.set(ctx, name, body, &body.ObjectMeta, body.Preconditions, validate, options)
}

// Destroy does nothing: the store belongs to REST.
func (*operatingModeREST) Destroy() {}

func (r *operatingModeREST) set(ctx context.Context, name string, body runtime.Object, bodyMeta *metav1.ObjectMeta,
	preconditions *agents.Preconditions, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	if err := precondition.CheckName(bodyMeta, name); err != nil {
		return nil, err
	}
	if validate != nil {
		if err := validate(ctx, body.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	manager := options.FieldManager
	if manager == "" {
		manager = defaultFieldManager
	}
	transform := func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		return r.transform(old.(*agents.Sandbox), preconditions, manager)
	}
	updated, _, err := r.sandboxes.Update(ctx, name, rest.DefaultUpdatedObjectInfo(nil, transform),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{DryRun: options.DryRun})
	return updated, err
}

// transform returns the Sandbox in the wanted mode, or unchanged if it is in it already: the store then writes nothing.
func (r *operatingModeREST) transform(old *agents.Sandbox, preconditions *agents.Preconditions, manager string) (runtime.Object, error) {
	if err := precondition.Check(agents.Resource("sandboxes"), old, preconditions); err != nil {
		return nil, err
	}
	sandbox := old.DeepCopy()
	if sandbox.Spec.OperatingMode == r.mode {
		return sandbox, nil
	}
	if sandbox.DeletionTimestamp != nil {
		return nil, apierrors.NewConflict(agents.Resource("sandboxes"), old.Name, fmt.Errorf("the Sandbox is being deleted"))
	}
	sandbox.Spec.OperatingMode = r.mode
	return r.fields.UpdateNoErrors(old, sandbox, manager), nil
}
