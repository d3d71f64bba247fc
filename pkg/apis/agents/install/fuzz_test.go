// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/yaml"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
)

// FuzzDecodeJSON, FuzzDecodeYAML and FuzzDecodeProtobuf send arbitrary bodies. None may end the server, and what gets in must come out
// of the storage as it went in: a stored object that cannot be decoded makes every list of Sandboxes fail.
func FuzzDecodeJSON(f *testing.F) {
	for _, manifest := range seedManifests(f) {
		seed, err := yaml.YAMLToJSON(manifest)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(seed)
	}
	f.Add([]byte(`{"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox","spec":{"shutdownTime":"9999-12-31T23:59:59-01:00"}}`))
	f.Add([]byte(`{"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox","spec":null,"metadata":{"creationTimestamp":null}}`))
	fuzzDecode(f, runtime.ContentTypeJSON)
}

func FuzzDecodeYAML(f *testing.F) {
	for _, manifest := range seedManifests(f) {
		f.Add(manifest)
	}
	f.Add([]byte("apiVersion: agents.x-k8s.io/v1beta1\nkind: Sandbox\nmetadata: &a {name: a}\nspec: {podTemplate: {metadata: *a}}\n"))
	fuzzDecode(f, runtime.ContentTypeYAML)
}

func FuzzDecodeProtobuf(f *testing.F) {
	codecs := newCodecs()
	for _, manifest := range seedManifests(f) {
		obj, err := runtime.Decode(codecs.UniversalDecoder(agents.SchemeGroupVersion), manifest)
		if err != nil {
			f.Fatal(err)
		}
		seed, err := runtime.Encode(codecFor(f, codecs, runtime.ContentTypeProtobuf), obj)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(seed)
	}
	f.Add([]byte("k8s\x00"))
	fuzzDecode(f, runtime.ContentTypeProtobuf)
}

// fuzzDecode decodes what it is given in the media type, and holds what comes of it against what comes of the stored form.
func fuzzDecode(f *testing.F, mediaType string) {
	codecs := newCodecs()
	request, storage := codecFor(f, codecs, mediaType), codecFor(f, codecs, runtime.ContentTypeProtobuf)
	f.Fuzz(func(t *testing.T, body []byte) {
		sent, err := runtime.Decode(request, body)
		if err != nil {
			return
		}
		stored, err := runtime.Encode(storage, sent)
		if err != nil {
			t.Fatalf("decoded, but cannot be stored: %v", err)
		}
		got, err := runtime.Decode(storage, stored)
		if err != nil {
			t.Fatalf("stored, but cannot be read again: %v", err)
		}
		again, err := runtime.Encode(storage, got)
		if err != nil {
			t.Fatalf("read, but cannot be stored again: %v", err)
		}
		if !bytes.Equal(stored, again) {
			t.Errorf("changed by being stored (-sent +read):\n%s", cmp.Diff(sent, got))
		}
	})
}

func newCodecs() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	Install(scheme)
	return serializer.NewCodecFactory(scheme)
}

func codecFor(f *testing.F, codecs serializer.CodecFactory, mediaType string) runtime.Codec {
	f.Helper()
	info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), mediaType)
	if !ok {
		f.Fatalf("no serializer for %s", mediaType)
	}
	return codecs.CodecForVersions(info.Serializer, info.Serializer, v1beta1.SchemeGroupVersion, agents.SchemeGroupVersion)
}

func seedManifests(f *testing.F) [][]byte {
	f.Helper()
	paths, err := filepath.Glob("../v1beta1/testdata/*.yaml")
	if err != nil || len(paths) == 0 {
		f.Fatalf("no manifests: %v", err)
	}
	var manifests [][]byte
	for _, path := range paths {
		manifest, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		manifests = append(manifests, manifest)
	}
	return manifests
}
