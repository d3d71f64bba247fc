// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/namespace"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/patch"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
)

// reconcilePersistentVolumeClaims sees to it that there is a claim for each template. It stops at the first that cannot be had.
func (c *Controller) reconcilePersistentVolumeClaims(ctx context.Context, sandbox *agentsv1beta1.Sandbox) error {
	for i := range sandbox.Spec.VolumeClaimTemplates {
		if err := c.reconcilePersistentVolumeClaim(ctx, sandbox, &sandbox.Spec.VolumeClaimTemplates[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *Controller) reconcilePersistentVolumeClaim(ctx context.Context, sandbox *agentsv1beta1.Sandbox, template *agentsv1beta1.PersistentVolumeClaimTemplate) error {
	name := naming.PersistentVolumeClaim(template.Metadata.Name, sandbox.Name)
	cached, err := c.claims.PersistentVolumeClaims(sandbox.Namespace).Get(name)
	claim, found := c.claimWrites.Latest(cache.NewObjectName(sandbox.Namespace, name), cached, err == nil)
	if !found {
		client := c.config.KubeClient.CoreV1().PersistentVolumeClaims(sandbox.Namespace)
		var created bool
		claim, created, err = namespace.CreateOrGet(c.terminating, sandbox,
			func() (*corev1.PersistentVolumeClaim, error) {
				return client.Create(ctx, desiredPersistentVolumeClaim(sandbox, template), metav1.CreateOptions{FieldManager: Name})
			},
			func() (*corev1.PersistentVolumeClaim, error) { return client.Get(ctx, name, metav1.GetOptions{}) },
		)
		if err != nil {
			return fmt.Errorf("creating PVC %q: %w", name, err)
		}
		if created {
			c.claimWrites.Created(claim)
			return nil
		}
	}
	return c.takePersistentVolumeClaim(ctx, sandbox, claim)
}

// takePersistentVolumeClaim adopts an existing claim that nobody controls, and gives the label, by which the informer finds it,
// to one that lacks it. Nothing else of a claim is changed.
func (c *Controller) takePersistentVolumeClaim(ctx context.Context, sandbox *agentsv1beta1.Sandbox, claim *corev1.PersistentVolumeClaim) error {
	if err := checkUsable(sandbox, claim, "PVC"); err != nil {
		return err
	}
	desired := claim.DeepCopy()
	setOwner(sandbox, desired)
	if equality.Semantic.DeepEqual(claim, desired) {
		return nil
	}
	lock, err := c.lockFor(ctx, sandbox, claim)
	if err != nil {
		return err
	}
	data, err := patch.Merge(claim, desired, lock)
	if err != nil {
		return fmt.Errorf("computing the patch of PVC %q: %w", claim.Name, err)
	}
	updated, err := c.config.KubeClient.CoreV1().PersistentVolumeClaims(claim.Namespace).
		Patch(ctx, claim.Name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: Name})
	if err != nil {
		return fmt.Errorf("patching PVC %q: %w", claim.Name, err)
	}
	c.claimWrites.Updated(updated)
	return nil
}
