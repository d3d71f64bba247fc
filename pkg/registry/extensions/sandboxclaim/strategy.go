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
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/utils/clock"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/validation"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/claimedsandbox"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/labeldomains"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/strategy"
)

type kind = strategy.Kind[extensions.SandboxClaim, extensions.SandboxClaimSpec, extensions.SandboxClaimStatus]

// newKind says what is particular to SandboxClaims. Their status asks for no labelDomains.
func newKind(labelDomains func() labeldomains.List, clock clock.PassiveClock) kind {
	return kind{
		Version: v1beta1.SchemeGroupVersion,
		Parts: func(c *extensions.SandboxClaim) (*extensions.SandboxClaimSpec, *extensions.SandboxClaimStatus) {
			return &c.Spec, &c.Status
		},
		Validate: func(claim *extensions.SandboxClaim) field.ErrorList {
			return append(validation.ValidateSandboxClaim(claim), validatePodMetadata(claim, labelDomains())...)
		},
		ValidateUpdate: func(claim, old *extensions.SandboxClaim) field.ErrorList {
			errs := validation.ValidateSandboxClaimUpdate(claim, old)
			if !apiequality.Semantic.DeepEqual(claim.Spec.AdditionalPodMetadata, old.Spec.AdditionalPodMetadata) {
				errs = append(errs, validatePodMetadata(claim, labelDomains())...)
			}
			return errs
		},
		ValidateStatusUpdate: validation.ValidateSandboxClaimStatusUpdate,
		Warnings:             func(claim, old *extensions.SandboxClaim) []string { return warnings(claim, old, clock.Now()) },
	}
}

func validatePodMetadata(claim *extensions.SandboxClaim, labelDomains labeldomains.List) field.ErrorList {
	metadata := external(&claim.Spec.AdditionalPodMetadata)
	return claimedsandbox.CheckMetadata(&metadata, labelDomains, field.NewPath("spec", "additionalPodMetadata"))
}

func external(metadata *agents.PodMetadata) agentsv1beta1.PodMetadata {
	return agentsv1beta1.PodMetadata{Labels: metadata.Labels, Annotations: metadata.Annotations}
}

type mainStrategy struct{ strategy.Main }

// NewStrategy returns the strategy of the sandboxclaims endpoint: it owns everything but the status. labelDomains returns the domains that
// labels for the Pod may have.
func NewStrategy(typer runtime.ObjectTyper, labelDomains func() labeldomains.List) strategy.Main {
	return newStrategy(typer, labelDomains, clock.RealClock{})
}

func newStrategy(typer runtime.ObjectTyper, labelDomains func() labeldomains.List, clock clock.PassiveClock) strategy.Main {
	return mainStrategy{strategy.NewMain(typer, newKind(labelDomains, clock))}
}

// systemAnnotations are set by the system alone. A claim that came with them would be taken for one that was seen, or bound, before, and
// never get the event by which clients that watch it learn that it is ready.
func systemAnnotations() []string {
	return []string{v1beta1.SandboxNameAnnotation, v1beta1.ControllerFirstObservedAtAnnotation, v1beta1.ClaimFirstReadyAtAnnotation}
}

func (s mainStrategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	s.Main.PrepareForCreate(ctx, obj)
	for _, key := range systemAnnotations() {
		delete(obj.(*extensions.SandboxClaim).Annotations, key)
	}
}

func (s mainStrategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	s.Main.PrepareForUpdate(ctx, obj, old)
	keepSandboxName(obj.(*extensions.SandboxClaim), old.(*extensions.SandboxClaim))
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

type statusStrategy struct{ strategy.Status }

// NewStatusStrategy returns the strategy of the status subresource: it owns the status, and nothing else but the record of the Sandbox.
func NewStatusStrategy(typer runtime.ObjectTyper) strategy.Status {
	return statusStrategy{strategy.NewStatus(typer, newKind(nil, clock.RealClock{}))}
}

func (s statusStrategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	s.Status.PrepareForUpdate(ctx, obj, old)
	claim := obj.(*extensions.SandboxClaim)
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
