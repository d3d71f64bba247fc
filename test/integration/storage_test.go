// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
)

// keyPrefix is that of all keys of the server. It is frozen: another one would hide all stored objects.
const keyPrefix = "/registry/sandbox-apiserver/"

// storedResources says how to make an object of each served resource, and where it must be stored.
var storedResources = map[string]struct {
	create func(t *testing.T, namespace, name string)
	key    func(namespace, name string) string
	typ    runtime.TypeMeta
}{
	"agents.x-k8s.io/sandboxes": {
		create: func(t *testing.T, namespace, name string) { createSettled(t, namespace, name) },
		key: func(namespace, name string) string {
			return "/registry/sandbox-apiserver/agents.x-k8s.io/sandboxes/" + namespace + "/" + name
		},
		typ: runtime.TypeMeta{APIVersion: "agents.x-k8s.io/v1beta1", Kind: "Sandbox"},
	},
	"extensions.agents.x-k8s.io/sandboxclaims": {
		create: createOf("sandboxclaims"),
		key: func(namespace, name string) string {
			return "/registry/sandbox-apiserver/extensions.agents.x-k8s.io/sandboxclaims/" + namespace + "/" + name
		},
		typ: runtime.TypeMeta{APIVersion: "extensions.agents.x-k8s.io/v1beta1", Kind: "SandboxClaim"},
	},
	"extensions.agents.x-k8s.io/sandboxtemplates": {
		create: createOf("sandboxtemplates"),
		key: func(namespace, name string) string {
			return "/registry/sandbox-apiserver/extensions.agents.x-k8s.io/sandboxtemplates/" + namespace + "/" + name
		},
		typ: runtime.TypeMeta{APIVersion: "extensions.agents.x-k8s.io/v1beta1", Kind: "SandboxTemplate"},
	},
	"extensions.agents.x-k8s.io/sandboxwarmpools": {
		create: createOf("sandboxwarmpools"),
		key: func(namespace, name string) string {
			return "/registry/sandbox-apiserver/extensions.agents.x-k8s.io/sandboxwarmpools/" + namespace + "/" + name
		},
		typ: runtime.TypeMeta{APIVersion: "extensions.agents.x-k8s.io/v1beta1", Kind: "SandboxWarmPool"},
	},
}

// createOf returns what creates an object of a resource of the extensions group.
func createOf(resource string) func(t *testing.T, namespace, name string) {
	return func(t *testing.T, namespace, name string) {
		t.Helper()
		for _, k := range kinds() {
			if k.resource == resource {
				k.create(t, namespace, name)
			}
		}
	}
}

func TestStorage(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	etcd, err := env.etcd()
	if err != nil {
		t.Fatal(err)
	}
	defer etcd.Close()

	for _, resource := range servedResources(t) {
		stored, ok := storedResources[resource]
		if !ok {
			t.Errorf("resource %s is served, but this test does not say where it is to be stored", resource)
			continue
		}
		t.Run(resource, func(t *testing.T) {
			stored.create(t, namespace, "box")
			response, err := etcd.Get(t.Context(), stored.key(namespace, "box"))
			if err != nil {
				t.Fatal(err)
			}
			if len(response.Kvs) != 1 {
				t.Fatalf("there is nothing under %s", stored.key(namespace, "box"))
			}
			value, isProtobuf := bytes.CutPrefix(response.Kvs[0].Value, []byte("k8s\x00"))
			if !isProtobuf {
				t.Fatalf("the value is not protobuf: it begins with %q", value[:min(len(value), 16)])
			}
			var unknown runtime.Unknown
			if err := unknown.Unmarshal(value); err != nil {
				t.Fatal(err)
			}
			if unknown.TypeMeta != stored.typ {
				t.Errorf("stored as %+v, want %+v", unknown.TypeMeta, stored.typ)
			}
		})
	}
	t.Run("nothing else", func(t *testing.T) {
		response, err := etcd.Get(t.Context(), "", clientv3.WithPrefix(), clientv3.WithKeysOnly())
		if err != nil {
			t.Fatal(err)
		}
		for _, kv := range response.Kvs {
			if !isExpectedKey(string(kv.Key)) {
				t.Errorf("unexpected key %q", kv.Key)
			}
		}
	})
}

// isExpectedKey says whether a key belongs to a known resource, or is that of the fence, or of the compaction that every API server
// does.
func isExpectedKey(key string) bool {
	if key == "/sandbox-apiserver/identity" || key == "compact_rev_key" {
		return true
	}
	for resource := range storedResources {
		if strings.HasPrefix(key, keyPrefix+resource+"/") {
			return true
		}
	}
	return false
}

// servedResources returns the resources of our groups, without subresources.
func servedResources(t *testing.T) []string {
	t.Helper()
	_, lists, err := env.kube.Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	var resources []string
	for _, list := range lists {
		group, _, _ := strings.Cut(list.GroupVersion, "/")
		if group != v1beta1.GroupName && !strings.HasSuffix(group, "."+v1beta1.GroupName) {
			continue
		}
		for _, resource := range list.APIResources {
			if !strings.Contains(resource.Name, "/") {
				resources = append(resources, group+"/"+resource.Name)
			}
		}
	}
	if len(resources) == 0 {
		t.Fatal("discovery has no resource of our groups")
	}
	return resources
}
