// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

// user is a ServiceAccount with the rights of a test and no others.
type user struct {
	name   string
	config *rest.Config
}

// rule returns a rule for resources of the group of Sandbox. Verbs and resources are separated by commas.
func rule(verbs, resources string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		Verbs: strings.Split(verbs, ","), APIGroups: []string{v1beta1.GroupName}, Resources: strings.Split(resources, ","), ResourceNames: names,
	}
}

// coreRule is rule for the core group.
func coreRule(verbs, resources string) rbacv1.PolicyRule {
	r := rule(verbs, resources)
	r.APIGroups = []string{corev1.GroupName}
	return r
}

// newUser makes a user with rules for one namespace.
func newUser(t *testing.T, namespace string, rules ...rbacv1.PolicyRule) user {
	t.Helper()
	ctx := t.Context()
	accounts := env.kube.CoreV1().ServiceAccounts(namespace)
	account, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{GenerateName: "user-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating a user: %v", err)
	}
	meta := metav1.ObjectMeta{Name: account.Name}
	if _, err := env.kube.RbacV1().Roles(namespace).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{}); err != nil {
		t.Fatalf("creating the role of a user: %v", err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account.Name}},
	}
	if _, err := env.kube.RbacV1().RoleBindings(namespace).Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatalf("binding the role of a user: %v", err)
	}
	name := "system:serviceaccount:" + namespace + ":" + account.Name
	awaitRights(t, namespace, name, rules)
	token, err := accounts.CreateToken(ctx, account.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("requesting a token: %v", err)
	}
	config := rest.AnonymousClientConfig(env.config)
	config.BearerToken = token.Status.Token
	return user{name, config}
}

// awaitRights waits until the authorizer of kube-apiserver knows of new rules. Were a user to come before, sandbox-apiserver would
// remember for some seconds that he was denied.
func awaitRights(t *testing.T, namespace, user string, rules []rbacv1.PolicyRule) {
	t.Helper()
	for _, rule := range rules {
		resource, subresource, _ := strings.Cut(rule.Resources[0], "/")
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: namespace, Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: resource, Subresource: subresource,
			},
		}}
		if len(rule.ResourceNames) != 0 {
			review.Spec.ResourceAttributes.Name = rule.ResourceNames[0]
		}
		eventually(t, "rights of a user", func(ctx context.Context) error {
			answer, err := env.kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			if err == nil && !answer.Status.Allowed {
				err = errors.New(answer.Status.Reason)
			}
			return err
		})
	}
}

// agents returns a client that acts as the user.
func (u user) agents(t *testing.T) versioned.Interface {
	t.Helper()
	client, err := versioned.NewForConfig(u.config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// kubeconfig writes a kubeconfig file of the user.
func (u user) kubeconfig(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := framework.WriteKubeconfig(u.config, file); err != nil {
		t.Fatal(err)
	}
	return file
}
