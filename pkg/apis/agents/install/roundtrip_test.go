// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/apitesting/roundtrip"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	agentsfuzzer "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/fuzzer"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
)

// iterations is how many objects of each kind are tried; the library's own default is a fifth of it.
const iterations = 100

// TestRoundTrip takes random objects of every registered kind from the internal version to every served one and back, in JSON and in
// protobuf.
func TestRoundTrip(t *testing.T) {
	*roundtrip.FuzzIters = iterations
	roundtrip.RoundTripProtobufTestForAPIGroup(t, Install, agentsfuzzer.Funcs)
}

// TestRoundTripYAML does so for the form in which people write Sandboxes.
func TestRoundTripYAML(t *testing.T) {
	scheme := runtime.NewScheme()
	Install(scheme)
	codecs := serializer.NewCodecFactory(scheme)
	info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeYAML)
	if !ok {
		t.Fatal("no serializer for YAML")
	}
	codec := codecs.CodecForVersions(info.Serializer, codecs.UniversalDeserializer(), v1beta1.SchemeGroupVersion, agents.SchemeGroupVersion)
	seed := rand.Int63()
	filler := fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, agentsfuzzer.Funcs), rand.NewSource(seed), codecs)
	for range iterations {
		want := &agents.Sandbox{}
		filler.Fill(want)
		encoded, err := runtime.Encode(codec, want)
		if err != nil {
			t.Fatalf("seed %d: encoding: %v", seed, err)
		}
		got, err := runtime.Decode(codec, encoded)
		if err != nil {
			t.Fatalf("seed %d: decoding: %v\n%s", seed, err, encoded)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("seed %d: changed on the way through YAML (-want +got):\n%s", seed, diff)
		}
	}
}
