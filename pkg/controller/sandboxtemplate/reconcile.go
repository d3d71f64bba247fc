// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxtemplate

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/failure"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/message"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/namespace"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/patch"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
)

// Of the event that tells why a template has not the NetworkPolicy it should have.
const (
	eventReasonPolicyFailed = "NetworkPolicyFailed"
	actionReconciling       = "Reconciling"
)

// reconcile makes one pass over a template.
func (c *Controller) reconcile(ctx context.Context, name cache.ObjectName) (time.Duration, error) {
	cached, err := c.templates.SandboxTemplates(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("getting the SandboxTemplate from the cache: %w", err)
	}
	template, _ := c.templateWrites.Latest(name, cached, true)
	if template.DeletionTimestamp != nil {
		return 0, nil
	}
	labelErr := c.reconcileLabel(ctx, template)
	policyErr := c.reconcilePolicy(ctx, template)
	if namespace.IsTerminating(policyErr) {
		return namespace.TerminatingDelay, labelErr
	}
	if policyErr != nil && !failure.Outdated(policyErr) {
		c.config.Recorder.Eventf(template, nil, corev1.EventTypeWarning, eventReasonPolicyFailed, actionReconciling, "%s",
			message.Cut(policyErr.Error(), message.MaxEventNote))
	}
	if failure.Terminal(policyErr) && !failure.Outdated(policyErr) {
		policyErr = nil
	}
	return 0, errors.Join(labelErr, policyErr)
}

// reconcileLabel sees to it that the template has the label with the hash of its name.
func (c *Controller) reconcileLabel(ctx context.Context, template *extensionsv1beta1.SandboxTemplate) error {
	hash := naming.Hash(template.Name)
	if template.Labels[agentsv1beta1.SandboxTemplateRefHashLabel] == hash {
		return nil
	}
	labelled := template.DeepCopy()
	metav1.SetMetaDataLabel(&labelled.ObjectMeta, agentsv1beta1.SandboxTemplateRefHashLabel, hash)
	data, err := patch.Merge(template, labelled, patch.AnyVersion)
	if err != nil {
		return fmt.Errorf("computing the patch of the SandboxTemplate: %w", err)
	}
	updated, err := c.config.SandboxClient.ExtensionsV1beta1().SandboxTemplates(template.Namespace).
		Patch(ctx, template.Name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: Name})
	if failure.ObjectNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("patching the label of the SandboxTemplate: %w", err)
	}
	updated.ManagedFields = nil
	c.templateWrites.Updated(updated)
	return nil
}

// reconcilePolicy sees to it that a managed template has its NetworkPolicy and an unmanaged one has none.
func (c *Controller) reconcilePolicy(ctx context.Context, template *extensionsv1beta1.SandboxTemplate) error {
	desired := desiredPolicy(template)
	cached, err := c.policies.NetworkPolicies(template.Namespace).Get(desired.Name)
	policy, found := c.policyWrites.Latest(cache.MetaObjectToName(desired), cached, err == nil)
	switch {
	case !managed(template):
		if !found || relationTo(template, policy) != owned || policy.DeletionTimestamp != nil {
			return nil
		}
		return c.deletePolicy(ctx, template, policy)
	case found:
		return c.syncPolicy(ctx, template, policy, desired)
	default:
		return c.createPolicy(ctx, template, desired)
	}
}

func (c *Controller) createPolicy(ctx context.Context, template *extensionsv1beta1.SandboxTemplate, desired *networkingv1.NetworkPolicy) error {
	client := c.config.KubeClient.NetworkingV1().NetworkPolicies(template.Namespace)
	policy, created, err := namespace.CreateOrGet(c.terminating, template,
		func() (*networkingv1.NetworkPolicy, error) {
			return client.Create(ctx, desired, metav1.CreateOptions{FieldManager: Name})
		},
		func() (*networkingv1.NetworkPolicy, error) { return client.Get(ctx, desired.Name, metav1.GetOptions{}) },
	)
	if err != nil {
		return fmt.Errorf("creating NetworkPolicy %q: %w", desired.Name, err)
	}
	if !created {
		return c.syncPolicy(ctx, template, policy, desired)
	}
	policy.ManagedFields = nil
	c.policyWrites.Created(policy)
	klog.FromContext(ctx).V(2).Info("Created NetworkPolicy", "networkPolicy", klog.KObj(policy))
	return nil
}

// syncPolicy brings the rules of the template's own policy up to date. Nothing else of it is changed, and no other policy at all.
func (c *Controller) syncPolicy(ctx context.Context, template *extensionsv1beta1.SandboxTemplate, policy, desired *networkingv1.NetworkPolicy) error {
	switch relation := relationTo(template, policy); {
	case relation == predecessors, relation == owned && policy.DeletionTimestamp != nil:
		// There will be another pass when it is gone.
		return nil
	case relation == foreign:
		return fmt.Errorf("refusing to update NetworkPolicy %q as it is not controlled by SandboxTemplate %q", policy.Name, template.Name)
	case equality.Semantic.DeepEqual(policy.Spec, desired.Spec):
		return nil
	}
	changed := policy.DeepCopy()
	changed.Spec = desired.Spec
	data, err := patch.Merge(policy, changed, patch.AnyVersion)
	if err != nil {
		return fmt.Errorf("computing the patch of NetworkPolicy %q: %w", policy.Name, err)
	}
	updated, err := c.config.KubeClient.NetworkingV1().NetworkPolicies(policy.Namespace).
		Patch(ctx, policy.Name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: Name})
	if err != nil {
		return fmt.Errorf("patching NetworkPolicy %q: %w", policy.Name, err)
	}
	updated.ManagedFields = nil
	c.policyWrites.Updated(updated)
	return nil
}

// deletePolicy deletes exactly this policy, once its template is confirmed to be Unmanaged.
func (c *Controller) deletePolicy(ctx context.Context, template *extensionsv1beta1.SandboxTemplate, policy *networkingv1.NetworkPolicy) error {
	live, err := c.config.SandboxClient.ExtensionsV1beta1().SandboxTemplates(template.Namespace).Get(ctx, template.Name, metav1.GetOptions{})
	switch {
	case failure.ObjectNotFound(err), err == nil && (live.UID != template.UID || managed(live)):
		return failure.ErrStale
	case err != nil:
		return fmt.Errorf("getting the SandboxTemplate: %w", err)
	}
	err = c.config.KubeClient.NetworkingV1().NetworkPolicies(policy.Namespace).
		Delete(ctx, policy.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(policy.UID))})
	if err != nil && !failure.ObjectNotFound(err) {
		return fmt.Errorf("deleting NetworkPolicy %q: %w", policy.Name, err)
	}
	klog.FromContext(ctx).V(2).Info("Deleted NetworkPolicy", "networkPolicy", klog.KObj(policy))
	return nil
}
