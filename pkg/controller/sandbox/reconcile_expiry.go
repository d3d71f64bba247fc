// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/failure"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/patch"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
)

// expire announces in the status that the Sandbox has expired, and then deletes it, or its Pod and Service. The announcement is
// conditional on the version that was found expired: whoever was told before that the shutdown time is moved has won.
func (c *Controller) expire(ctx context.Context, sandbox *agentsv1beta1.Sandbox) error {
	idle, err := c.expiryDone(sandbox)
	if err != nil || idle {
		return err
	}
	live, err := c.liveSandbox(ctx, sandbox)
	if err != nil {
		return err
	}
	if !expired(live, c.config.Clock.Now()) {
		return failure.ErrStale
	}
	if !markedExpired(&live.Status) {
		if live, err = c.writeStatus(ctx, live, expiredStatus(live, c.config.Clock.Now()), patch.SameVersion); err != nil {
			return err
		}
	}
	if deletedOnExpiry(live) {
		return c.deleteSandbox(ctx, live)
	}
	if err := errors.Join(c.deleteExpiredPods(ctx, live), c.deleteExpiredService(ctx, live)); err != nil {
		return err
	}
	_, err = c.updateStatus(ctx, live, expiredAndClearedStatus(live, c.config.Clock.Now()))
	return err
}

// expiryDone says whether all that follows from the expiry is done, as far as the caches know.
func (c *Controller) expiryDone(sandbox *agentsv1beta1.Sandbox) (bool, error) {
	cleared := expiredAndClearedStatus(sandbox, c.config.Clock.Now())
	if deletedOnExpiry(sandbox) || !equality.Semantic.DeepEqual(&sandbox.Status, cleared) {
		return false, nil
	}
	pods, err := c.ownedPods(sandbox)
	if err != nil {
		return false, err
	}
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil {
			return false, nil
		}
	}
	service, err := c.services.Services(sandbox.Namespace).Get(naming.Service(sandbox.Name))
	return err != nil || service.DeletionTimestamp != nil || relationTo(sandbox, service) != owned, nil
}

// deleteSandbox deletes the Sandbox in exactly the version that was found expired. What it owns is left to the garbage collector.
func (c *Controller) deleteSandbox(ctx context.Context, live *agentsv1beta1.Sandbox) error {
	err := c.config.SandboxClient.AgentsV1beta1().Sandboxes(live.Namespace).Delete(ctx, live.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &live.UID, ResourceVersion: &live.ResourceVersion},
	})
	if err != nil && !failure.ObjectNotFound(err) {
		return fmt.Errorf("deleting the expired Sandbox: %w", err)
	}
	klog.FromContext(ctx).V(2).Info("Deleted expired Sandbox", "uid", live.UID)
	return nil
}

// deleteExpiredPods deletes all Pods of the Sandbox, and looks for one that the cache does not show.
func (c *Controller) deleteExpiredPods(ctx context.Context, sandbox *agentsv1beta1.Sandbox) error {
	pods, err := c.ownedPods(sandbox)
	if err != nil {
		return err
	}
	if len(pods) == 0 {
		live, err := c.config.KubeClient.CoreV1().Pods(sandbox.Namespace).Get(ctx, naming.Pod(sandbox.Name), metav1.GetOptions{})
		if failure.ObjectNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("getting pod %q: %w", naming.Pod(sandbox.Name), err)
		}
		pods = []*corev1.Pod{live}
	}
	var errs []error
	for _, pod := range pods {
		if relationTo(sandbox, pod) == owned && pod.DeletionTimestamp == nil {
			_, err := c.deletePod(ctx, pod)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (c *Controller) deleteExpiredService(ctx context.Context, sandbox *agentsv1beta1.Sandbox) error {
	service, err := c.findService(ctx, sandbox, sandbox.Status.Service != "")
	if err != nil || service == nil || relationTo(sandbox, service) != owned {
		return err
	}
	return c.deleteService(ctx, service)
}
