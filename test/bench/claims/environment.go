// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

const (
	// objectName is that of the template, of the pool and of what gives the user his rights.
	objectName = "bench"
	// pageSize is how many objects a list returns at once.
	pageSize = 500
	// pollInterval is how often a pool is looked at while it fills.
	pollInterval = 200 * time.Millisecond
	// cleanupTimeout bounds the removal of the namespace, which is done also after an interrupt.
	cleanupTimeout = time.Minute
)

// environment is a namespace with an empty pool, and a user in it.
type environment struct {
	admin     *framework.Clients
	user      *framework.Clients
	namespace string
}

// newEnvironment makes all of it. What there is of it after an error is removed.
func newEnvironment(ctx context.Context, admin *framework.Clients, image string) (_ *environment, err error) {
	namespace, err := admin.Kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-claims-"}}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	e := &environment{admin: admin, namespace: namespace.Name}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.remove(ctx))
		}
	}()
	if e.user, err = e.newUser(ctx); err != nil {
		return nil, fmt.Errorf("making a user: %w", err)
	}
	extensions := admin.Agents.ExtensionsV1beta1()
	template := framework.NewTemplate(objectName)
	template.Spec.PodTemplate.Spec = framework.PodSpec(image)
	if _, err := extensions.SandboxTemplates(e.namespace).Create(ctx, template, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	_, err = extensions.SandboxWarmPools(e.namespace).Create(ctx, framework.NewPool(objectName, objectName, 0), metav1.CreateOptions{})
	return e, err
}

func (e *environment) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	return e.admin.Kube.CoreV1().Namespaces().Delete(ctx, e.namespace, metav1.DeleteOptions{})
}

// rules are the rights of the user.
var rules = []rbacv1.PolicyRule{
	{APIGroups: []string{extensionsv1beta1.GroupName}, Resources: []string{"sandboxclaims"}, Verbs: []string{"create", "get", "list", "watch"}},
	{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"create"}},
}

// newUser makes a ServiceAccount with a Role, and returns its clients when it has its rights.
func (e *environment) newUser(ctx context.Context) (*framework.Clients, error) {
	meta := metav1.ObjectMeta{Name: objectName}
	accounts, roles := e.admin.Kube.CoreV1().ServiceAccounts(e.namespace), e.admin.Kube.RbacV1()
	if _, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	if _, err := roles.Roles(e.namespace).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: meta,
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: e.namespace, Name: objectName}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: objectName},
	}
	if _, err := roles.RoleBindings(e.namespace).Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	token, err := accounts.CreateToken(ctx, objectName, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	config := rest.AnonymousClientConfig(e.admin.Config)
	config.BearerToken = token.Status.Token
	user, err := framework.NewClients(config)
	if err != nil {
		return nil, err
	}
	return user, e.awaitRights(ctx, user)
}

// awaitRights waits until kube-apiserver has seen the Role, and the ServiceAccount that Pods without one get.
func (e *environment) awaitRights(ctx context.Context, user *framework.Clients) error {
	return wait.PollUntilContextTimeout(ctx, framework.PollInterval, framework.Patience, true, func(ctx context.Context) (bool, error) {
		review, err := user.Kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: e.namespace, Verb: "create", Group: extensionsv1beta1.GroupName, Resource: "sandboxclaims",
			}},
		}, metav1.CreateOptions{})
		if err != nil || !review.Status.Allowed {
			return false, err
		}
		_, err = e.admin.Kube.CoreV1().ServiceAccounts(e.namespace).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, nil
	})
}

// setPool changes the size of the pool.
func (e *environment) setPool(ctx context.Context, replicas int) error {
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	_, err := e.admin.Agents.ExtensionsV1beta1().SandboxWarmPools(e.namespace).Patch(ctx, objectName, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// awaitPool waits until the pool has as many ready members as it must.
func (e *environment) awaitPool(ctx context.Context, replicas int, timeout time.Duration) error {
	last := int32(0)
	err := wait.PollUntilContextTimeout(ctx, pollInterval, timeout, true, func(ctx context.Context) (bool, error) {
		pool, err := e.admin.Agents.ExtensionsV1beta1().SandboxWarmPools(e.namespace).Get(ctx, objectName, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		if last = pool.Status.ReadyReplicas; int(last) < replicas {
			return false, nil
		}
		// The status may be that of before the last claims.
		members, err := e.readyMembers(ctx, pool)
		return members >= replicas, err
	})
	if err != nil {
		return fmt.Errorf("%d of %d members of the pool are ready: %w", last, replicas, err)
	}
	return nil
}

// readyMembers counts the members of the pool that a claim could get.
func (e *environment) readyMembers(ctx context.Context, pool *extensionsv1beta1.SandboxWarmPool) (int, error) {
	sandboxes, err := e.sandboxes(ctx, pool.Status.Selector)
	members := 0
	for i := range sandboxes {
		sandbox := &sandboxes[i]
		isReady := meta.IsStatusConditionTrue(sandbox.Status.Conditions, agentsv1beta1.SandboxConditionReady)
		if isReady && sandbox.DeletionTimestamp == nil && ownerUID(sandbox, kindPool) == pool.UID {
			members++
		}
	}
	return members, err
}

// sandboxes lists the Sandboxes with certain labels.
func (e *environment) sandboxes(ctx context.Context, selector string) ([]agentsv1beta1.Sandbox, error) {
	var sandboxes []agentsv1beta1.Sandbox
	options := metav1.ListOptions{LabelSelector: selector, Limit: pageSize}
	for {
		page, err := e.admin.Agents.AgentsV1beta1().Sandboxes(e.namespace).List(ctx, options)
		if err != nil {
			return nil, err
		}
		sandboxes = append(sandboxes, page.Items...)
		if options.Continue = page.Continue; options.Continue == "" {
			return sandboxes, nil
		}
	}
}

// claims lists all claims.
func (e *environment) claims(ctx context.Context) ([]extensionsv1beta1.SandboxClaim, error) {
	var claims []extensionsv1beta1.SandboxClaim
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := e.admin.Agents.ExtensionsV1beta1().SandboxClaims(e.namespace).List(ctx, options)
		if err != nil {
			return nil, err
		}
		claims = append(claims, page.Items...)
		if options.Continue = page.Continue; options.Continue == "" {
			return claims, nil
		}
	}
}
