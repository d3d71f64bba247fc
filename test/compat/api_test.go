// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

// raw returns what a server answered, as it is on the wire.
func raw(t *tester, result rest.Result) map[string]any {
	t.Helper()
	if err := result.Error(); err != nil {
		t.Fatal(err)
	}
	data, err := result.Raw()
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(data, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// at returns the value at a path, or nil.
func at(object map[string]any, path ...string) any {
	value, _, err := unstructured.NestedFieldNoCopy(object, path...)
	if err != nil {
		return nil
	}
	return value
}

// TestFields has the rules of the fields of Sandbox: defaults, required ones, values and what may change.
func TestFields(t *testing.T) {
	runRows(t,
		row{id: "defaults", rule: "operatingMode and shutdownPolicy default to Running and Retain, absent or null; service stays unset", run: func(t *tester) {
			namespace := newNamespace(t)
			for name, members := range map[string][]string{
				"absent": {podTemplate()},
				"null":   {podTemplate(), `"operatingMode":null`, `"shutdownPolicy":null`, `"service":null`, `"shutdownTime":null`},
			} {
				spec, _ := raw(t, post(t, namespace, body(name, members...)))["spec"].(map[string]any)
				if spec["operatingMode"] != "Running" || spec["shutdownPolicy"] != "Retain" {
					t.Errorf("%s: got %v", name, spec)
				}
				for _, key := range []string{"service", "shutdownTime", "volumeClaimTemplates"} {
					if value, set := spec[key]; set {
						t.Errorf("%s: %s is %v, want it unset", name, key, value)
					}
				}
			}
		}},
		row{id: "pod-schema-defaults", rule: "only the defaults that the schema of a Pod spells out are set; none that Pods get when they are made", run: func(t *tester) {
			namespace := newNamespace(t)
			object := raw(t, post(t, namespace, body("box", podTemplate(
				`"volumes":[{"name":"i","iscsi":{"targetPortal":"192.0.2.1","iqn":"iqn.2001-04.com.example:a","lun":0}},{"name":"r","rbd":{"monitors":["192.0.2.1"],"image":"a"}}]`,
				`"initContainers":[{"name":"first","image":"a","ports":[{"containerPort":80}],"livenessProbe":{"grpc":{"port":80}},"restartPolicy":"Always"}]`)), "dryRun", "All"))
			pod, _ := at(object, "spec", "podTemplate", "spec").(map[string]any)
			encoded, err := json.Marshal(pod)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{`"protocol":"TCP"`, `"service":""`, `"iscsiInterface":"default"`, `"keyring":"/etc/ceph/keyring"`, `"pool":"rbd"`, `"user":"admin"`} {
				if !strings.Contains(string(encoded), want) {
					t.Errorf("no %s in %s", want, encoded)
				}
			}
			for _, key := range []string{"dnsPolicy", "terminationGracePeriodSeconds", "securityContext", "schedulerName"} {
				if value, set := pod[key]; set {
					t.Errorf("%s is %v, want it unset", key, value)
				}
			}
			for _, unwanted := range []string{"imagePullPolicy", "periodSeconds", "terminationMessagePath"} {
				if strings.Contains(string(encoded), unwanted) {
					t.Errorf("%s is defaulted in %s", unwanted, encoded)
				}
			}
		}},
		row{id: "empty-objects", rule: "the empty objects that Go clients write are accepted", run: func(t *tester) {
			err := post(t, newNamespace(t), `{"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox","metadata":{"name":"box","creationTimestamp":null},"spec":{
				"podTemplate":{"metadata":{},"spec":{"containers":[{"name":"main","image":"a","resources":{}}]}},
				"volumeClaimTemplates":[{"metadata":{"name":"data"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}]},"status":{}}`,
				"fieldValidation", "Strict", "dryRun", "All").Error()
			if err != nil {
				t.Error(err)
			}
		}},
		row{id: "required", rule: "a Sandbox without spec, podTemplate, its spec or its containers is refused: Invalid", run: func(t *tester) {
			namespace := newNamespace(t)
			for what, spec := range map[string]string{"spec": ``, "podTemplate": `,"spec":{}`, "podTemplate.spec": `,"spec":{"podTemplate":{}}`, "containers": `,"spec":{"podTemplate":{"spec":{}}}`} {
				err := post(t, namespace, `{"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox","metadata":{"name":"box"}`+spec+`}`, "dryRun", "All").Error()
				refused(t, what, err, invalid, "Required value")
			}
		}},
		row{id: "enums", rule: "values that are not of an enum are refused with those that are", run: func(t *tester) {
			namespace := newNamespace(t)
			refused(t, "operatingMode", createError(t, namespace, "box", with(func(s *v1beta1.SandboxSpec) { s.OperatingMode = "Paused" })),
				invalid, "spec.operatingMode: Unsupported value", `"Running"`, `"Suspended"`)
			refused(t, "shutdownPolicy", createError(t, namespace, "box", with(func(s *v1beta1.SandboxSpec) { s.ShutdownPolicy = new(v1beta1.ShutdownPolicy("Archive")) })),
				invalid, "spec.shutdownPolicy: Unsupported value", `"Delete"`, `"Retain"`)
		}},
		row{id: "types", rule: "values of a wrong type are refused", run: func(t *tester) {
			namespace := newNamespace(t)
			for _, member := range []string{`"operatingMode":1`, `"service":"true"`, `"shutdownTime":"tomorrow"`, `"volumeClaimTemplates":{}`} {
				refused(t, member, post(t, namespace, body("box", podTemplate(), member), "dryRun", "All").Error(), malformed)
			}
		}},
		row{id: "volume-claim-templates-immutable", rule: "volumeClaimTemplates can be neither changed, nor removed, nor added", run: func(t *tester) {
			namespace := newNamespace(t)
			create(t, namespace, "some", framework.Suspended, framework.WithVolume("data"))
			create(t, namespace, "none", framework.Suspended)
			const other = `[{"metadata":{"name":"data"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"2Gi"}}}}]`
			for what, test := range map[string]struct{ name, value string }{
				"changed": {"some", other}, "removed": {"some", "null"}, "emptied": {"some", "[]"}, "added": {"none", other},
				"labelled": {"some", `[{"metadata":{"name":"data","labels":{"a":"b"}},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"16Mi"}}}}]`},
			} {
				_, err := tryPatch(t, namespace, test.name, `{"spec":{"volumeClaimTemplates":`+test.value+`}}`)
				refused(t, what, err, invalid, "volumeClaimTemplates is immutable")
			}
		}},
		row{id: "volume-claim-templates-empty", rule: "an empty list of volumeClaimTemplates where there was none is no change",
			beyond: "objects are stored in protobuf, which has no empty lists; a schema tells the two apart, for no use", run: func(t *tester) {
				namespace := newNamespace(t)
				before := create(t, namespace, "box", framework.Suspended)
				if after := patch(t, namespace, "box", `{"spec":{"volumeClaimTemplates":[]}}`); after.Generation != before.Generation {
					t.Errorf("generation went from %d to %d", before.Generation, after.Generation)
				}
			}},
		row{id: "everything-else-mutable", rule: "podTemplate, service, shutdownTime, shutdownPolicy and operatingMode can change at any time", run: func(t *tester) {
			namespace := newNamespace(t)
			create(t, namespace, "box", unscheduled)
			for i, change := range []string{
				`{"spec":{"podTemplate":{"spec":{"containers":[{"name":"other","image":"example.com/other"}]}}}}`, `{"spec":{"service":true}}`, `{"spec":{"service":null}}`,
				`{"spec":{"shutdownTime":"2100-01-01T00:00:00Z","shutdownPolicy":"Delete"}}`, `{"spec":{"operatingMode":"Suspended"}}`, `{"spec":{"operatingMode":"Running"}}`,
			} {
				if got := patch(t, namespace, "box", change).Generation; got != int64(i+2) {
					t.Errorf("%s: generation is %d, want %d", change, got, i+2)
				}
			}
		}},
		row{id: "names", rule: "the name is a DNS subdomain of up to 253 characters", run: func(t *tester) {
			namespace := newNamespace(t)
			for _, name := range []string{"a", "0", "a.b", strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("a.", 126) + "a"} {
				if err := createError(t, namespace, name); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			for _, name := range []string{"A", "a_b", "-a", "a-", "a.", "a..b", strings.Repeat("a", 254)} {
				refused(t, name, createError(t, namespace, name), invalid, "metadata.name: Invalid value")
			}
			refused(t, "no name", createError(t, namespace, ""), invalid, "name or generateName is required")
		}},
		row{id: "quantities", rule: "quantities may be numbers or strings, and keep their value", run: func(t *tester) {
			sandbox := &v1beta1.Sandbox{}
			if err := post(t, newNamespace(t), body("box", container(`"resources":{"limits":{"cpu":2,"memory":"1024Mi"}}`)), "dryRun", "All").Into(sandbox); err != nil {
				t.Fatal(err)
			}
			limits := sandbox.Spec.PodTemplate.Spec.Containers[0].Resources.Limits
			if !limits.Cpu().Equal(resource.MustParse("2")) || !limits.Memory().Equal(resource.MustParse("1Gi")) {
				t.Errorf("got %v", limits)
			}
		}},
	)
}

// listKeys are lists whose entries are told apart by a key, with one key twice.
var listKeys = map[string]string{
	"containers":                `"podTemplate":{"spec":{"containers":[{"name":"a","image":"a"},{"name":"a","image":"b"}]}}`,
	"initContainers":            podTemplate(`"initContainers":[{"name":"a","image":"a"},{"name":"a","image":"b"}]`),
	"volumes":                   podTemplate(`"volumes":[{"name":"a","emptyDir":{}},{"name":"a","emptyDir":{}}]`),
	"imagePullSecrets":          podTemplate(`"imagePullSecrets":[{"name":"a"},{"name":"a"}]`),
	"hostAliases":               podTemplate(`"hostAliases":[{"ip":"192.0.2.1","hostnames":["a"]},{"ip":"192.0.2.1","hostnames":["b"]}]`),
	"topologySpreadConstraints": podTemplate(`"topologySpreadConstraints":[{"topologyKey":"a","whenUnsatisfiable":"DoNotSchedule","maxSkew":1},{"topologyKey":"a","whenUnsatisfiable":"DoNotSchedule","maxSkew":2}]`),
	"ports":                     container(`"ports":[{"containerPort":80,"name":"a"},{"containerPort":80,"name":"b"}]`),
	"env":                       container(`"env":[{"name":"A","value":"1"},{"name":"A","value":"2"}]`),
	"volumeMounts":              `"podTemplate":{"spec":{"volumes":[{"name":"v","emptyDir":{}}],"containers":[{"name":"a","image":"a","volumeMounts":[{"name":"v","mountPath":"/a"},{"name":"v","mountPath":"/a"}]}]}}`,
	"volumeDevices":             `"podTemplate":{"spec":{"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"v"}}],"containers":[{"name":"a","image":"a","volumeDevices":[{"name":"v","devicePath":"/a"},{"name":"v","devicePath":"/a"}]}]}}`,
}

// TestListKeys has a row for each list of a Pod that is merged by key.
func TestListKeys(t *testing.T) {
	var rows []row
	for name, members := range listKeys {
		rows = append(rows, row{id: name, rule: "a key that is twice in " + name + " is refused", run: func(t *tester) {
			refused(t, name, post(t, newNamespace(t), body("box", members), "dryRun", "All").Error(), invalid, name+"[")
		}})
	}
	rows = append(rows,
		row{id: "ports-of-two-protocols", rule: "one port number on two protocols is two entries", run: func(t *tester) {
			err := post(t, newNamespace(t), body("box", container(`"ports":[{"containerPort":80},{"containerPort":80,"protocol":"UDP"}]`)), "dryRun", "All").Error()
			if err != nil {
				t.Error(err)
			}
		}})
	runRows(t, rows...)
}

// TestWrites has the rules for requests that write.
func TestWrites(t *testing.T) {
	runRows(t,
		row{id: "status-in-main", rule: "the main resource ignores the status of POST, PUT and PATCH", run: func(t *tester) {
			namespace := newNamespace(t)
			forge := func(s *v1beta1.Sandbox) { s.Status.NodeName = "forged" }
			if created := create(t, namespace, "box", framework.Suspended, forge); created.Status.NodeName != "" {
				t.Errorf("POST: status is %+v", created.Status)
			}
			sandbox := await(t, namespace, "box", suspended())
			forge(sandbox)
			updated, err := sandboxes(namespace).Update(t.Context(), sandbox, metav1.UpdateOptions{})
			if err != nil || updated.Status.NodeName != "" {
				t.Errorf("PUT: %v, status is %+v", err, updated.Status)
			}
			if patched := patch(t, namespace, "box", `{"status":{"nodeName":"forged"}}`); patched.Status.NodeName != "" {
				t.Errorf("PATCH: status is %+v", patched.Status)
			}
		}},
		row{id: "main-in-status", rule: "the status subresource ignores everything but the status", run: func(t *tester) {
			namespace := newNamespace(t)
			create(t, namespace, "box", framework.Suspended)
			before := await(t, namespace, "box", suspended())
			after := patch(t, namespace, "box", `{"metadata":{"labels":{"a":"b"},"finalizers":["example.com/f"]},"spec":{"operatingMode":"Running"},"status":{"nodeName":"forged"}}`, "status")
			if after.Status.NodeName != "forged" {
				t.Errorf("the status was not written: %+v", after.Status)
			}
			if diff := cmp.Diff(before.Spec, after.Spec); diff != "" || len(after.Labels)+len(after.Finalizers) != 0 || after.Generation != before.Generation {
				t.Errorf("labels %v, finalizers %v, generation %d; spec (-before +after):\n%s", after.Labels, after.Finalizers, after.Generation, diff)
			}
		}},
		row{id: "status-conditions", rule: "conditions that break their schema are refused", run: func(t *tester) {
			namespace := newNamespace(t)
			create(t, namespace, "box", framework.Suspended)
			const condition = `{"type":%q,"status":%q,"reason":%q,"message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}`
			for what, entry := range map[string]string{
				"status": fmt.Sprintf(condition, "Ready", "Perhaps", "Why"),
				"reason": fmt.Sprintf(condition, "Ready", "True", ""),
				"type":   fmt.Sprintf(condition, "not a name", "True", "Why"),
			} {
				_, err := tryPatch(t, namespace, "box", `{"status":{"conditions":[`+entry+`]}}`, "status")
				refused(t, what, err, invalid, "status.conditions[0]."+what)
			}
		}},
		row{id: "generation", rule: "the generation begins at 1 and grows with each change of the spec, and with nothing else", run: func(t *tester) {
			namespace := newNamespace(t)
			if got := create(t, namespace, "box", framework.Suspended, func(s *v1beta1.Sandbox) { s.Generation = 9 }).Generation; got != 1 {
				t.Errorf("at creation it is %d", got)
			}
			for _, test := range []struct {
				patch, subresource string
				want               int64
			}{
				{`{"metadata":{"labels":{"a":"b"}}}`, "", 1}, {`{"metadata":{"generation":5}}`, "", 1}, {`{"spec":{"operatingMode":"Suspended"}}`, "", 1},
				{`{"spec":{"podTemplate":{"metadata":{"labels":{"a":"b"}}}}}`, "", 2}, {`{"status":{"nodeName":"n"}}`, "status", 2},
			} {
				var subresources []string
				if test.subresource != "" {
					subresources = []string{test.subresource}
				}
				if got := patch(t, namespace, "box", test.patch, subresources...).Generation; got != test.want {
					t.Errorf("after %s it is %d, want %d", test.patch, got, test.want)
				}
			}
		}},
		row{id: "unknown-fields", rule: "unknown fields are pruned: in silence, with a warning, or not at all but refused, as the request wants", run: func(t *tester) {
			namespace := newNamespace(t)
			for mode, warnings := range map[string]int{"Ignore": 0, "Warn": 1} {
				result := post(t, namespace, body("box", podTemplate(), `"bogus":1`), "fieldValidation", mode, "dryRun", "All")
				if got := len(result.Warnings()); got != warnings {
					t.Errorf("%s: %d warnings, want %d", mode, got, warnings)
				}
				if value := at(raw(t, result), "spec", "bogus"); value != nil {
					t.Errorf("%s: the field is %v, want it pruned", mode, value)
				}
			}
			refused(t, "Strict", post(t, namespace, body("box", podTemplate(), `"bogus":1`), "fieldValidation", "Strict", "dryRun", "All").Error(), []int32{400}, `unknown field "spec.bogus"`)
			refused(t, "twice", post(t, namespace, body("box", podTemplate(), `"service":true,"service":false`), "fieldValidation", "Strict", "dryRun", "All").Error(), []int32{400}, `duplicate field "spec.service"`)
			refused(t, "metadata of the Pod", post(t, namespace, body("box", `"podTemplate":{"metadata":{"name":"a"},"spec":{"containers":[{"name":"a","image":"a"}]}}`),
				"fieldValidation", "Strict", "dryRun", "All").Error(), []int32{400}, `unknown field "spec.podTemplate.metadata.name"`)
		}},
		row{id: "patches", rule: "JSON patch, JSON merge patch and server-side apply are served", run: func(t *tester) {
			namespace := newNamespace(t)
			create(t, namespace, "box", framework.Suspended)
			force := true
			for kind, data := range map[types.PatchType]string{
				types.JSONPatchType:  `[{"op":"add","path":"/metadata/labels","value":{"json":"yes"}}]`,
				types.MergePatchType: `{"metadata":{"annotations":{"merge":"yes"}}}`,
				types.ApplyPatchType: `{"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox","metadata":{"name":"box"},"spec":{"service":false}}`,
			} {
				options := metav1.PatchOptions{FieldManager: "compat"}
				if kind == types.ApplyPatchType {
					options.Force = &force
				}
				if _, err := sandboxes(namespace).Patch(t.Context(), "box", kind, []byte(data), options); err != nil {
					t.Errorf("%s: %v", kind, err)
				}
			}
			if got := get(t, namespace, "box"); got.Labels["json"] != "yes" || got.Annotations["merge"] != "yes" || got.Spec.Service == nil {
				t.Errorf("got %+v", got)
			}
		}},
		row{id: "apply-merges-containers-by-name", rule: "in server-side apply containers are merged by name, and conditions are one value", run: func(t *tester) {
			namespace := newNamespace(t)
			apply := func(manager, body string, subresources ...string) *v1beta1.Sandbox {
				t.Helper()
				// The controller owns the conditions.
				options := metav1.PatchOptions{FieldManager: manager, Force: new(len(subresources) > 0)}
				applied, err := sandboxes(namespace).Patch(t.Context(), "box", types.ApplyPatchType, []byte(body), options, subresources...)
				if err != nil {
					t.Fatalf("%s: %v", manager, err)
				}
				return applied
			}
			const head = `{"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox","metadata":{"name":"box"},"spec":{`
			apply("one", head+`"operatingMode":"Suspended","podTemplate":{"spec":{"containers":[{"name":"a","image":"a"},{"name":"b","image":"b"}]}}}}`)
			sandbox := apply("two", head+`"podTemplate":{"spec":{"containers":[{"name":"b","workingDir":"/b"}]}}}}`)
			containers := sandbox.Spec.PodTemplate.Spec.Containers
			if len(containers) != 2 || containers[1].Image != "b" || containers[1].WorkingDir != "/b" {
				t.Errorf("containers are %+v", containers)
			}
			if got := owned(t, sandbox, "two"); !got.Has(fieldpath.MakePathOrDie("spec", "podTemplate", "spec", "containers", fieldpath.KeyByFields("name", "b"), "workingDir")) {
				t.Errorf("the second manager owns %s", got)
			}
			sandbox = apply("three", `{"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox","metadata":{"name":"box"},"status":{"conditions":[{"type":"Odd","status":"True","reason":"Why","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, "status")
			if got := owned(t, sandbox, "three"); !got.Has(fieldpath.MakePathOrDie("status", "conditions")) {
				t.Errorf("the manager of the status owns %s, want all conditions as one", got)
			}
		}},
		row{id: "update-preconditions", rule: "PUT with an old resourceVersion is a Conflict, without one it is Invalid, of what is not there NotFound", run: func(t *tester) {
			namespace := newNamespace(t)
			create(t, namespace, "box", framework.Suspended)
			await(t, namespace, "box", suspended())
			for what, test := range map[string]struct {
				change func(*v1beta1.Sandbox)
				codes  []int32
			}{
				"old":     {func(s *v1beta1.Sandbox) { s.ResourceVersion = "1" }, conflict},
				"none":    {func(s *v1beta1.Sandbox) { s.ResourceVersion = "" }, invalid},
				"missing": {func(s *v1beta1.Sandbox) { s.Name, s.UID = "other", "" }, []int32{404}},
			} {
				sandbox := get(t, namespace, "box")
				test.change(sandbox)
				_, err := sandboxes(namespace).Update(t.Context(), sandbox, metav1.UpdateOptions{})
				refused(t, what, err, test.codes)
			}
		}},
		row{id: "dry-run", rule: "a dry run answers as the request would, and stores nothing", run: func(t *tester) {
			namespace := newNamespace(t)
			if err := createError(t, namespace, "box"); err != nil {
				t.Fatal(err)
			}
			_, err := sandboxes(namespace).Get(t.Context(), "box", metav1.GetOptions{})
			refused(t, "get", err, []int32{404})
		}},
		row{id: "managed-fields", rule: "managedFields tell who wrote what, the controller's writes of the status included", run: func(t *tester) {
			namespace := newNamespace(t)
			_, err := sandboxes(namespace).Create(t.Context(), framework.NewSandbox("box", framework.Suspended), metav1.CreateOptions{FieldManager: "compat"})
			if err != nil {
				t.Fatal(err)
			}
			sandbox := await(t, namespace, "box", suspended())
			if !owned(t, sandbox, "compat").Has(fieldpath.MakePathOrDie("spec", "operatingMode")) {
				t.Errorf("the creator does not own operatingMode in %+v", sandbox.ManagedFields)
			}
			if !slices.ContainsFunc(sandbox.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.Subresource == "status" }) {
				t.Errorf("nobody owns the status in %+v", sandbox.ManagedFields)
			}
		}},
		row{id: "generate-name", rule: "generateName is cut to 58 characters and gets five at random", run: func(t *tester) {
			namespace := newNamespace(t)
			prefix := strings.Repeat("a", 70)
			sandbox := create(t, namespace, "", framework.Suspended, func(s *v1beta1.Sandbox) { s.GenerateName = prefix })
			if len(sandbox.Name) != 63 || !strings.HasPrefix(sandbox.Name, prefix[:58]) {
				t.Errorf("the name is %s", sandbox.Name)
			}
		}},
		row{id: "create-twice", rule: "a name that is taken is AlreadyExists", run: func(t *tester) {
			namespace := newNamespace(t)
			create(t, namespace, "box", framework.Suspended)
			if err := createError(t, namespace, "box"); !apierrors.IsAlreadyExists(err) {
				t.Errorf("got %v", err)
			}
		}},
		row{id: "no-scale", rule: "there is no scale subresource", run: func(t *tester) {
			namespace := newNamespace(t)
			create(t, namespace, "box", framework.Suspended)
			err := env.agents.AgentsV1beta1().RESTClient().Get().Namespace(namespace).Resource("sandboxes").Name("box").SubResource("scale").Do(t.Context()).Error()
			refused(t, "scale", err, []int32{404})
		}},
	)
}

// owned returns all fields that a manager owns.
func owned(t *tester, sandbox *v1beta1.Sandbox, manager string) *fieldpath.Set {
	t.Helper()
	all := fieldpath.NewSet()
	for _, entry := range sandbox.ManagedFields {
		if entry.Manager != manager {
			continue
		}
		set := fieldpath.NewSet()
		if err := set.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			t.Fatal(err)
		}
		all = all.Union(set)
	}
	return all
}

// TestReads has the rules for requests that read, and for deletion.
func TestReads(t *testing.T) {
	runRows(t,
		row{id: "field-selectors", rule: "metadata.name and metadata.namespace select; any other field is refused", run: func(t *tester) {
			namespace := newNamespace(t)
			create(t, namespace, "one", framework.Suspended)
			create(t, namespace, "two", framework.Suspended)
			for selector, want := range map[string]int{"metadata.name=one": 1, "metadata.name!=one": 1, "metadata.namespace=" + namespace: 2, "metadata.name=three": 0} {
				list, err := sandboxes(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: selector})
				if err != nil || len(list.Items) != want {
					t.Errorf("%s: %v, %d sandboxes, want %d", selector, err, len(list.Items), want)
				}
			}
			_, err := sandboxes(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "spec.bogus=1"})
			refused(t, "list", err, []int32{400})
			refused(t, "deletecollection", sandboxes(namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "spec.bogus=1"}), []int32{400})
		}},
		row{id: "pages", rule: "a list is paged by limit and continue, and counts what remains", run: func(t *tester) {
			namespace := newNamespace(t)
			for i := range 3 {
				create(t, namespace, fmt.Sprintf("box-%d", i), framework.Suspended)
			}
			first, err := sandboxes(namespace).List(t.Context(), metav1.ListOptions{Limit: 1})
			if err != nil {
				t.Fatal(err)
			}
			if len(first.Items) != 1 || first.RemainingItemCount == nil || *first.RemainingItemCount != 2 {
				t.Fatalf("the first page has %d, and says %v remain", len(first.Items), first.RemainingItemCount)
			}
			second, err := sandboxes(namespace).List(t.Context(), metav1.ListOptions{Limit: 5, Continue: first.Continue})
			if err != nil || len(second.Items) != 2 || second.Continue != "" || second.Items[0].Name != "box-1" {
				t.Errorf("%v, the second page has %+v", err, second.ListMeta)
			}
		}},
		row{id: "watch-from-zero", rule: "a watch from resourceVersion 0, or none, begins with what there is", run: func(t *tester) {
			namespace := newNamespace(t)
			create(t, namespace, "box", framework.Suspended)
			await(t, namespace, "box", suspended())
			for _, version := range []string{"", "0"} {
				watcher, err := sandboxes(namespace).Watch(t.Context(), metav1.ListOptions{ResourceVersion: version, FieldSelector: "metadata.name=box"})
				if err != nil {
					t.Fatal(err)
				}
				if event := next(t, watcher); event.Type != watch.Added {
					t.Errorf("version %q: the first event is %s", version, event.Type)
				}
				watcher.Stop()
			}
		}},
		row{id: "watch-from-create", rule: "a watch from the version that create answered sees the Sandbox become what it becomes", run: func(t *tester) {
			namespace := newNamespace(t)
			created := create(t, namespace, "box", framework.Suspended)
			watcher, err := sandboxes(namespace).Watch(t.Context(), metav1.ListOptions{ResourceVersion: created.ResourceVersion, FieldSelector: "metadata.name=box"})
			if err != nil {
				t.Fatal(err)
			}
			defer watcher.Stop()
			for {
				event := next(t, watcher)
				sandbox, ok := event.Object.(*v1beta1.Sandbox)
				if !ok || event.Type != watch.Modified {
					t.Fatalf("got %s %+v", event.Type, event.Object)
				}
				if suspended()(sandbox) == nil {
					return
				}
			}
		}},
		row{id: "watch-list", rule: "sendInitialEvents ends with the bookmark that says so", run: func(t *tester) {
			namespace := newNamespace(t)
			create(t, namespace, "box", framework.Suspended)
			watcher, err := sandboxes(namespace).Watch(t.Context(), metav1.ListOptions{
				SendInitialEvents: new(true), AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
			})
			if err != nil {
				t.Fatal(err)
			}
			defer watcher.Stop()
			if event := next(t, watcher); event.Type != watch.Added {
				t.Errorf("the first event is %s", event.Type)
			}
			for {
				event := next(t, watcher)
				if sandbox, ok := event.Object.(*v1beta1.Sandbox); ok && event.Type == watch.Bookmark && sandbox.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
					return
				}
			}
		}},
		row{id: "delete-preconditions", rule: "a UID or resourceVersion that is not the object's is a Conflict", run: func(t *tester) {
			namespace := newNamespace(t)
			create(t, namespace, "box", framework.Suspended)
			for what, preconditions := range map[string]metav1.Preconditions{"uid": {UID: new(types.UID("other"))}, "resourceVersion": {ResourceVersion: new("1")}} {
				refused(t, what, sandboxes(namespace).Delete(t.Context(), "box", metav1.DeleteOptions{Preconditions: &preconditions}), conflict)
			}
		}},
		row{id: "delete-foreground", rule: "in foreground deletion the Sandbox stays, with the standard finalizer, until its Pod is gone", run: func(t *tester) {
			namespace := newNamespace(t)
			createWithPod(t, namespace, "box", podReady)
			release := holdPod(t, namespace, "box")
			if err := sandboxes(namespace).Delete(t.Context(), "box", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)}); err != nil {
				t.Fatal(err)
			}
			awaitPodIs(t, namespace, "box", func(pod *corev1.Pod) error {
				if pod.DeletionTimestamp == nil {
					return errors.New("it is not being deleted")
				}
				return nil
			})
			if sandbox := get(t, namespace, "box"); sandbox.DeletionTimestamp == nil || !slices.Contains(sandbox.Finalizers, metav1.FinalizerDeleteDependents) {
				t.Errorf("deleted at %v, finalizers %v", sandbox.DeletionTimestamp, sandbox.Finalizers)
			}
			release()
			awaitGone(t, "Sandbox", sandboxes(namespace).Get, "box")
		}},
		row{id: "delete-collection", rule: "deletecollection deletes what its selectors select", run: func(t *tester) {
			namespace := newNamespace(t)
			for i := range 4 {
				create(t, namespace, fmt.Sprintf("box-%d", i), framework.Suspended, func(s *v1beta1.Sandbox) { s.Labels = map[string]string{"half": fmt.Sprint(i % 2)} })
			}
			if err := sandboxes(namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "half=0"}); err != nil {
				t.Fatal(err)
			}
			list, err := sandboxes(namespace).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var left []string
			for _, sandbox := range list.Items {
				left = append(left, sandbox.Name)
			}
			if diff := cmp.Diff([]string{"box-1", "box-3"}, left); diff != "" {
				t.Errorf("what is left (-want +got):\n%s", diff)
			}
		}},
		row{id: "partial-metadata", rule: "PartialObjectMetadata is served to the garbage collector", run: func(t *tester) {
			namespace := newNamespace(t)
			sandbox := create(t, namespace, "box", framework.Suspended)
			data, err := env.agents.AgentsV1beta1().RESTClient().Get().Namespace(namespace).Resource("sandboxes").Name("box").
				SetHeader("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1").DoRaw(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var partial metav1.PartialObjectMetadata
			if err := json.Unmarshal(data, &partial); err != nil || partial.Kind != "PartialObjectMetadata" || partial.UID != sandbox.UID || bytes.Contains(data, []byte(`"spec"`)) {
				t.Errorf("%v, got %s", err, data)
			}
		}},
		row{id: "discovery", rule: "discovery has the names, the scope, the verbs and the status subresource", run: func(t *tester) {
			resources, err := env.kube.Discovery().ServerResourcesForGroupVersion(v1beta1.SchemeGroupVersion.String())
			if err != nil {
				t.Fatal(err)
			}
			found := map[string]metav1.APIResource{}
			for _, r := range resources.APIResources {
				found[r.Name] = r
			}
			r := found["sandboxes"]
			if r.Kind != "Sandbox" || r.SingularName != "sandbox" || !r.Namespaced || !slices.Contains(r.ShortNames, "sandbox") || len(r.Categories) != 0 {
				t.Errorf("got %+v", r)
			}
			for _, verb := range []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"} {
				if !slices.Contains(r.Verbs, verb) {
					t.Errorf("%s is not among the verbs %v", verb, r.Verbs)
				}
			}
			if status := found["sandboxes/status"]; status.Kind != "Sandbox" || !slices.Contains(status.Verbs, "patch") {
				t.Errorf("status is %+v", status)
			}
		}},
		row{id: "openapi", rule: "OpenAPI says the kind and the keys of the lists", run: func(t *tester) {
			data, err := env.kube.Discovery().RESTClient().Get().AbsPath("/openapi/v3/apis/agents.x-k8s.io/v1beta1").DoRaw(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{`"x-kubernetes-group-version-kind"`, `"x-kubernetes-list-map-keys":["name"]`, `"x-kubernetes-list-map-keys":["containerPort","protocol"]`} {
				if !bytes.Contains(data, []byte(want)) {
					t.Errorf("no %s", want)
				}
			}
		}},
		row{id: "columns", rule: "kubectl get shows Name, Ready, Reason and Age", run: func(t *tester) {
			namespace := newNamespace(t)
			create(t, namespace, "box", framework.Suspended)
			columns := columnsOf(table(t, env.agents.AgentsV1beta1().RESTClient(), namespace, "sandboxes"))
			if diff := cmp.Diff([]string{"Name", "Ready", "Reason", "Age"}, columns); diff != "" {
				t.Errorf("columns (-want +got):\n%s", diff)
			}
		}},
		row{id: "columns-of-conditions", rule: "Ready and Reason are those of the condition Ready", run: func(t *tester) {
			namespace := newNamespace(t)
			create(t, namespace, "box", framework.Suspended)
			await(t, namespace, "box", suspended())
			cells := table(t, env.agents.AgentsV1beta1().RESTClient(), namespace, "sandboxes").Rows[0].Cells
			if len(cells) < 4 || cells[0] != "box" || cells[1] != "False" || cells[2] != "SandboxSuspended" || !strings.HasSuffix(fmt.Sprint(cells[3]), "s") {
				t.Errorf("got %v", cells)
			}
		}},
		row{id: "columns-wide", rule: "the wide columns tell where a Sandbox is, what it is meant to be and when it expires",
			beyond: "a CRD has no wide columns here; who may read Sandboxes need not read Pods", run: func(t *tester) {
				namespace := newNamespace(t)
				createWithPod(t, namespace, "box", podReady)
				await(t, namespace, "box", ready())
				table := table(t, env.agents.AgentsV1beta1().RESTClient(), namespace, "sandboxes")
				cells := map[string]any{}
				for i, column := range table.ColumnDefinitions {
					cells[column.Name] = table.Rows[0].Cells[i]
				}
				if cells["Mode"] != "Running" || cells["IPs"] != "192.0.2.7,2001:db8::7" || cells["Node"] != "<none>" || cells["Expires"] != "<none>" {
					t.Errorf("got %v", cells)
				}
			}},
	)
}

// table returns the only object of a resource in a namespace as kubectl get asks for it.
func table(t *tester, client rest.Interface, namespace, resource string) *metav1.Table {
	t.Helper()
	data, err := client.Get().Namespace(namespace).Resource(resource).
		SetHeader("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	table := &metav1.Table{}
	if err := json.Unmarshal(data, table); err != nil || len(table.Rows) != 1 {
		t.Fatalf("%v, got %s", err, data)
	}
	return table
}

// columnsOf returns the columns that are shown without asking for more.
func columnsOf(table *metav1.Table) []string {
	var columns []string
	for _, column := range table.ColumnDefinitions {
		if column.Priority == 0 {
			columns = append(columns, column.Name)
		}
	}
	return columns
}
