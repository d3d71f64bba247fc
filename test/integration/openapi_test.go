// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// documented is what a document of OpenAPI v3 must have.
type documented struct {
	// methods are those of paths in a namespace.
	methods map[string][]string
	kinds   []string
}

func TestOpenAPIV3(t *testing.T) {
	t.Parallel()
	for group, want := range map[string]documented{
		"agents.x-k8s.io": {
			methods: map[string][]string{
				"sandboxes":                {"get", "post", "delete"},
				"sandboxes/{name}":         {"get", "put", "patch", "delete"},
				"sandboxes/{name}/status":  {"get", "put", "patch"},
				"sandboxes/{name}/suspend": {"post"},
				"sandboxes/{name}/resume":  {"post"},
				"sandboxes/{name}/exec":    {"get", "post"},
			},
			kinds: []string{"Sandbox", "SandboxList", "SandboxSuspend", "SandboxResume"},
		},
		"extensions.agents.x-k8s.io": {
			methods: map[string][]string{
				"sandboxclaims":                  {"get", "post", "delete"},
				"sandboxclaims/{name}":           {"get", "put", "patch", "delete"},
				"sandboxclaims/{name}/status":    {"get", "put", "patch"},
				"sandboxclaims/{name}/bind":      {"post"},
				"sandboxtemplates":               {"get", "post", "delete"},
				"sandboxtemplates/{name}":        {"get", "put", "patch", "delete"},
				"sandboxwarmpools":               {"get", "post", "delete"},
				"sandboxwarmpools/{name}":        {"get", "put", "patch", "delete"},
				"sandboxwarmpools/{name}/status": {"get", "put", "patch"},
				"sandboxwarmpools/{name}/scale":  {"get", "put", "patch"},
			},
			kinds: []string{
				"SandboxClaim", "SandboxClaimList", "SandboxClaimBind", "SandboxTemplate", "SandboxTemplateList", "SandboxWarmPool", "SandboxWarmPoolList",
			},
		},
	} {
		t.Run(group, func(t *testing.T) {
			t.Parallel()
			checkOpenAPIV3(t, group, want)
		})
	}
}

// checkOpenAPIV3 fails the test unless the document of a group has what is wanted, and describes every field of its kinds.
func checkOpenAPIV3(t *testing.T, group string, want documented) {
	t.Helper()
	var document struct {
		Paths      map[string]map[string]json.RawMessage
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct{ Description string }
				GVKs       []struct{ Group, Version, Kind string } `json:"x-kubernetes-group-version-kind"`
			}
		}
	}
	raw := mustKubectl(t, "default", "", "get", "--raw", "/openapi/v3/apis/"+group+"/v1beta1")
	if err := json.Unmarshal([]byte(raw), &document); err != nil {
		t.Fatal(err)
	}
	for path, methods := range want.methods {
		path = "/apis/" + group + "/v1beta1/namespaces/{namespace}/" + path
		for _, method := range methods {
			if _, ok := document.Paths[path][method]; !ok {
				t.Errorf("there is no operation %s %s", method, path)
			}
		}
	}
	kinds := map[string]bool{}
	for name, schema := range document.Components.Schemas {
		for _, gvk := range schema.GVKs {
			kinds[gvk.Group+"/"+gvk.Version+" "+gvk.Kind] = true
		}
		if strings.Contains(name, "sandbox-apiserver") || strings.Contains(name, "agents") {
			for property, described := range schema.Properties {
				if described.Description == "" {
					t.Errorf("property %s of %s has no description", property, name)
				}
			}
		}
	}
	for _, kind := range want.kinds {
		if !kinds[group+"/v1beta1 "+kind] {
			t.Errorf("no schema is that of the kind %s", kind)
		}
	}
}

// TestOpenAPIV2 asks for the document of the whole cluster, in protobuf, as clients of old do.
func TestOpenAPIV2(t *testing.T) {
	t.Parallel()
	eventually(t, "Sandbox in the aggregated OpenAPI v2 document", func(context.Context) error {
		document, err := env.kube.Discovery().OpenAPISchema()
		if err != nil {
			return err
		}
		for _, definition := range document.GetDefinitions().GetAdditionalProperties() {
			for _, extension := range definition.GetValue().GetVendorExtension() {
				text := extension.GetValue().GetYaml()
				if extension.GetName() == "x-kubernetes-group-version-kind" && strings.Contains(text, "group: agents.x-k8s.io") && strings.Contains(text, "kind: Sandbox\n") {
					return nil
				}
			}
		}
		return errors.New("it is in no definition")
	})
}
