// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package apigroup holds the tests of how the objects of an API group are read and written, which are the same for every group.
package apigroup

import (
	"bytes"
	"encoding/json"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// iterations is how many random objects of each kind are tried.
const iterations = 100

// defaulted is how the name of a manifest ends that says what defaulting makes of another one.
const defaulted = ".defaulted.yaml"

// Group is the group under test.
type Group struct {
	// Install registers the group.
	Install func(*runtime.Scheme)
	// Internal and Served are the versions that objects are taken between.
	Internal, Served schema.GroupVersion
	// Testdata is the directory of manifests of the group. Each <name>.yaml is a seed for fuzzing, and has a <name>.defaulted.yaml.
	Testdata string
}

// FuzzDecode sends arbitrary bodies of a media type, beginning with the group's manifests and the given ones. None may end the server,
// and what gets in must come out of the storage as it went in: a stored object that cannot be decoded makes every list of its kind fail.
func (g Group) FuzzDecode(f *testing.F, mediaType string, more ...string) {
	f.Helper()
	for _, manifest := range g.manifests(f) {
		f.Add(g.convert(f, manifest, mediaType))
	}
	for _, body := range more {
		f.Add([]byte(body))
	}
	request, storage := g.Codec(f, mediaType), g.Codec(f, runtime.ContentTypeProtobuf)
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

// FuzzDefaults checks that defaulting what was defaulted before changes nothing, for objects of each kind, of which it is given an empty
// one: every read from the storage does it again, and would otherwise make a new object of an old one.
func (g Group) FuzzDefaults(f *testing.F, kinds ...runtime.Object) {
	f.Helper()
	for _, manifest := range g.manifests(f) {
		f.Add(g.convert(f, manifest, runtime.ContentTypeJSON))
	}
	scheme := runtime.NewScheme()
	g.Install(scheme)
	f.Fuzz(func(t *testing.T, manifest []byte) {
		for _, kind := range kinds {
			once := kind.DeepCopyObject()
			if err := json.Unmarshal(manifest, once); err != nil {
				continue
			}
			scheme.Default(once)
			twice := once.DeepCopyObject()
			scheme.Default(twice)
			if diff := cmp.Diff(once, twice); diff != "" {
				t.Errorf("defaulting again changed (-once +twice):\n%s", diff)
			}
		}
	})
}

// Validation is what validates objects of a kind.
type Validation struct {
	// Create is applied to what is about to be created.
	Create func(obj runtime.Object) field.ErrorList
	// Updates are applied to changes, by what they are changes of.
	Updates map[string]func(obj, old runtime.Object) field.ErrorList
}

// FuzzValidation checks, for objects of any content, that validation ends, that an object which passes can be written in every format and
// passes again when it is read, and that no fault of a stored object stands in the way of a write that leaves it alone. Bodies are in
// protobuf, which carries more than JSON can say; the given ones are in JSON. kindOf returns nil for what is not to be stored.
func (g Group) FuzzValidation(f *testing.F, kindOf func(runtime.Object) *Validation, more ...string) {
	f.Helper()
	for _, manifest := range g.manifests(f) {
		f.Add(g.convert(f, manifest, runtime.ContentTypeProtobuf))
	}
	for _, body := range more {
		f.Add(g.convert(f, []byte(body), runtime.ContentTypeProtobuf))
	}
	formats := map[string]runtime.Codec{}
	for _, mediaType := range []string{runtime.ContentTypeJSON, runtime.ContentTypeYAML, runtime.ContentTypeProtobuf} {
		formats[mediaType] = g.Codec(f, mediaType)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		obj, err := runtime.Decode(formats[runtime.ContentTypeProtobuf], body)
		if err != nil {
			return
		}
		validation := kindOf(obj)
		if validation == nil {
			return
		}
		checkUnchangedFaults(t, obj, validation.Updates)
		if errs := validation.Create(obj); len(errs) > 0 {
			return
		}
		for mediaType, format := range formats {
			encoded, err := runtime.Encode(format, obj)
			if err != nil {
				t.Fatalf("valid, but cannot be written as %s: %v", mediaType, err)
			}
			read, err := runtime.Decode(format, encoded)
			if err != nil {
				t.Fatalf("valid, but cannot be read as %s: %v\n%s", mediaType, err, encoded)
			}
			if errs := validation.Create(read); len(errs) > 0 {
				t.Errorf("valid until it was read as %s: %v\n%s", mediaType, errs, encoded)
			}
		}
	})
}

// checkUnchangedFaults takes the object for a stored one and writes it with another label. The object metadata is the library's to
// judge, and exchanged for some that is sound.
func checkUnchangedFaults(t *testing.T, obj runtime.Object, updates map[string]func(obj, old runtime.Object) field.ErrorList) {
	t.Helper()
	stored := obj.DeepCopyObject()
	accessor, ok := stored.(metav1.ObjectMetaAccessor)
	if !ok {
		t.Fatalf("no metadata in a %T", stored)
	}
	meta := accessor.GetObjectMeta().(*metav1.ObjectMeta)
	owners := meta.ManagedFields
	for i := range owners {
		owners[i].Operation, owners[i].FieldsType, owners[i].Manager, owners[i].Subresource = "Update", "FieldsV1", "somebody", ""
	}
	*meta = metav1.ObjectMeta{Name: "object", Namespace: "default", ResourceVersion: "1", ManagedFields: owners}
	changed := stored.DeepCopyObject()
	changed.(metav1.ObjectMetaAccessor).GetObjectMeta().SetLabels(map[string]string{"a": "b"})
	for what, update := range updates {
		if errs := update(changed, stored); len(errs) > 0 {
			t.Errorf("a label cannot be written to %s: %v", what, errs)
		}
	}
}

// TestYAML takes random objects of each kind, of which it is given an empty one, to the form in which people write them and back.
func (g Group) TestYAML(t *testing.T, funcs fuzzer.FuzzerFuncs, kinds ...runtime.Object) {
	t.Helper()
	scheme := runtime.NewScheme()
	g.Install(scheme)
	codec := g.Codec(t, runtime.ContentTypeYAML)
	seed := rand.Int63()
	filler := fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, funcs), rand.NewSource(seed), serializer.NewCodecFactory(scheme))
	for _, kind := range kinds {
		for range iterations {
			want := kind.DeepCopyObject()
			filler.Fill(want)
			encoded, err := runtime.Encode(codec, want)
			if err != nil {
				t.Fatalf("%T, seed %d: encoding: %v", kind, seed, err)
			}
			got, err := runtime.Decode(codec, encoded)
			if err != nil {
				t.Fatalf("%T, seed %d: decoding: %v\n%s", kind, seed, err, encoded)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("%T, seed %d: changed on the way through YAML (-want +got):\n%s", kind, seed, diff)
			}
		}
	}
}

// TestDefaults pins what defaulting adds to each manifest.
func (g Group) TestDefaults(t *testing.T) {
	t.Helper()
	scheme := runtime.NewScheme()
	g.Install(scheme)
	decoder := serializer.NewCodecFactory(scheme).UniversalDecoder(g.Served)
	for _, path := range g.paths(t) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) {
			want := read(t, strings.TrimSuffix(path, ".yaml")+defaulted)
			obj, err := runtime.Decode(decoder, read(t, path))
			if err != nil {
				t.Fatal(err)
			}
			got, err := yaml.Marshal(obj)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("after defaulting (-want +got):\n%s", diff)
			}
		})
	}
}

// Codec returns what the server reads and writes the media type with.
func (g Group) Codec(t testing.TB, mediaType string) runtime.Codec {
	t.Helper()
	scheme := runtime.NewScheme()
	g.Install(scheme)
	codecs := serializer.NewCodecFactory(scheme)
	info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), mediaType)
	if !ok {
		t.Fatalf("no serializer for %s", mediaType)
	}
	return codecs.CodecForVersions(info.Serializer, info.Serializer, g.Served, g.Internal)
}

// convert returns a manifest in another media type.
func (g Group) convert(t testing.TB, manifest []byte, mediaType string) []byte {
	t.Helper()
	if mediaType == runtime.ContentTypeYAML {
		return manifest
	}
	if mediaType == runtime.ContentTypeJSON {
		converted, err := yaml.YAMLToJSON(manifest)
		if err != nil {
			t.Fatal(err)
		}
		return converted
	}
	obj, err := runtime.Decode(g.Codec(t, runtime.ContentTypeYAML), manifest)
	if err != nil {
		t.Fatal(err)
	}
	converted, err := runtime.Encode(g.Codec(t, mediaType), obj)
	if err != nil {
		t.Fatal(err)
	}
	return converted
}

func (g Group) manifests(t testing.TB) [][]byte {
	t.Helper()
	var manifests [][]byte
	for _, path := range g.paths(t) {
		manifests = append(manifests, read(t, path))
	}
	return manifests
}

// paths returns those of the manifests as people would write them.
func (g Group) paths(t testing.TB) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(g.Testdata, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, path := range all {
		if !strings.HasSuffix(path, defaulted) {
			paths = append(paths, path)
		}
	}
	if len(paths) == 0 {
		t.Fatalf("no manifests in %q", g.Testdata)
	}
	return paths
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
