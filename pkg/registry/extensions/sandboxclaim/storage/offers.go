// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/claimedsandbox"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/storage/binder"
)

// offers checks new claims against the template that their pool names. The controller would find the same, and say so in a condition.
type offers struct {
	scheme *runtime.Scheme
	binder *binder.Binder
}

// validate returns what checks a claim against the template, and then as next does. It runs as late as admission that validates, because
// admission may change the claim, and before it, because a quota is not to be charged for what is refused.
func (o offers) validate(next rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		external, err := o.scheme.ConvertToVersion(obj, v1beta1.SchemeGroupVersion)
		if err != nil {
			return err
		}
		if err := o.check(ctx, external.(*v1beta1.SandboxClaim)); err != nil {
			return err
		}
		if next == nil {
			return nil
		}
		return next(ctx, obj)
	}
}

// check fails with Invalid if the pool of the claim and its template exist, and the template does not allow what the claim wants.
func (o offers) check(ctx context.Context, claim *v1beta1.SandboxClaim) error {
	if !asksOfTemplate(claim) {
		return nil
	}
	pool := claim.Spec.WarmPoolRef.Name
	// A claim that may be bound now is not to wait for etcd. A cold start is slow anyway.
	if offer := o.binder.Offer(claim.Namespace, pool); !claimedsandbox.NeedsColdStart(claim) && offer.Template != nil && claimedsandbox.Check(claim, offer.Template) == nil {
		return nil
	}
	offer, err := o.binder.CurrentOffer(ctx, claim.Namespace, pool)
	if err != nil || offer.Template == nil {
		return err
	}
	if rejection := claimedsandbox.Check(claim, offer.Template); rejection != nil {
		return apierrors.NewInvalid(extensions.Kind("SandboxClaim"), claim.Name, rejection.Errs)
	}
	return nil
}

// asksOfTemplate says whether a claim wants anything that a template could forbid.
func asksOfTemplate(claim *v1beta1.SandboxClaim) bool {
	metadata := &claim.Spec.AdditionalPodMetadata
	return claimedsandbox.NeedsColdStart(claim) || len(metadata.Labels) > 0 || len(metadata.Annotations) > 0
}
