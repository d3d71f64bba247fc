// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

func TestListPages(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	const total, pageSize = 5, 2
	var want []string
	for i := range total {
		want = append(want, create(t, namespace, framework.NewSandbox(fmt.Sprintf("box-%d", i), framework.Suspended)).Name)
	}
	var got []string
	options := metav1.ListOptions{Limit: pageSize}
	for page := 0; ; page++ {
		list, err := sandboxes(namespace).List(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		for _, sandbox := range list.Items {
			got = append(got, sandbox.Name)
		}
		if list.Continue == "" {
			break
		}
		if remaining := list.RemainingItemCount; remaining == nil || *remaining != int64(total-(page+1)*pageSize) {
			t.Errorf("page %d: remainingItemCount is %v", page, remaining)
		}
		options.Continue = list.Continue
		if page == 0 {
			// The pages are of one moment, whatever happens in between.
			create(t, namespace, framework.NewSandbox("box-3-later", framework.Suspended))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names over all pages (-want +got):\n%s", diff)
	}
	options.Continue = "bogus"
	_, err := sandboxes(namespace).List(t.Context(), options)
	checkStatusError(t, err, 400, "continue")
}

func TestListResourceVersions(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	first := create(t, namespace, framework.NewSandbox("first", framework.Suspended))
	second := create(t, namespace, framework.NewSandbox("second", framework.Suspended))
	for name, test := range map[string]struct {
		options metav1.ListOptions
		want    []string
	}{
		"most recent":        {metav1.ListOptions{}, []string{"first", "second"}},
		"not older than":     {metav1.ListOptions{ResourceVersion: second.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}, []string{"first", "second"}},
		"exactly":            {metav1.ListOptions{ResourceVersion: first.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact}, []string{"first"}},
		"any, at this point": {metav1.ListOptions{ResourceVersion: second.ResourceVersion}, []string{"first", "second"}},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := sandboxes(namespace).List(t.Context(), test.options)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, sandbox := range list.Items {
				got = append(got, sandbox.Name)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
		})
	}
	_, err := sandboxes(namespace).List(t.Context(), metav1.ListOptions{ResourceVersion: "not a number"})
	checkStatusError(t, err, 400, "resourceVersion")
}

func TestFieldSelectors(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	for _, name := range []string{"a", "b"} {
		create(t, namespace, framework.NewSandbox(name, framework.Suspended))
	}
	for selector, want := range map[string]int{
		"metadata.name=a":                     1,
		"metadata.name!=a":                    1,
		"metadata.namespace=" + namespace:     2,
		"metadata.name=a,metadata.namespace=": 0,
	} {
		list, err := sandboxes(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: selector})
		if err != nil || len(list.Items) != want {
			t.Errorf("%s: %v, %d sandboxes, want %d", selector, err, len(list.Items), want)
		}
	}
	for _, selector := range []string{"spec.operatingMode=Running", "status.nodeName=", "bogus=1"} {
		_, err := sandboxes(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: selector})
		checkStatusError(t, err, 400, "field label not supported")
		_, err = sandboxes(namespace).Watch(t.Context(), metav1.ListOptions{FieldSelector: selector})
		checkStatusError(t, err, 400, "field label not supported")
	}
}

func TestPartialObjectMetadata(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	want := createSettled(t, namespace, "box")
	list, err := env.metadata.Resource(v1beta1.SchemeGroupVersion.WithResource("sandboxes")).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 {
		t.Fatalf("got %d objects, want 1", len(list.Items))
	}
	if diff := cmp.Diff(want.ObjectMeta, list.Items[0].ObjectMeta); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	want := createSettled(t, namespace, "box")
	for include, check := range map[metav1.IncludeObjectPolicy]func(raw []byte) bool{
		metav1.IncludeNone: func(raw []byte) bool { return len(raw) == 0 || string(raw) == "null" },
		metav1.IncludeMetadata: func(raw []byte) bool {
			var got metav1.PartialObjectMetadata
			return json.Unmarshal(raw, &got) == nil && got.Kind == "PartialObjectMetadata" && got.UID == want.UID
		},
		metav1.IncludeObject: func(raw []byte) bool {
			var got v1beta1.Sandbox
			return json.Unmarshal(raw, &got) == nil && got.Kind == "Sandbox" && cmp.Equal(got.Spec, want.Spec)
		},
	} {
		t.Run(string(include), func(t *testing.T) {
			var table metav1.Table
			data, err := restClient().Get().Namespace(namespace).Resource("sandboxes").Param("includeObject", string(include)).
				SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(t.Context()).Raw()
			if err == nil {
				err = json.Unmarshal(data, &table)
			}
			if err != nil {
				t.Fatal(err)
			}
			if table.Kind != "Table" || len(table.Rows) != 1 || table.ResourceVersion == "" {
				t.Fatalf("got %s", data)
			}
			if raw := table.Rows[0].Object.Raw; !check(raw) {
				t.Errorf("the row carries %s", raw)
			}
		})
	}
}

func TestWatchResourceVersions(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	// The third event is a deletion, so that a replay of states would differ from one of events.
	first := create(t, namespace, framework.NewSandbox("first", framework.Suspended))
	awaitCondition(t, namespace, "first", v1beta1.SandboxConditionSuspended)
	second := create(t, namespace, framework.NewSandbox("second", framework.Suspended))
	if err := sandboxes(namespace).Delete(t.Context(), "second", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		options metav1.ListOptions
		want    []string // the events of "first" and "second", without modifications
	}{
		"the present state, then changes":     {metav1.ListOptions{}, []string{"ADDED first"}},
		"any state, then changes":             {metav1.ListOptions{ResourceVersion: "0"}, []string{"ADDED first"}},
		"changes after the creation":          {metav1.ListOptions{ResourceVersion: first.ResourceVersion}, []string{"ADDED second", "DELETED second"}},
		"changes after the second creation":   {metav1.ListOptions{ResourceVersion: second.ResourceVersion}, []string{"DELETED second"}},
		"changes of one, by its name":         {metav1.ListOptions{ResourceVersion: first.ResourceVersion, FieldSelector: "metadata.name=first"}, nil},
		"changes of one that is not there":    {metav1.ListOptions{FieldSelector: "metadata.name=third"}, nil},
		"changes of those with another label": {metav1.ListOptions{LabelSelector: "a=b"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			watcher, err := sandboxes(namespace).Watch(t.Context(), test.options)
			if err != nil {
				t.Fatal(err)
			}
			defer watcher.Stop()
			// What comes after everything that is to be seen.
			marker := framework.NewSandbox("marker-", framework.Suspended, func(s *v1beta1.Sandbox) {
				s.Labels = map[string]string{"a": "b"}
				s.Name, s.GenerateName = "", s.Name
			})
			if test.options.FieldSelector != "" {
				marker.Name = test.options.FieldSelector[len("metadata.name="):]
			}
			var got []string
			if marker.Name == "first" {
				if _, err := mergePatch(t.Context(), namespace, "first", `{"metadata":{"labels":{"marked":"yes"}}}`); err != nil {
					t.Fatal(err)
				}
			} else {
				marker.Name = create(t, namespace, marker).Name
				defer func() {
					if err := sandboxes(namespace).Delete(t.Context(), marker.Name, metav1.DeleteOptions{}); err != nil {
						t.Error(err)
					}
				}()
			}
			for {
				event := nextEvent(t, watcher)
				sandbox := asSandbox(t, event.Object)
				if sandbox.Name == marker.Name && (sandbox.Name != "first" || sandbox.Labels["marked"] == "yes") {
					break
				}
				if event.Type != watch.Modified && (sandbox.Name == "first" || sandbox.Name == "second") {
					got = append(got, fmt.Sprintf("%s %s", event.Type, sandbox.Name))
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWatchResumes proves that a watch continues after the version it is given: nothing twice, nothing lost.
func TestWatchResumes(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	list, err := sandboxes(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var versions []string
	for i := range 3 {
		versions = append(versions, create(t, namespace, framework.NewSandbox(fmt.Sprintf("box-%d", i), framework.Suspended)).ResourceVersion)
	}
	for start, resourceVersion := range append([]string{list.ResourceVersion}, versions[:2]...) {
		watcher, err := sandboxes(namespace).Watch(t.Context(), metav1.ListOptions{ResourceVersion: resourceVersion})
		if err != nil {
			t.Fatal(err)
		}
		for want := start; want < len(versions); {
			event := nextEvent(t, watcher)
			if event.Type != watch.Added {
				continue // The controller writes the status.
			}
			if got := asSandbox(t, event.Object); got.ResourceVersion != versions[want] {
				t.Fatalf("after %s: got %s at %s, want box-%d at %s", resourceVersion, got.Name, got.ResourceVersion, want, versions[want])
			}
			want++
		}
		watcher.Stop()
	}
}

func TestWatchList(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	want := map[string]bool{}
	for i := range 3 {
		want[create(t, namespace, framework.NewSandbox(fmt.Sprintf("box-%d", i), framework.Suspended)).Name] = true
	}
	send := true
	watcher, err := sandboxes(namespace).Watch(t.Context(), metav1.ListOptions{
		SendInitialEvents: &send, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	got := map[string]bool{}
	for {
		event := nextEvent(t, watcher)
		sandbox := asSandbox(t, event.Object)
		if event.Type == watch.Bookmark {
			if sandbox.Annotations[metav1.InitialEventsAnnotationKey] != "true" {
				t.Errorf("the first bookmark does not mark the end of the initial events: %v", sandbox.Annotations)
			}
			break
		}
		if event.Type == watch.Added {
			got[sandbox.Name] = true
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("initial events (-want +got):\n%s", diff)
	}
}

func TestWatchBookmarks(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	settled := createSettled(t, namespace, "box")
	// One is sent shortly before the end of a watch, so that clients resume at a recent version.
	seconds := int64(5)
	watcher, err := sandboxes(namespace).Watch(t.Context(), metav1.ListOptions{
		ResourceVersion: settled.ResourceVersion, AllowWatchBookmarks: true, TimeoutSeconds: &seconds,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	if event := nextEvent(t, watcher); event.Type != watch.Bookmark || asSandbox(t, event.Object).ResourceVersion == "" {
		t.Errorf("got %s %+v, want a bookmark with a resourceVersion", event.Type, event.Object)
	}
}

func TestWatchTooOld(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	settled := createSettled(t, namespace, "box")
	client, err := env.etcd()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var revision int64
	if _, err := fmt.Sscan(settled.ResourceVersion, &revision); err != nil {
		t.Fatal(err)
	}
	// Another test may have compacted to a later revision, which does as well.
	if _, err := client.Compact(t.Context(), revision); err != nil {
		t.Logf("compacting: %v", err)
	}
	watcher, err := sandboxes(namespace).Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1"})
	if err != nil {
		checkStatusError(t, err, 410, "too old resource version")
		return
	}
	defer watcher.Stop()
	event := nextEvent(t, watcher)
	status, ok := event.Object.(*metav1.Status)
	if event.Type != watch.Error || !ok || status.Code != 410 || status.Reason != metav1.StatusReasonExpired {
		t.Errorf("got %s %+v, want an error of code 410 and reason Expired", event.Type, event.Object)
	}
}
