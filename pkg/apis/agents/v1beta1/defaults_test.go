// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/yaml"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/install"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
)

// TestDefaults pins what defaulting adds to a manifest. A library that came to fill more of a PodSpec would change the stored
// templates of everybody, and the hashes that are taken of them.
func TestDefaults(t *testing.T) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	decoder := serializer.NewCodecFactory(scheme).UniversalDecoder(v1beta1.SchemeGroupVersion)
	for _, name := range []string{"minimal", "full"} {
		t.Run(name, func(t *testing.T) {
			manifest, err := os.ReadFile("testdata/" + name + ".yaml")
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile("testdata/" + name + ".defaulted.yaml")
			if err != nil {
				t.Fatal(err)
			}
			obj, err := runtime.Decode(decoder, manifest)
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
