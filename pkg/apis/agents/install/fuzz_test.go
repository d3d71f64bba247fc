// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/apigroup"
)

var group = apigroup.Group{Install: Install, Internal: agents.SchemeGroupVersion, Served: v1beta1.SchemeGroupVersion, Testdata: "../v1beta1/testdata"}

func FuzzDecodeJSON(f *testing.F) {
	group.FuzzDecode(f, runtime.ContentTypeJSON,
		`{"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox","spec":{"shutdownTime":"9999-12-31T23:59:59-01:00"}}`,
		`{"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox","spec":null,"metadata":{"creationTimestamp":null}}`)
}

func FuzzDecodeYAML(f *testing.F) {
	group.FuzzDecode(f, runtime.ContentTypeYAML,
		"apiVersion: agents.x-k8s.io/v1beta1\nkind: Sandbox\nmetadata: &a {name: a}\nspec: {podTemplate: {metadata: *a}}\n")
}

func FuzzDecodeProtobuf(f *testing.F) { group.FuzzDecode(f, runtime.ContentTypeProtobuf, "k8s\x00") }
