// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

// kind is one of the kinds of the group, with an object that nothing happens to: it names what does not exist.
type kind struct {
	resource, kind string
	spec           string
	// change is a JSON merge patch of the spec that is no other than the one that undoes it.
	change, undo string
	hasStatus    bool
}

func kinds() []kind {
	return []kind{
		{
			resource: "sandboxtemplates", kind: "SandboxTemplate",
			spec:   `{"networkPolicyManagement":"Unmanaged","podTemplate":{"spec":{"containers":[{"name":"main","image":"a"}]}}}`,
			change: `{"spec":{"service":true}}`, undo: `{"spec":{"service":null}}`,
		},
		{
			resource: "sandboxwarmpools", kind: "SandboxWarmPool", spec: `{"sandboxTemplateRef":{"name":"nope"}}`,
			change: `{"spec":{"updateStrategy":{"type":"Recreate"}}}`, undo: `{"spec":{"updateStrategy":null}}`, hasStatus: true,
		},
		{
			resource: "sandboxclaims", kind: "SandboxClaim", spec: `{"warmPoolRef":{"name":"nope"}}`,
			change: `{"spec":{"lifecycle":{"ttlSecondsAfterFinished":5}}}`, undo: `{"spec":{"lifecycle":null}}`, hasStatus: true,
		},
	}
}

// client returns a client that knows nothing of the kind.
func (k kind) client(t *testing.T, namespace string) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(env.config)
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(extensionsv1beta1.SchemeGroupVersion.WithResource(k.resource)).Namespace(namespace)
}

// object returns an object of the kind.
func (k kind) object(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	body := fmt.Sprintf(`{"apiVersion":"extensions.agents.x-k8s.io/v1beta1","kind":%q,"metadata":{"name":%q},"spec":%s}`, k.kind, name, k.spec)
	if err := object.UnmarshalJSON([]byte(body)); err != nil {
		t.Fatal(err)
	}
	return object
}

// create creates an object of the kind.
func (k kind) create(t *testing.T, namespace, name string, options ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	t.Helper()
	object := k.object(t, name)
	for _, option := range options {
		option(object)
	}
	created, err := k.client(t, namespace).Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating %s %s/%s: %v", k.kind, namespace, name, err)
	}
	return created
}

// eachKind runs a test of each kind in a namespace of its own.
func eachKind(t *testing.T, test func(t *testing.T, k kind, namespace string)) {
	t.Parallel()
	for _, k := range kinds() {
		t.Run(k.kind, func(t *testing.T) {
			t.Parallel()
			test(t, k, newNamespace(t))
		})
	}
}

func TestExtensionsPatches(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind, namespace string) {
		before := k.create(t, namespace, "a")
		client := k.client(t, namespace)
		for _, test := range []struct {
			name       string
			patchType  types.PatchType
			patch      string
			generation int64
		}{
			{"JSON merge patch", types.MergePatchType, k.change, 2},
			{"the same again", types.MergePatchType, k.change, 2},
			{"null in a JSON merge patch", types.MergePatchType, k.undo, 3},
			{"JSON patch", types.JSONPatchType, `[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`, 3},
			{"strategic merge patch", types.StrategicMergePatchType, k.change, 4},
			{"null in a strategic merge patch", types.StrategicMergePatchType, k.undo, 5},
		} {
			patched, err := client.Patch(t.Context(), "a", test.patchType, []byte(test.patch), metav1.PatchOptions{})
			if err != nil || patched.GetGeneration() != test.generation {
				t.Errorf("%s: %v, generation %d, want %d", test.name, err, patched.GetGeneration(), test.generation)
			}
		}
		after, err := client.Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil || after.GetLabels()["a"] != "b" {
			t.Errorf("%v, labels %v", err, after.GetLabels())
		}
		if diff := cmp.Diff(before.Object["spec"], after.Object["spec"]); diff != "" {
			t.Errorf("what was done and undone left something (-before +after):\n%s", diff)
		}
		_, err = client.Patch(t.Context(), "nope", types.MergePatchType, []byte(k.change), metav1.PatchOptions{})
		checkStatusError(t, err, 404, `"nope" not found`)
	})
}

func TestExtensionsServerSideApply(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind, namespace string) {
		client := k.client(t, namespace)
		apply := func(manager string, change string, force bool) (*unstructured.Unstructured, error) {
			t.Helper()
			object, patch := k.object(t, "a"), map[string]any{}
			if err := json.Unmarshal([]byte(change), &patch); err != nil {
				t.Fatal(err)
			}
			spec, _ := object.Object["spec"].(map[string]any)
			changed, _ := patch["spec"].(map[string]any)
			for key, value := range changed {
				spec[key] = value
			}
			return client.Apply(t.Context(), "a", object, metav1.ApplyOptions{FieldManager: manager, Force: force})
		}
		if _, err := apply("one", k.change, false); err != nil {
			t.Fatal(err)
		}
		other := strings.NewReplacer("true", "false", "Recreate", "OnReplenish", "5", "6").Replace(k.change)
		_, err := apply("two", other, false)
		checkStatusError(t, err, 409, `conflict with "one"`)
		if _, err := apply("two", other, true); err != nil {
			t.Errorf("with force: %v", err)
		}
		without, err := apply("two", `{"spec":{}}`, false)
		if err != nil {
			t.Fatal(err)
		}
		want, got := k.object(t, "a").Object["spec"].(map[string]any), without.Object["spec"].(map[string]any)
		for key := range got {
			if _, set := want[key]; !set && strings.Contains(k.change, key) {
				t.Errorf("%s is still set after its last owner let go of it: %v", key, got)
			}
		}
	})
}

func TestExtensionsSelectors(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind, namespace string) {
		client := k.client(t, namespace)
		for i, name := range []string{"a", "b", "c"} {
			k.create(t, namespace, name, func(o *unstructured.Unstructured) {
				o.SetLabels(map[string]string{"all": "yes", "number": fmt.Sprint(i)})
			})
		}
		for _, test := range []struct {
			options metav1.ListOptions
			want    string
		}{
			{metav1.ListOptions{FieldSelector: "metadata.name=b"}, "b"},
			{metav1.ListOptions{FieldSelector: "metadata.name!=b,metadata.namespace=" + namespace}, "a c"},
			{metav1.ListOptions{LabelSelector: "all=yes,number=2"}, "c"},
			{metav1.ListOptions{LabelSelector: "all"}, "a b c"},
			{metav1.ListOptions{LabelSelector: "number in (0,1)", FieldSelector: "metadata.name=b"}, "b"},
		} {
			list, err := client.List(t.Context(), test.options)
			if err != nil {
				t.Errorf("%+v: %v", test.options, err)
				continue
			}
			var got []string
			for _, item := range list.Items {
				got = append(got, item.GetName())
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("%q, %q: got %v, want %s", test.options.FieldSelector, test.options.LabelSelector, got, test.want)
			}
		}
		_, err := client.List(t.Context(), metav1.ListOptions{FieldSelector: "spec.bogus=1"})
		checkStatusError(t, err, 400, "spec.bogus")
		err = client.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "number in (0,1)"})
		list, listErr := client.List(t.Context(), metav1.ListOptions{})
		if err := errors.Join(err, listErr); err != nil || len(list.Items) != 1 || list.Items[0].GetName() != "c" {
			t.Errorf("after the deletion of two: %v, %d are left", err, len(list.Items))
		}
	})
}

// TestClaimFieldSelectors has those that no other server of the group has.
func TestClaimFieldSelectors(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	fillPool(t, namespace, 1)
	bound := createBound(t, namespace, "bound")
	if _, err := claims(namespace).Create(t.Context(), framework.NewClaim("other", "p2"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for selector, want := range map[string]string{
		"spec.warmPoolRef.name=p1":                          "bound",
		"spec.warmPoolRef.name!=p1":                         "other",
		"status.sandbox.name=" + bound.Status.Sandbox.Name:  "bound",
		"status.sandbox.name=":                              "other",
		"spec.warmPoolRef.name=p1,metadata.name=other":      "",
		"status.sandbox.name=nope,spec.warmPoolRef.name=p1": "",
	} {
		list, err := claims(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: selector})
		if err != nil {
			t.Errorf("%s: %v", selector, err)
			continue
		}
		var got []string
		for _, claim := range list.Items {
			got = append(got, claim.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %v, want %q", selector, got, want)
		}
	}
	watcher, err := claims(namespace).Watch(t.Context(), metav1.ListOptions{FieldSelector: "status.sandbox.name=" + bound.Status.Sandbox.Name, ResourceVersion: "0"})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	if event := nextEvent(t, watcher); event.Type != watch.Added {
		t.Errorf("got %s %+v", event.Type, event.Object)
	}
	deleteClaim(t, namespace, "bound")
	for {
		if event := nextEvent(t, watcher); event.Type == watch.Deleted {
			return
		}
	}
}

// TestExtensionsWatch has the resourceVersions that clients begin with.
func TestExtensionsWatch(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind, namespace string) {
		client := k.client(t, namespace)
		created := k.create(t, namespace, "a")
		mark := func() string {
			t.Helper()
			value := fmt.Sprint(time.Now().UnixNano())
			_, err := client.Patch(t.Context(), "a", types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"mark":%q}}}`, value), metav1.PatchOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return value
		}
		for name, test := range map[string]struct {
			resourceVersion string
			first           watch.EventType
		}{
			"no version":          {"", watch.Added},
			"any version":         {"0", watch.Added},
			"that of the request": {created.GetResourceVersion(), watch.Modified},
		} {
			watcher, err := client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: test.resourceVersion, FieldSelector: "metadata.name=a"})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			value := mark()
			for first := true; ; first = false {
				event := nextEvent(t, watcher)
				object, ok := event.Object.(*unstructured.Unstructured)
				if !ok || (first && event.Type != test.first) || (!first && event.Type != watch.Modified) {
					t.Fatalf("%s: got %s %+v", name, event.Type, event.Object)
				}
				if object.GetLabels()["mark"] == value {
					break
				}
			}
			watcher.Stop()
		}
	})
}

// TestExtensionsWatchEnds proves that timeoutSeconds ends a watch, before which a bookmark tells where to go on.
func TestExtensionsWatchEnds(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind, namespace string) {
		k.create(t, namespace, "a")
		start := time.Now()
		watcher, err := k.client(t, namespace).Watch(t.Context(), metav1.ListOptions{
			ResourceVersion: "0", AllowWatchBookmarks: true, TimeoutSeconds: new(int64(4)),
		})
		if err != nil {
			t.Fatal(err)
		}
		defer watcher.Stop()
		bookmarks, deadline := 0, time.After(patience)
		for {
			select {
			case event, open := <-watcher.ResultChan():
				if !open {
					if took := time.Since(start); took < 3*time.Second || bookmarks == 0 {
						t.Errorf("it ended after %v and %d bookmarks", took, bookmarks)
					}
					return
				}
				if event.Type == watch.Bookmark {
					bookmarks++
				}
			case <-deadline:
				t.Fatal("it does not end")
			}
		}
	})
}

func TestExtensionsWatchList(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind, namespace string) {
		k.create(t, namespace, "a")
		watcher, err := k.client(t, namespace).Watch(t.Context(), metav1.ListOptions{
			SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer watcher.Stop()
		if event := nextEvent(t, watcher); event.Type != watch.Added {
			t.Errorf("the first event is %s", event.Type)
		}
		for {
			event := nextEvent(t, watcher)
			object, ok := event.Object.(*unstructured.Unstructured)
			if !ok {
				t.Fatalf("got %s %+v", event.Type, event.Object)
			}
			if event.Type == watch.Bookmark && object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
				return
			}
		}
	})
}

// TestExtensionsWatchTooOld asks for what was before the server's memory began. It is not parallel, because the server is restarted.
func TestExtensionsWatchTooOld(t *testing.T) {
	namespace := newNamespace(t)
	for _, k := range kinds() {
		k.create(t, namespace, "a")
	}
	restart(t, sandboxAPIServer)
	for _, k := range kinds() {
		t.Run(k.kind, func(t *testing.T) {
			watcher, err := k.client(t, namespace).Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1", FieldSelector: "metadata.name=a"})
			if err != nil {
				checkStatusError(t, err, 410, "too old resource version")
				return
			}
			defer watcher.Stop()
			if event := nextEvent(t, watcher); event.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(event.Object)) {
				t.Errorf("got %s %+v", event.Type, event.Object)
			}
		})
	}
}

func TestExtensionsWrites(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind, namespace string) {
		client := k.client(t, namespace)
		if _, err := client.Create(t.Context(), k.object(t, "a"), dryRun()); err != nil {
			t.Errorf("dry run: %v", err)
		}
		_, err := client.Get(t.Context(), "a", metav1.GetOptions{})
		checkStatusError(t, err, 404, `"a" not found`)
		checkStatusError(t, client.Delete(t.Context(), "a", metav1.DeleteOptions{}), 404, `"a" not found`)
		_, err = k.client(t, namespace+"-nope").Create(t.Context(), k.object(t, "a"), metav1.CreateOptions{})
		checkStatusError(t, err, 404, "namespaces")

		created := k.create(t, namespace, "a")
		if created.GetGeneration() != 1 {
			t.Errorf("generation is %d", created.GetGeneration())
		}
		_, err = client.Create(t.Context(), k.object(t, "a"), metav1.CreateOptions{})
		checkStatusError(t, err, 409, `"a" already exists`)
		_, err = client.Create(t.Context(), k.object(t, "A_b"), metav1.CreateOptions{})
		checkStatusError(t, err, 422, "metadata.name: Invalid value")
		generated := k.create(t, namespace, "", func(o *unstructured.Unstructured) { o.SetGenerateName(strings.Repeat("g", 70)) })
		if name := generated.GetName(); len(name) != 63 || name[:58] != strings.Repeat("g", 58) {
			t.Errorf("the generated name is %s", name)
		}

		stale := created.DeepCopy()
		stale.SetResourceVersion("1")
		_, err = client.Update(t.Context(), stale, metav1.UpdateOptions{})
		checkStatusError(t, err, 409, "the object has been modified")
		err = client.Delete(t.Context(), "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: new(types.UID("other"))}})
		checkStatusError(t, err, 409, "UID")
		if err := client.Delete(t.Context(), "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: new(created.GetUID())}}); err != nil {
			t.Error(err)
		}
	})
}

// TestExtensionsUnknownFields has the three ways to deal with a field that is of another version of the API.
func TestExtensionsUnknownFields(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind, namespace string) {
		post := func(mode string) ([]string, error) {
			body := strings.Replace(`{"metadata":{"generateName":"a-"},"spec":`+k.spec+`}`, `"spec":{`, `"spec":{"ofAnotherVersion":1,`, 1)
			result := extensionsREST().Post().Namespace(namespace).Resource(k.resource).Param("fieldValidation", mode).
				SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(t.Context())
			var warnings []string
			for _, warning := range result.Warnings() {
				warnings = append(warnings, warning.Text)
			}
			return warnings, result.Error()
		}
		if _, err := post("Strict"); err == nil {
			t.Error("strict validation accepts it")
		} else {
			checkStatusError(t, err, 400, `unknown field "spec.ofAnotherVersion"`)
		}
		const unknown = `unknown field "spec.ofAnotherVersion"`
		if warnings, err := post("Warn"); err != nil || !slices.Contains(warnings, unknown) {
			t.Errorf("%v, warnings %q", err, warnings)
		}
		if warnings, err := post("Ignore"); err != nil || slices.Contains(warnings, unknown) {
			t.Errorf("%v, warnings %q", err, warnings)
		}
	})
}

// TestExtensionsStatusIsolation proves that spec and status are written by requests of their own.
func TestExtensionsStatusIsolation(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind, namespace string) {
		const forged = `{"metadata":{"labels":{"forged":"yes"}},"spec":{"forged":true},"status":{"selector":"forged","sandbox":{"name":"forged"}}}`
		client := k.client(t, namespace)
		created := k.create(t, namespace, "a", func(o *unstructured.Unstructured) {
			if k.hasStatus {
				o.Object["status"] = map[string]any{"selector": "forged", "sandbox": map[string]any{"name": "forged"}}
			}
		})
		if strings.Contains(fmt.Sprint(created.Object["status"]), "forged") {
			t.Errorf("creation wrote the status: %v", created.Object["status"])
		}
		patched, err := client.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"status":{"selector":"forged","sandbox":{"name":"forged"}}}`), metav1.PatchOptions{})
		if err != nil || strings.Contains(fmt.Sprint(patched.Object["status"]), "forged") {
			t.Errorf("PATCH of the main resource: %v, status %v", err, patched.Object["status"])
		}
		patched, err = client.Patch(t.Context(), "a", types.MergePatchType, []byte(forged), metav1.PatchOptions{}, "status")
		if !k.hasStatus {
			checkStatusError(t, err, 404)
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(fmt.Sprint(patched.Object["status"]), "forged") || patched.GetLabels()["forged"] != "" || patched.GetGeneration() != 1 {
			t.Errorf("PATCH of the status: %v", patched.Object)
		}
	})
}

// TestExtensionsMetadata proves that kube-controller-manager sees the kinds as it must to collect them.
func TestExtensionsMetadata(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind, namespace string) {
		created := k.create(t, namespace, "a")
		list, err := env.metadata.Resource(extensionsv1beta1.SchemeGroupVersion.WithResource(k.resource)).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 || list.Items[0].UID != created.GetUID() {
			t.Errorf("%v, got %+v", err, list)
		}
		watcher, err := env.metadata.Resource(extensionsv1beta1.SchemeGroupVersion.WithResource(k.resource)).Namespace(namespace).Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer watcher.Stop()
		if partial, ok := nextEvent(t, watcher).Object.(*metav1.PartialObjectMetadata); !ok || partial.UID != created.GetUID() {
			t.Errorf("got %+v", partial)
		}
	})
}

// TestClaimDryRun proves that a dry run answers as the request would, as far as it can, and gives nothing away.
func TestClaimDryRun(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	pool := fillPool(t, namespace, 1)
	before, err := ownedBy(t.Context(), namespace, pool.UID)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		claim, err := claims(namespace).Create(t.Context(), framework.NewClaim("c1", poolName), dryRun())
		if err != nil || claim.UID == "" {
			t.Errorf("%v, got %+v", err, claim)
		}
	}
	_, err = claims(namespace).Create(t.Context(), framework.NewClaim("c1", poolName, func(claim *extensionsv1beta1.SandboxClaim) {
		claim.Spec.Env = []extensionsv1beta1.EnvVar{{Name: "A", Value: "1"}}
	}), dryRun())
	checkStatusError(t, err, 422, "spec.env")
	after, err := ownedBy(t.Context(), namespace, pool.UID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("members (-before +after):\n%s", diff)
	}
	if got := createBound(t, namespace, "c1").Status.Sandbox.Name; got != before[0].Name {
		t.Errorf("the claim got %s, not the member that was there", got)
	}
}

// TestExtensionsAdmissionPolicy proves that policies of the cluster hold for the kinds, a claim that would be bound included.
func TestExtensionsAdmissionPolicy(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	pool := fillPool(t, namespace, 1)
	validate(t, namespace, "claims", "object.metadata.name != 'refused'",
		matchAll(extensionsv1beta1.GroupName, "sandboxclaims", admissionregistrationv1.Create))
	eventually(t, "a policy on claims", func(ctx context.Context) error {
		_, err := claims(namespace).Create(ctx, framework.NewClaim("refused", "nope"), dryRun())
		if apierrors.IsForbidden(err) {
			checkStatusError(t, err, 403, "the policy says no")
			return nil
		}
		return errors.Join(errors.New("creation is not refused"), err)
	})
	before, err := ownedBy(t.Context(), namespace, pool.UID)
	if err != nil || len(before) != 1 {
		t.Fatalf("%v, %d members", err, len(before))
	}
	_, err = claims(namespace).Create(t.Context(), framework.NewClaim("refused", poolName), metav1.CreateOptions{})
	checkStatusError(t, err, 403, "the policy says no")
	if got := createBound(t, namespace, "admitted").Status.Sandbox.Name; got != before[0].Name {
		t.Errorf("the claim that is admitted got %s, want %s", got, before[0].Name)
	}
}

// TestExtensionsTables has the columns as clients other than kubectl ask for them.
func TestExtensionsTables(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind, namespace string) {
		k.create(t, namespace, "a")
		data, err := extensionsREST().Get().Namespace(namespace).Resource(k.resource).
			SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var table metav1.Table
		if err := json.Unmarshal(data, &table); err != nil || len(table.Rows) != 1 || table.ResourceVersion == "" {
			t.Fatalf("%v, got %s", err, data)
		}
		var columns []string
		for _, column := range table.ColumnDefinitions {
			if column.Priority == 0 {
				columns = append(columns, column.Name)
			}
		}
		want := map[string]string{"SandboxTemplate": "Name Age", "SandboxWarmPool": "Name Ready Desired Age", "SandboxClaim": "Name Ready Sandbox Reason Age"}[k.kind]
		if got := strings.Join(columns, " "); got != want {
			t.Errorf("columns are %s, want %s", got, want)
		}
		var partial metav1.PartialObjectMetadata
		if err := json.Unmarshal(table.Rows[0].Object.Raw, &partial); err != nil || partial.Name != "a" {
			t.Errorf("%v, the row carries %s", err, table.Rows[0].Object.Raw)
		}
	})
}

// TestClaimKeepsWhatIsBound proves that the response of a bound claim, the claim as it is stored, and its Sandbox say the same.
func TestClaimKeepsWhatIsBound(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	fillPool(t, namespace, 1, framework.Blueprint(framework.WithService))
	created := createBound(t, namespace, "c1")
	sandbox := get(t, namespace, created.Status.Sandbox.Name)
	if created.Status.Sandbox.ServiceFQDN == "" || created.Status.Sandbox.ServiceFQDN != sandbox.Status.ServiceFQDN {
		t.Errorf("the FQDN is %q, that of the Sandbox is %q", created.Status.Sandbox.ServiceFQDN, sandbox.Status.ServiceFQDN)
	}
	stored := awaitClaim(t, namespace, "c1", announced)
	if diff := cmp.Diff(created.Status, stored.Status); diff != "" {
		t.Errorf("status (-response +stored):\n%s", diff)
	}
	if controller := metav1.GetControllerOf(sandbox); controller == nil || controller.UID != created.UID || len(sandbox.OwnerReferences) != 1 {
		t.Errorf("owners of the Sandbox: %+v", sandbox.OwnerReferences)
	}
	for _, label := range []string{v1beta1.WarmPoolSandboxLabel, v1beta1.SandboxTemplateHashLabel} {
		if value, set := sandbox.Labels[label]; set {
			t.Errorf("the Sandbox still has label %s=%s", label, value)
		}
	}
	if sandbox.Labels[v1beta1.ClaimUIDLabel] != string(created.UID) || sandbox.Labels[v1beta1.LaunchTypeLabel] != v1beta1.LaunchTypeWarm {
		t.Errorf("labels of the Sandbox: %v", sandbox.Labels)
	}
}
