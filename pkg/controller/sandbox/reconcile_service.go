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
	"k8s.io/utils/ptr"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/failure"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/namespace"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/patch"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
)

// reconcileService sees to it that the Sandbox has the Service it asks for, and returns it if there is one.
func (c *Controller) reconcileService(ctx context.Context, sandbox *agentsv1beta1.Sandbox) (*corev1.Service, error) {
	wanted := ptr.Deref(sandbox.Spec.Service, false)
	current, err := c.findService(ctx, sandbox, !wanted && sandbox.Status.Service != "")
	if err != nil {
		return nil, err
	}
	action, err := planService(sandbox, current)
	if action == serviceCreate {
		var created bool
		current, created, err = c.createService(ctx, sandbox)
		if created || err != nil {
			return current, err
		}
		action, err = planService(sandbox, current)
	}
	switch {
	case err != nil:
		return nil, err
	case action == serviceUpdate:
		return c.updateService(ctx, sandbox, current)
	case action == serviceDelete:
		return nil, c.deleteService(ctx, current)
	default:
		return nil, nil
	}
}

// findService returns the Service that has the Sandbox's name. The cache does not have one that lost its label; with live, it is
// looked for on the server too.
func (c *Controller) findService(ctx context.Context, sandbox *agentsv1beta1.Sandbox, live bool) (*corev1.Service, error) {
	name := naming.Service(sandbox.Name)
	cached, err := c.services.Services(sandbox.Namespace).Get(name)
	if service, found := c.serviceWrites.Latest(cache.NewObjectName(sandbox.Namespace, name), cached, err == nil); found {
		return service, nil
	}
	if !live {
		return nil, nil
	}
	service, err := c.config.KubeClient.CoreV1().Services(sandbox.Namespace).Get(ctx, name, metav1.GetOptions{})
	if failure.ObjectNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("getting service %q: %w", name, err)
	}
	return service, nil
}

// createService creates the Service, or returns the one that has its name.
func (c *Controller) createService(ctx context.Context, sandbox *agentsv1beta1.Sandbox) (*corev1.Service, bool, error) {
	client := c.config.KubeClient.CoreV1().Services(sandbox.Namespace)
	desired := desiredService(sandbox)
	service, created, err := namespace.CreateOrGet(c.terminating, sandbox,
		func() (*corev1.Service, error) {
			return client.Create(ctx, desired, metav1.CreateOptions{FieldManager: Name})
		},
		func() (*corev1.Service, error) { return client.Get(ctx, desired.Name, metav1.GetOptions{}) },
	)
	if err != nil {
		return nil, false, fmt.Errorf("creating service %q: %w", desired.Name, err)
	}
	if created {
		c.serviceWrites.Created(service)
	}
	return service, created, nil
}

// updateService repairs or adopts the Service.
func (c *Controller) updateService(ctx context.Context, sandbox *agentsv1beta1.Sandbox, current *corev1.Service) (*corev1.Service, error) {
	desired := repairedService(sandbox, current)
	if equality.Semantic.DeepEqual(current, desired) {
		return current, nil
	}
	lock, err := c.lockFor(ctx, sandbox, current)
	if err != nil {
		return nil, err
	}
	data, err := patch.Merge(current, desired, lock)
	if err != nil {
		return nil, fmt.Errorf("computing the patch of service %q: %w", current.Name, err)
	}
	updated, err := c.config.KubeClient.CoreV1().Services(current.Namespace).
		Patch(ctx, current.Name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: Name})
	if err != nil {
		return nil, fmt.Errorf("patching service %q: %w", current.Name, err)
	}
	updated.ManagedFields = nil
	c.serviceWrites.Updated(updated)
	return updated, nil
}

// deleteService deletes exactly this Service.
func (c *Controller) deleteService(ctx context.Context, service *corev1.Service) error {
	if service.DeletionTimestamp != nil {
		return nil
	}
	err := c.config.KubeClient.CoreV1().Services(service.Namespace).
		Delete(ctx, service.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(service.UID))})
	if err != nil && !failure.ObjectNotFound(err) {
		return fmt.Errorf("deleting service %q: %w", service.Name, err)
	}
	return nil
}
