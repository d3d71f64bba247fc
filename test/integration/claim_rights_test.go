// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

// extensionsRule is rule for the group of claims.
func extensionsRule(verbs, resources string) rbacv1.PolicyRule {
	r := rule(verbs, resources)
	r.APIGroups = []string{extensionsv1beta1.GroupName}
	return r
}

// TestTenantClaims has a tenant who may claim in one namespace: everything that a claim needs he can do, and nothing else.
func TestTenantClaims(t *testing.T) {
	t.Parallel()
	mine, theirs := newNamespace(t), newNamespace(t)
	tenant := newUser(t, mine, extensionsRule("create,get,list,watch,delete", "sandboxclaims")).agents(t)
	fillPool(t, mine, 1)
	fillPool(t, theirs, 1)
	his := tenant.ExtensionsV1beta1().SandboxClaims(mine)
	claim, err := his.Create(t.Context(), framework.NewClaim("c1", poolName), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := claimReady(claim); err != nil {
		t.Errorf("in the response: %v", err)
	}
	sandbox := claim.Status.Sandbox.Name
	for what, do := range map[string]func(ctx context.Context) error{
		`cannot create resource "sandboxclaims/bind"`: func(ctx context.Context) error {
			_, err := his.Bind(ctx, "c1", &extensionsv1beta1.SandboxClaimBind{}, metav1.CreateOptions{})
			return err
		},
		`cannot patch resource "sandboxclaims/status"`: func(ctx context.Context) error {
			_, err := his.Patch(ctx, "c1", types.MergePatchType, []byte(`{"status":{"sandbox":{"name":"other"}}}`), metav1.PatchOptions{}, "status")
			return err
		},
		`cannot patch resource "sandboxclaims"`: func(ctx context.Context) error {
			_, err := his.Patch(ctx, "c1", types.MergePatchType, []byte(`{"spec":{"env":[]}}`), metav1.PatchOptions{})
			return err
		},
		`cannot get resource "sandboxes"`: func(ctx context.Context) error {
			_, err := tenant.AgentsV1beta1().Sandboxes(mine).Get(ctx, sandbox, metav1.GetOptions{})
			return err
		},
		`cannot patch resource "sandboxes"`: func(ctx context.Context) error {
			_, err := tenant.AgentsV1beta1().Sandboxes(mine).Patch(ctx, sandbox, types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
			return err
		},
		`cannot list resource "sandboxwarmpools"`: func(ctx context.Context) error {
			_, err := tenant.ExtensionsV1beta1().SandboxWarmPools(mine).List(ctx, metav1.ListOptions{})
			return err
		},
		`cannot create resource "sandboxclaims"`: func(ctx context.Context) error {
			_, err := tenant.ExtensionsV1beta1().SandboxClaims(theirs).Create(ctx, framework.NewClaim("c1", poolName), metav1.CreateOptions{})
			return err
		},
		`cannot list resource "sandboxclaims"`: func(ctx context.Context) error {
			_, err := tenant.ExtensionsV1beta1().SandboxClaims(theirs).List(ctx, metav1.ListOptions{})
			return err
		},
	} {
		checkStatusError(t, do(t.Context()), 403, what)
	}
	awaitPool(t, theirs, 1)
	if err := his.Delete(t.Context(), "c1", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	awaitGone(t, "Sandbox", sandboxes(mine).Get, sandbox)
}

// TestClaimReachesItsOwnNamespace proves that no reference of a claim leads to another namespace.
func TestClaimReachesItsOwnNamespace(t *testing.T) {
	t.Parallel()
	mine, theirs := newNamespace(t), newNamespace(t)
	pool := fillPool(t, theirs, 1)
	for _, name := range []string{theirs + "/" + poolName, "../" + theirs + "/sandboxwarmpools/" + poolName, "..", "", "P1"} {
		_, err := claims(mine).Create(t.Context(), framework.NewClaim("c1", name), metav1.CreateOptions{})
		checkStatusError(t, err, 422, "spec.warmPoolRef.name")
	}
	err := extensionsREST().Post().Namespace(mine).Resource("sandboxclaims").Param("fieldValidation", "Strict").SetHeader("Content-Type", "application/json").
		Body(fmt.Appendf(nil, `{"metadata":{"name":"c1"},"spec":{"warmPoolRef":{"name":%q,"namespace":%q}}}`, poolName, theirs)).Do(t.Context()).Error()
	checkStatusError(t, err, 400, `unknown field "spec.warmPoolRef.namespace"`)

	// A Sandbox that says of itself all that a member says, but belongs to no pool of this namespace.
	members, err := ownedBy(t.Context(), theirs, pool.UID)
	if err != nil || len(members) != 1 {
		t.Fatalf("%v, %d members", err, len(members))
	}
	decoy := framework.NewSandbox("decoy", func(s *v1beta1.Sandbox) { s.Labels = members[0].Labels })
	createReady(t, mine, decoy)
	createTemplate(t, mine)
	createPool(t, mine, 0)
	createClaim(t, mine, "c1")
	if claim := awaitClaim(t, mine, "c1", claimReady); claim.Status.Sandbox.Name != "c1" {
		t.Errorf("it got %s", claim.Status.Sandbox.Name)
	}
	awaitPool(t, theirs, 1)
}

// TestBindSubresource proves that bind is what the controller needs of it and no more.
func TestBindSubresource(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	binder := newUser(t, namespace, extensionsRule("create", "sandboxclaims/bind")).agents(t).ExtensionsV1beta1().SandboxClaims(namespace)
	_, err := binder.Bind(t.Context(), "nope", &extensionsv1beta1.SandboxClaimBind{}, metav1.CreateOptions{})
	checkStatusError(t, err, 404, `"nope" not found`)

	createClaim(t, namespace, "c1")
	waiting := awaitClaim(t, namespace, "c1", claimReason(extensionsv1beta1.ClaimReasonWarmPoolNotFound))
	got, err := binder.Bind(t.Context(), "c1", &extensionsv1beta1.SandboxClaimBind{}, metav1.CreateOptions{})
	if err != nil || got.ResourceVersion != waiting.ResourceVersion || got.Status.Sandbox.Name != "" {
		t.Errorf("nothing to give: %v, got %+v", err, got)
	}
	_, err = binder.Bind(t.Context(), "c1", &extensionsv1beta1.SandboxClaimBind{Preconditions: &v1beta1.Preconditions{UID: new(types.UID("other"))}}, metav1.CreateOptions{})
	checkStatusError(t, err, 409, "UID")
	_, err = binder.Bind(t.Context(), "c1", &extensionsv1beta1.SandboxClaimBind{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, metav1.CreateOptions{})
	checkStatusError(t, err, 400)

	fillPool(t, namespace, 1)
	bound := awaitClaim(t, namespace, "c1", func(claim *extensionsv1beta1.SandboxClaim) error {
		return errors.Join(claimReady(claim), announced(claim))
	})
	for range 2 {
		again, err := binder.Bind(t.Context(), "c1", &extensionsv1beta1.SandboxClaimBind{}, metav1.CreateOptions{})
		if err != nil || again.Status.Sandbox.Name != bound.Status.Sandbox.Name {
			t.Errorf("bound already: %v, got %+v", err, again.Status.Sandbox)
		}
	}
	if owned, err := ownedBy(t.Context(), namespace, bound.UID); err != nil || len(owned) != 1 {
		t.Errorf("%v, it has %d Sandboxes", err, len(owned))
	}
}

// TestStandardRolesHaveExtensions binds the roles that Kubernetes has, and asks for each right of the group.
func TestStandardRolesHaveExtensions(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	mustKubectl(t, namespace, "", "apply", "-f", filepath.Join("..", "..", "artifacts", "base", "user-roles.yaml"))
	read := []string{"get", "list", "watch"}
	write := []string{"create", "delete", "deletecollection", "patch", "update"}
	resources := []string{"sandboxclaims", "sandboxtemplates", "sandboxwarmpools"}
	for role, may := range map[string]struct{ read, write bool }{"view": {true, false}, "edit": {true, true}, "admin": {true, true}} {
		user := "user-of-" + role
		if _, err := env.kube.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		want := map[string]bool{
			"get sandboxwarmpools/scale": may.read, "update sandboxwarmpools/scale": may.write, "patch sandboxwarmpools/scale": may.write,
			"get sandboxclaims/status": may.read, "update sandboxclaims/status": false, "patch sandboxwarmpools/status": false, "create sandboxclaims/bind": false,
		}
		for _, resource := range resources {
			for _, verb := range read {
				want[verb+" "+resource] = may.read
			}
			for _, verb := range write {
				want[verb+" "+resource] = may.write
			}
		}
		eventually(t, "rights of "+role, func(ctx context.Context) error { return checkRights(ctx, namespace, user, want) })
	}
}

// checkRights returns what a user may do and should not, or should and may not, each as a verb and a resource of the group.
func checkRights(ctx context.Context, namespace, user string, want map[string]bool) error {
	var wrong []string
	for right, allowed := range want {
		verb, resource, _ := strings.Cut(right, " ")
		resource, subresource, _ := strings.Cut(resource, "/")
		review, err := env.kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: namespace, Verb: verb, Group: extensionsv1beta1.GroupName, Resource: resource, Subresource: subresource,
			},
		}}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if review.Status.Allowed != allowed {
			wrong = append(wrong, fmt.Sprintf("%s: %v", right, review.Status.Allowed))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	slices.Sort(wrong)
	return errors.New(strings.Join(wrong, ", "))
}

// TestScaleIsARightOfItsOwn has a user who may scale pools, as an autoscaler may, and nothing else.
func TestScaleIsARightOfItsOwn(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	createTemplate(t, namespace)
	createPool(t, namespace, 0)
	autoscaler := newUser(t, namespace, extensionsRule("get,update", "sandboxwarmpools/scale")).agents(t).ExtensionsV1beta1().SandboxWarmPools(namespace)
	scale, err := autoscaler.GetScale(t.Context(), poolName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	scale.Spec.Replicas = 1
	if _, err := autoscaler.UpdateScale(t.Context(), poolName, scale, metav1.UpdateOptions{}); err != nil {
		t.Error(err)
	}
	awaitPool(t, namespace, 1)
	_, err = autoscaler.Get(t.Context(), poolName, metav1.GetOptions{})
	checkStatusError(t, err, 403, `cannot get resource "sandboxwarmpools"`)
	_, err = autoscaler.Patch(t.Context(), poolName, types.MergePatchType, []byte(`{"spec":{"replicas":5}}`), metav1.PatchOptions{})
	checkStatusError(t, err, 403, `cannot patch resource "sandboxwarmpools"`)
}
