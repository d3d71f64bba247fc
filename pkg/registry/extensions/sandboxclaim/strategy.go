// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package sandboxclaim decides what may be stored as a SandboxClaim and how it is shown: strategies, selectors and table columns. It does
// no I/O; the storage package beneath it does.
package sandboxclaim

import (
	"context"
	"fmt"
	"maps"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/utils/clock"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/validation"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/claimedsandbox"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/labeldomains"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/strategy"
)

type mainStrategy struct {
	strategy.Base
	labelDomains func() labeldomains.List
	clock        clock.PassiveClock
}

// NewStrategy returns the strategy of the sandboxclaims endpoint: it owns everything but the status. labelDomains returns the domains that
// labels for the Pod may have.
func NewStrategy(typer runtime.ObjectTyper, labelDomains func() labeldomains.List) strategy.Main {
	return newStrategy(typer, labelDomains)
}

func newStrategy(typer runtime.ObjectTyper, labelDomains func() labeldomains.List) mainStrategy {
	return mainStrategy{strategy.NewBase(typer), labelDomains, clock.RealClock{}}
}

// GetResetFields names the fields that this endpoint ignores, so that server-side apply does not give them an owner.
func (mainStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return strategy.ResetFields(v1beta1.SchemeGroupVersion, "status")
}

// systemAnnotations are set by the system alone. A claim that came with them would be taken for one that was seen, or bound, before, and
// never get the event by which clients that watch it learn that it is ready.
func systemAnnotations() []string {
	return []string{v1beta1.SandboxNameAnnotation, v1beta1.ControllerFirstObservedAtAnnotation, v1beta1.ClaimFirstReadyAtAnnotation}
}

func (mainStrategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	claim := obj.(*extensions.SandboxClaim)
	claim.Generation = 1
	claim.Status = extensions.SandboxClaimStatus{}
	for _, key := range systemAnnotations() {
		delete(claim.Annotations, key)
	}
}

func (mainStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	claim, oldClaim := obj.(*extensions.SandboxClaim), old.(*extensions.SandboxClaim)
	claim.Status = oldClaim.Status
	keepSandboxName(claim, oldClaim)
	if !apiequality.Semantic.DeepEqual(claim.Spec, oldClaim.Spec) {
		claim.Generation = oldClaim.Generation + 1
	}
}

// keepSandboxName leaves the record of the Sandbox that the claim was given to the system. It outlives the Sandbox, and keeps the claim
// from getting another one until the claim expires.
func keepSandboxName(claim, old *extensions.SandboxClaim) {
	name, given := old.Annotations[v1beta1.SandboxNameAnnotation]
	switch {
	case !given:
		delete(claim.Annotations, v1beta1.SandboxNameAnnotation)
	case claim.Annotations == nil:
		claim.Annotations = map[string]string{v1beta1.SandboxNameAnnotation: name}
	default:
		claim.Annotations[v1beta1.SandboxNameAnnotation] = name
	}
}

func (s mainStrategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	claim := obj.(*extensions.SandboxClaim)
	return append(validation.ValidateSandboxClaim(claim), s.validatePodMetadata(claim)...)
}

func (s mainStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	claim, oldClaim := obj.(*extensions.SandboxClaim), old.(*extensions.SandboxClaim)
	errs := validation.ValidateSandboxClaimUpdate(claim, oldClaim)
	if !apiequality.Semantic.DeepEqual(claim.Spec.AdditionalPodMetadata, oldClaim.Spec.AdditionalPodMetadata) {
		errs = append(errs, s.validatePodMetadata(claim)...)
	}
	return errs
}

func (s mainStrategy) validatePodMetadata(claim *extensions.SandboxClaim) field.ErrorList {
	metadata := external(&claim.Spec.AdditionalPodMetadata)
	return claimedsandbox.CheckMetadata(&metadata, s.labelDomains(), field.NewPath("spec", "additionalPodMetadata"))
}

func external(metadata *agents.PodMetadata) agentsv1beta1.PodMetadata {
	return agentsv1beta1.PodMetadata{Labels: metadata.Labels, Annotations: metadata.Annotations}
}

func (s mainStrategy) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	return warnings(obj.(*extensions.SandboxClaim), &extensions.SandboxClaim{}, s.clock.Now())
}

func (s mainStrategy) WarningsOnUpdate(_ context.Context, obj, old runtime.Object) []string {
	return warnings(obj.(*extensions.SandboxClaim), old.(*extensions.SandboxClaim), s.clock.Now())
}

type statusStrategy struct {
	mainStrategy
}

// NewStatusStrategy returns the strategy of the status subresource: it owns the status and nothing else.
func NewStatusStrategy(typer runtime.ObjectTyper) strategy.Status {
	return statusStrategy{newStrategy(typer, nil)}
}

func (statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return strategy.ResetFields(v1beta1.SchemeGroupVersion, "spec", "metadata")
}

func (statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	claim, oldClaim := obj.(*extensions.SandboxClaim), old.(*extensions.SandboxClaim)
	claim.Spec = oldClaim.Spec
	metav1.ResetObjectMetaForStatus(&claim.ObjectMeta, &oldClaim.ObjectMeta)
	if _, given := claim.Annotations[v1beta1.SandboxNameAnnotation]; given && expiredWithoutSandbox(&claim.Status) {
		claim.Annotations = maps.Clone(claim.Annotations)
		delete(claim.Annotations, v1beta1.SandboxNameAnnotation)
	}
}

// expiredWithoutSandbox says whether the Sandbox of a claim was taken from it because the claim had expired. If the claim is given more
// time it may have another one, as nobody works in it by then.
func expiredWithoutSandbox(status *extensions.SandboxClaimStatus) bool {
	ready := meta.FindStatusCondition(status.Conditions, v1beta1.ClaimConditionReady)
	return status.Sandbox.Name == "" && ready != nil && ready.Reason == v1beta1.ClaimReasonExpired
}

func (statusStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateSandboxClaimStatusUpdate(obj.(*extensions.SandboxClaim), old.(*extensions.SandboxClaim))
}

func (statusStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// GetAttrs returns what label and field selectors on SandboxClaims look at. It fails for any other type.
func GetAttrs(obj runtime.Object) (labels.Set, fields.Set, error) {
	claim, ok := obj.(*extensions.SandboxClaim)
	if !ok {
		return nil, nil, fmt.Errorf("not a SandboxClaim: %T", obj)
	}
	return claim.Labels, generic.AddObjectMetaFieldsSet(fields.Set{
		"spec.warmPoolRef.name": claim.Spec.WarmPoolRef.Name,
		"status.sandbox.name":   claim.Status.Sandbox.Name,
	}, &claim.ObjectMeta, true), nil
}

// MatchSandboxClaim returns the predicate that selects SandboxClaims by label and field.
func MatchSandboxClaim(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
	return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: GetAttrs}
}
