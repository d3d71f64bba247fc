// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
)

// manifestFile is a file of testdata: one Sandbox of a kind that people write.
type manifestFile struct {
	name, text string
	sandbox    v1beta1.Sandbox
}

// manifests returns the files of testdata.
func manifests(t *testing.T) []manifestFile {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	var files []manifestFile
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file := manifestFile{name: strings.TrimSuffix(filepath.Base(path), ".yaml"), text: string(data)}
		if err := yaml.UnmarshalStrict(data, &file.sandbox); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		files = append(files, file)
	}
	return files
}
