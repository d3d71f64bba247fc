// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/apigroup"
)

var group = apigroup.Group{Install: Install, Internal: extensions.SchemeGroupVersion, Served: v1beta1.SchemeGroupVersion, Testdata: "../v1beta1/testdata"}

func FuzzDecodeJSON(f *testing.F) {
	group.FuzzDecode(f, runtime.ContentTypeJSON,
		`{"apiVersion":"extensions.agents.x-k8s.io/v1beta1","kind":"SandboxClaim","spec":{"lifecycle":{"shutdownTime":"9999-12-31T23:59:59-01:00"}}}`,
		`{"apiVersion":"extensions.agents.x-k8s.io/v1beta1","kind":"SandboxWarmPool","spec":{"replicas":null,"updateStrategy":{}}}`)
}

func FuzzDecodeYAML(f *testing.F) { group.FuzzDecode(f, runtime.ContentTypeYAML) }

func FuzzDecodeProtobuf(f *testing.F) { group.FuzzDecode(f, runtime.ContentTypeProtobuf, "k8s\x00") }
