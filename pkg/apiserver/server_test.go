// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/compatibility"
	"sigs.k8s.io/yaml"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/storage/factory"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/registrytest"
)

// startServer returns a client of a whole server over a real etcd. It lets everybody do everything, and there is no kube-apiserver behind it.
// There can be only one in a process, whose metrics it registers.
func startServer(t *testing.T) *versioned.Clientset {
	t.Helper()
	serialization := NewSerialization()
	config := NewConfig(serialization, ExtraConfig{StreamDrain: time.Second})
	generic := &config.GenericConfig.Config
	generic.ExternalAddress = "localhost:443"
	generic.EffectiveVersion = compatibility.NewEffectiveVersionFromString("1.36", "", "")
	generic.LoopbackClientConfig = &rest.Config{}
	generic.Authorization.Authorizer = authorizerfactory.NewAlwaysAllowAuthorizer()
	config.GenericConfig.ClientConfig = &rest.Config{Host: "https://localhost:1"}

	etcd := genericoptions.NewEtcdOptions(storagebackend.NewDefaultConfig(factory.EtcdPrefix, nil))
	etcd.StorageConfig.Transport.ServerList = []string{registrytest.StartEtcd(t)}
	etcd.DefaultStorageMediaType = runtime.ContentTypeProtobuf
	storageFactory, err := factory.New(etcd, serialization.Scheme, serialization.Codecs)
	if err != nil {
		t.Fatal(err)
	}
	if err := etcd.ApplyWithStorageFactoryTo(storageFactory, generic); err != nil {
		t.Fatal(err)
	}
	server, err := config.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Destroy)
	server.PrepareRun()
	server.RunPostStartHooks(t.Context())
	listener := httptest.NewServer(server.Handler)
	t.Cleanup(listener.Close)
	client, err := versioned.NewForConfig(&rest.Config{Host: listener.URL})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestServer(t *testing.T) {
	client := startServer(t)
	t.Run("resources", func(t *testing.T) { testResources(t, client) })
	t.Run("registration", func(t *testing.T) { testRegistration(t, client) })
	t.Run("roles for users", func(t *testing.T) { testUserRoles(t, client) })
	t.Run("templates have no status", func(t *testing.T) { testNoTemplateStatus(t, client) })
	t.Run("scale", func(t *testing.T) { testScale(t, client) })
	t.Run("examples", func(t *testing.T) { testExamples(t, client) })
}

// served returns what discovery says of a group, without the hashes of storage versions.
func served(t *testing.T, client *versioned.Clientset, group string) []metav1.APIResource {
	t.Helper()
	list, err := client.Discovery().ServerResourcesForGroupVersion(group + "/v1beta1")
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.APIResources {
		list.APIResources[i].StorageVersionHash = ""
	}
	return list.APIResources
}

// testResources pins the resources of the extensions group: names, short names and verbs are those of upstream's custom resources.
func testResources(t *testing.T, client *versioned.Clientset) {
	all := []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	change := []string{"get", "patch", "update"}
	want := []metav1.APIResource{
		{Name: "sandboxclaims", SingularName: "sandboxclaim", Namespaced: true, Kind: "SandboxClaim", ShortNames: []string{"sandboxclaim"}, Verbs: all},
		{Name: "sandboxclaims/bind", Namespaced: true, Kind: "SandboxClaimBind", Verbs: []string{"create"}},
		{Name: "sandboxclaims/status", Namespaced: true, Kind: "SandboxClaim", Verbs: change},
		{Name: "sandboxtemplates", SingularName: "sandboxtemplate", Namespaced: true, Kind: "SandboxTemplate", ShortNames: []string{"sandboxtemplate"}, Verbs: all},
		{Name: "sandboxwarmpools", SingularName: "sandboxwarmpool", Namespaced: true, Kind: "SandboxWarmPool", ShortNames: []string{"swp"}, Verbs: all},
		{Name: "sandboxwarmpools/scale", Namespaced: true, Group: "autoscaling", Version: "v1", Kind: "Scale", Verbs: change},
		{Name: "sandboxwarmpools/status", Namespaced: true, Kind: "SandboxWarmPool", Verbs: change},
	}
	if diff := cmp.Diff(want, served(t, client, extensions.GroupName)); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
}

// testRegistration checks that what is served is what kube-apiserver is told to pass on, and that the server may write the caBundle of it.
func testRegistration(t *testing.T, client *versioned.Clientset) {
	groups, err := client.Discovery().ServerGroups()
	if err != nil {
		t.Fatal(err)
	}
	want := sets.New[string]()
	for _, group := range groups.Groups {
		for _, version := range group.Versions {
			want.Insert(version.Version + "." + group.Name)
		}
	}
	registered, writable := sets.New[string](), sets.New[string]()
	for _, document := range documents(t, "../../artifacts/base/apiservice.yaml") {
		var apiService metav1.PartialObjectMetadata
		if err := yaml.Unmarshal([]byte(document), &apiService); err != nil {
			t.Fatal(err)
		}
		registered.Insert(apiService.Name)
	}
	for _, document := range documents(t, "../../artifacts/base/apiserver-rbac.yaml") {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			if slices.Contains(rule.Resources, "apiservices") {
				writable.Insert(rule.ResourceNames...)
			}
		}
	}
	if diff := cmp.Diff(sets.List(want), sets.List(registered)); diff != "" {
		t.Errorf("APIServices (-served +registered):\n%s", diff)
	}
	if diff := cmp.Diff(sets.List(want), sets.List(writable)); diff != "" {
		t.Errorf("APIServices (-served +writable):\n%s", diff)
	}
}

// documents returns the YAML documents of a file.
func documents(t *testing.T, path string) []string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(content), "\n---\n")
}

// userRoles returns the roles that are shipped for people, by name.
func userRoles(t *testing.T) map[string]rbacv1.ClusterRole {
	t.Helper()
	roles := map[string]rbacv1.ClusterRole{}
	for _, document := range documents(t, "../../artifacts/base/user-roles.yaml") {
		var role rbacv1.ClusterRole
		if err := yaml.UnmarshalStrict([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		roles[role.Name] = role
	}
	return roles
}

// testUserRoles holds the roles against what is served: who edits may do all that can be done, but what is the controller's; who views may
// read all that is there to be read.
func testUserRoles(t *testing.T, client *versioned.Clientset) {
	controllers := sets.New("sandboxclaims/bind")
	want := map[string]sets.Set[string]{"sandbox-view": sets.New[string](), "sandbox-edit": sets.New[string](), "sandbox-admin": sets.New[string]()}
	for _, group := range []string{agents.GroupName, extensions.GroupName} {
		for _, resource := range served(t, client, group) {
			if controllers.Has(resource.Name) {
				continue
			}
			_, subresource, _ := strings.Cut(resource.Name, "/")
			// A list and a watch of a subresource are nothing, and do no harm in a role.
			reads := sets.New("get", "list", "watch")
			if !slices.Contains(resource.Verbs, "list") && !slices.Contains(resource.Verbs, "update") {
				reads = sets.New[string]()
			}
			writes := sets.New(resource.Verbs...).Difference(reads)
			if subresource == "status" {
				writes = nil
			}
			add := func(role string, verbs sets.Set[string]) {
				for verb := range verbs {
					want[role].Insert(verb + " " + resource.Name + "." + group)
				}
			}
			add("sandbox-view", reads)
			for _, role := range []string{"sandbox-edit", "sandbox-admin"} {
				add(role, reads)
				add(role, writes)
			}
			if subresource == "" {
				want["sandbox-admin"].Insert("update " + resource.Name + "/finalizers." + group)
			}
		}
	}
	for name, role := range userRoles(t) {
		got := sets.New[string]()
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					got.Insert(verb + " " + resource + "." + rule.APIGroups[0])
				}
			}
		}
		if diff := cmp.Diff(sets.List(want[name]), sets.List(got)); diff != "" {
			t.Errorf("rights of %s (-want +got):\n%s", name, diff)
		}
	}
}

func testNoTemplateStatus(t *testing.T, client *versioned.Clientset) {
	err := client.ExtensionsV1beta1().RESTClient().Get().Namespace("default").Resource("sandboxtemplates").Name("a").SubResource("status").Do(t.Context()).Error()
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != http.StatusNotFound || strings.Contains(err.Error(), `"a"`) {
		t.Errorf("error is %v, want that there is no such endpoint", err)
	}
}

// testExamples creates what the examples describe. None may have a field that the server does not know.
func testExamples(t *testing.T, client *versioned.Clientset) {
	paths, err := filepath.Glob("../../artifacts/examples/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	resources := map[string]string{
		"Sandbox": "sandboxes", "SandboxTemplate": "sandboxtemplates", "SandboxWarmPool": "sandboxwarmpools", "SandboxClaim": "sandboxclaims",
	}
	for _, path := range paths {
		for _, document := range documents(t, path) {
			var kind metav1.TypeMeta
			if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
				t.Fatal(err)
			}
			if err := client.AgentsV1beta1().RESTClient().Post().
				AbsPath("/apis/"+kind.APIVersion+"/namespaces/examples/"+resources[kind.Kind]).Param("fieldValidation", "Strict").
				SetHeader("Content-Type", runtime.ContentTypeYAML).Body([]byte(document)).Do(t.Context()).Error(); err != nil {
				t.Errorf("%s: %v", filepath.Base(path), err)
			}
		}
	}
}

// testScale takes a pool up and down by every means that clients have.
func testScale(t *testing.T, client *versioned.Clientset) {
	ctx := t.Context()
	pools := client.ExtensionsV1beta1().SandboxWarmPools("default")
	manifest := `{"apiVersion":"extensions.agents.x-k8s.io/v1beta1","kind":"SandboxWarmPool","metadata":{"name":"pool"},
		"spec":{"replicas":1,"sandboxTemplateRef":{"name":"template"}}}`
	apply := func(force bool) error {
		_, err := pools.Patch(ctx, "pool", types.ApplyPatchType, []byte(manifest), metav1.PatchOptions{FieldManager: "applier", Force: &force})
		return err
	}
	if err := apply(false); err != nil {
		t.Fatalf("creating the pool: %v", err)
	}
	scale, err := pools.GetScale(ctx, "pool", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	expectReplicas := func(by string, want int32) {
		t.Helper()
		pool, err := pools.Get(ctx, "pool", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := *pool.Spec.Replicas; got != want {
			t.Errorf("after %s: %d replicas, want %d", by, got, want)
		}
	}

	scale.Spec.Replicas = 2
	if scale, err = pools.UpdateScale(ctx, "pool", scale, metav1.UpdateOptions{FieldManager: "scaler"}); err != nil {
		t.Fatal(err)
	}
	expectReplicas("PUT", 2)
	if err := apply(false); !apierrors.IsConflict(err) {
		t.Errorf("applying the manifest after somebody has scaled the pool: error is %v, want Conflict", err)
	}

	patchScale := func(by types.PatchType, patch string, options metav1.PatchOptions) error {
		return client.ExtensionsV1beta1().RESTClient().Patch(by).Namespace("default").Resource("sandboxwarmpools").Name("pool").SubResource("scale").
			VersionedParams(&options, metav1.ParameterCodec).Body([]byte(patch)).Do(ctx).Error()
	}
	if err := patchScale(types.MergePatchType, `{"spec":{"replicas":3}}`, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	expectReplicas("a merge patch", 3)
	if err := patchScale(types.ApplyPatchType, `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"pool"},"spec":{"replicas":4}}`,
		metav1.PatchOptions{FieldManager: "autoscaler", Force: new(true)}); err != nil {
		t.Fatal(err)
	}
	expectReplicas("an apply", 4)
	if err := patchScale(types.MergePatchType, `{"spec":{"replicas":-1}}`, metav1.PatchOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("scaling below zero: error is %v, want Invalid", err)
	}
	scale.Spec.Replicas = 9
	if _, err := pools.UpdateScale(ctx, "pool", scale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("PUT of a Scale that is out of date: error is %v, want Conflict", err)
	}
	if err := apply(true); err != nil {
		t.Error(err)
	}
	expectReplicas("an apply of the pool by force", 1)
	expectOwners(t, client, map[string]string{"applier": "Apply"})
}

// expectOwners checks who owns the number of members of the pool.
func expectOwners(t *testing.T, client *versioned.Clientset, want map[string]string) {
	t.Helper()
	pool, err := client.ExtensionsV1beta1().SandboxWarmPools("default").Get(t.Context(), "pool", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, entry := range pool.ManagedFields {
		var owned struct {
			Spec map[string]json.RawMessage `json:"f:spec"`
		}
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &owned); err != nil {
			t.Fatal(err)
		}
		if _, ok := owned.Spec["f:replicas"]; ok {
			got[entry.Manager] = string(entry.Operation)
		}
		if entry.APIVersion != extensionsv1beta1.SchemeGroupVersion.String() {
			t.Errorf("%s owns fields of %s", entry.Manager, entry.APIVersion)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("owners of spec.replicas (-want +got):\n%s", diff)
	}
}
