// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"slices"
	"strings"
	"testing"
)

func TestParseProfile(t *testing.T) {
	for name, ok := range map[string]bool{"real": true, "light": true, "": false, "Real": false} {
		if _, err := ParseProfile(name); (err == nil) != ok {
			t.Errorf("ParseProfile(%q): %v", name, err)
		}
	}
}

func TestFor(t *testing.T) {
	for _, tc := range []struct {
		profile Profile
		want    []string
		without []string
	}{
		{Real, []string{"kube-apiserver", "kubelet", "kube-proxy", "containerd", "runc", "etcd", "bridge", "pause"}, []string{"kwok"}},
		{Light, []string{"kube-apiserver", "kubectl", "etcd", "kwok"}, []string{"kubelet", "containerd", "runc", "pause"}},
	} {
		var names []string
		for _, c := range For(tc.profile) {
			for _, cmd := range c.Commands {
				names = append(names, cmd.Name)
			}
		}
		for _, name := range tc.want {
			if !slices.Contains(names, name) {
				t.Errorf("%s lacks %s", tc.profile, name)
			}
		}
		for _, name := range tc.without {
			if slices.Contains(names, name) {
				t.Errorf("%s has %s", tc.profile, name)
			}
		}
	}
}

func TestKubernetesVersion(t *testing.T) {
	flags := strings.Join(kubernetesVersion("v1.36.3"), " ")
	for _, want := range []string{
		"component-base/version.gitVersion=v1.36.3", "component-base/version.gitMajor=1",
		"client-go/pkg/version.gitMinor=36",
	} {
		if !strings.Contains(flags, want) {
			t.Errorf("%q lacks %q", flags, want)
		}
	}
}
