// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/component"
)

func TestCacheDir(t *testing.T) {
	for _, tc := range []struct {
		name    string
		env     map[string]string
		want    string
		wantErr bool
	}{
		{name: "own variable", env: map[string]string{"SANDBOX_CACHE_DIR": "/c", "XDG_CACHE_HOME": "/x", "HOME": "/h"}, want: "/c"},
		{name: "XDG", env: map[string]string{"XDG_CACHE_HOME": "/x", "HOME": "/h"}, want: "/x/sandbox-apiserver"},
		{name: "home", env: map[string]string{"HOME": "/h"}, want: "/h/.cache/sandbox-apiserver"},
		{name: "nothing", wantErr: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := CacheDir(func(name string) string { return tc.env[name] })
			if got != tc.want || (err != nil) != tc.wantErr {
				t.Errorf("CacheDir = %q, %v; want %q, error: %t", got, err, tc.want, tc.wantErr)
			}
		})
	}
}

func TestCacheKey(t *testing.T) {
	dir := t.TempDir()
	key := func(args ...string) string {
		t.Helper()
		k, err := cacheKey(dir, args)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module a")
	write("go.sum", "one")
	first := key("build")
	if again := key("build"); again != first {
		t.Errorf("key changes from %s to %s without a reason", first, again)
	}
	if k := key("build", "-tags=x"); k == first {
		t.Error("key does not depend on flags")
	}
	write("go.sum", "two")
	if k := key("build"); k == first {
		t.Error("key does not depend on go.sum")
	}
}

func TestOutputName(t *testing.T) {
	for pkg, want := range map[string]string{
		"k8s.io/kubernetes/cmd/kubelet": "kubelet",
		"go.etcd.io/etcd/server/v3":     "server",
		"example.com/v8engine":          "v8engine",
		".":                             "pause",
	} {
		got := outputName(component.Component{Name: "pause"}, component.Command{Package: pkg})
		if got != want {
			t.Errorf("outputName(%q) = %q, want %q", pkg, got, want)
		}
	}
}

func TestGoBuildArgs(t *testing.T) {
	c := component.Component{
		Tags:    []string{"a", "b"},
		LDFlags: func(v string) []string { return []string{"-X main.version=" + v} },
	}
	args := goBuildArgs(c, "v1.2.3")
	for _, want := range []string{"-mod=readonly", "-trimpath", "-tags=a,b", "-ldflags=-s -w -X main.version=v1.2.3"} {
		if !slices.Contains(args, want) {
			t.Errorf("%q lacks %q", args, want)
		}
	}
}

func TestGoEnvOverridesCaller(t *testing.T) {
	env := goEnv([]string{"GOFLAGS=-mod=mod", "CGO_ENABLED=1", "PATH=/bin"}, false)
	// The last value of a variable counts.
	for _, want := range []string{"GOFLAGS=", "CGO_ENABLED=0"} {
		if i := slices.Index(env, want); i < 2 {
			t.Errorf("%q: %s must come after the caller's", env, want)
		}
	}
	if !slices.Contains(env, "PATH=/bin") {
		t.Errorf("%q: PATH is lost", env)
	}
}

// Every component's wrapper module requires the module that the version is taken from.
func TestComponentVersions(t *testing.T) {
	for _, profile := range []component.Profile{component.Real, component.Light} {
		for _, c := range component.For(profile) {
			version, err := requiredVersion(filepath.Join("..", "..", "components", c.Name), c.Module)
			if err != nil || version == "" {
				t.Errorf("%s: version %q, error %v", c.Name, version, err)
			}
		}
	}
}

func TestMissing(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "there"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	c := component.Component{Commands: []component.Command{{Name: "there"}, {Name: "not-there"}}}
	if got := missing(dir, c); len(got) != 1 || got[0].Name != "not-there" {
		t.Errorf("missing = %v", got)
	}
}
