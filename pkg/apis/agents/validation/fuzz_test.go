// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/install"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/validation"
)

// FuzzValidateSandbox checks, for Sandboxes of any content, that validation ends, that a Sandbox which passes can be written in every
// format and passes again when it is read, and that no fault of a stored Sandbox stands in the way of a write that leaves it alone.
// Bodies in protobuf carry more than those in JSON can say, and are accepted beside them.
func FuzzValidateSandbox(f *testing.F) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	codecs := serializer.NewCodecFactory(scheme)
	formats := map[string]runtime.Codec{}
	for _, mediaType := range []string{runtime.ContentTypeJSON, runtime.ContentTypeYAML, runtime.ContentTypeProtobuf} {
		info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), mediaType)
		if !ok {
			f.Fatalf("no serializer for %s", mediaType)
		}
		formats[mediaType] = codecs.CodecForVersions(info.Serializer, codecs.UniversalDeserializer(), v1beta1.SchemeGroupVersion, agents.SchemeGroupVersion)
	}
	addSeeds(f, formats[runtime.ContentTypeProtobuf])

	f.Fuzz(func(t *testing.T, body []byte) {
		obj, err := runtime.Decode(formats[runtime.ContentTypeProtobuf], body)
		if err != nil {
			return
		}
		sandbox, ok := obj.(*agents.Sandbox)
		if !ok {
			return
		}
		checkUnchangedFaults(t, sandbox)
		if errs := validation.ValidateSandbox(sandbox); len(errs) > 0 {
			return
		}
		for mediaType, format := range formats {
			encoded, err := runtime.Encode(format, sandbox)
			if err != nil {
				t.Fatalf("valid, but cannot be written as %s: %v", mediaType, err)
			}
			read, err := runtime.Decode(format, encoded)
			if err != nil {
				t.Fatalf("valid, but cannot be read as %s: %v\n%s", mediaType, err, encoded)
			}
			if errs := validation.ValidateSandbox(read.(*agents.Sandbox)); len(errs) > 0 {
				t.Errorf("valid until it was read as %s: %v\n%s", mediaType, errs, encoded)
			}
		}
	})
}

// checkUnchangedFaults takes the Sandbox for a stored one and writes it with another label. The object metadata is the library's to
// judge, and exchanged for some that is sound.
func checkUnchangedFaults(t *testing.T, sandbox *agents.Sandbox) {
	t.Helper()
	stored := sandbox.DeepCopy()
	stored.ObjectMeta = metav1.ObjectMeta{Name: "sandbox", Namespace: "default", ResourceVersion: "1"}
	stored.ManagedFields = sandbox.ManagedFields
	for i := range stored.ManagedFields {
		stored.ManagedFields[i].Operation, stored.ManagedFields[i].FieldsType = "Update", "FieldsV1"
		stored.ManagedFields[i].Manager, stored.ManagedFields[i].Subresource = "somebody", ""
	}
	changed := stored.DeepCopy()
	changed.Labels = map[string]string{"a": "b"}
	for write, errs := range map[string]field.ErrorList{
		"sandboxes":        validation.ValidateSandboxUpdate(changed, stored),
		"sandboxes/status": validation.ValidateSandboxStatusUpdate(changed, stored),
	} {
		if len(errs) > 0 {
			t.Errorf("a label cannot be written to %s: %v", write, errs)
		}
	}
}

func addSeeds(f *testing.F, protobuf runtime.Codec) {
	f.Helper()
	for _, fields := range [][2]string{
		{`"service": true`, ""},
		{`"shutdownTime": "9999-12-31T23:59:59-01:00"`, ""},
		{`"volumeClaimTemplates": [{"metadata": {"name": "data", "labels": {"a": "b"}}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]`, ""},
		{`"volumeClaimTemplates": [{"spec": {}}, {"spec": {"selector": {"matchLabels": {"": ""}}, "storageClassName": "A", "volumeMode": "b"}}]`, ""},
		{`"operatingMode": "Suspended"`, `, "env": [{"name": "A", "value": "a"}], "livenessProbe": {"tcpSocket": {"port": "http"}}, "resources": {"limits": {"cpu": "1e3"}}`},
	} {
		body := fmt.Appendf(nil, manifest, fields[0], fields[1])
		f.Add(body)
		obj, err := runtime.Decode(protobuf, body)
		if err != nil {
			f.Fatal(err)
		}
		encoded, err := runtime.Encode(protobuf, obj)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(encoded)
	}
}
