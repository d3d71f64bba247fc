// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
)

// FuzzDefaults checks that defaulting what was defaulted before changes nothing: every read from the storage does it again, and
// would otherwise make a new object of an old one.
func FuzzDefaults(f *testing.F) {
	paths, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(paths) == 0 {
		f.Fatalf("no manifests: %v", err)
	}
	for _, path := range paths {
		manifest, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		seed, err := yaml.YAMLToJSON(manifest)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, manifest []byte) {
		once := &v1beta1.Sandbox{}
		if err := json.Unmarshal(manifest, once); err != nil {
			return
		}
		v1beta1.SetObjectDefaults_Sandbox(once)
		twice := once.DeepCopy()
		v1beta1.SetObjectDefaults_Sandbox(twice)
		if diff := cmp.Diff(once, twice); diff != "" {
			t.Errorf("defaulting again changed (-once +twice):\n%s", diff)
		}
	})
}
