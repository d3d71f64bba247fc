// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package binder

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
)

// Offer is a pool and the template that it names now. Either is nil if there is none. Not to be changed.
type Offer struct {
	Pool     *extensionsv1beta1.SandboxWarmPool
	Template *extensionsv1beta1.SandboxTemplate
}

// Offer returns what was last observed of a pool.
func (b *Binder) Offer(namespace, pool string) Offer {
	var offer Offer
	if obj, exists, err := b.pools.GetByKey(namespace + "/" + pool); err == nil && exists {
		offer.Pool = obj.(*extensionsv1beta1.SandboxWarmPool)
		if obj, exists, err := b.templates.GetByKey(namespace + "/" + offer.Pool.Spec.SandboxTemplateRef.Name); err == nil && exists {
			offer.Template = obj.(*extensionsv1beta1.SandboxTemplate)
		}
	}
	return offer
}

// CurrentOffer reads what is stored of a pool now.
func (b *Binder) CurrentOffer(ctx context.Context, namespace, pool string) (Offer, error) {
	var offer Offer
	found, err := b.read(ctx, poolResource, namespace, pool, &extensions.SandboxWarmPool{})
	if err != nil || found == nil {
		return offer, err
	}
	offer.Pool = found.(*extensionsv1beta1.SandboxWarmPool)
	found, err = b.read(ctx, templateResource, namespace, offer.Pool.Spec.SandboxTemplateRef.Name, &extensions.SandboxTemplate{})
	if err != nil || found == nil {
		return offer, err
	}
	offer.Template = found.(*extensionsv1beta1.SandboxTemplate)
	return offer, nil
}

// read returns the external version of an object as it is stored now, or nil if there is none. into is an empty object of the internal
// version.
func (b *Binder) read(ctx context.Context, of schema.GroupResource, namespace, name string, into runtime.Object) (runtime.Object, error) {
	resource := b.resources[of]
	if err := resource.storage.Get(ctx, resource.key(namespace, name), storage.GetOptions{}, into); err != nil {
		if storage.IsNotFound(err) {
			return nil, nil
		}
		return nil, err
	}
	return b.scheme.UnsafeConvertToVersion(into, resource.version)
}
