// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package realcluster

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/image"
)

func TestMountPoints(t *testing.T) {
	const table = `22 1 0:20 / / rw shared:1 - ext4 /dev/root rw
30 22 0:21 / /run/sandbox-localcluster/namespaces rw - ext4 /dev/root rw
31 30 0:4 mnt:[1] /run/sandbox-localcluster/namespaces/mnt rw - nsfs nsfs rw
32 22 0:22 / /run/sandbox-localcluster-light rw - tmpfs none rw
`
	got := mountPoints(table, "/run/sandbox-localcluster", "/elsewhere")
	want := []string{"/run/sandbox-localcluster/namespaces", "/run/sandbox-localcluster/namespaces/mnt"}
	if !slices.Equal(got, want) {
		t.Errorf("mountPoints = %q, want %q", got, want)
	}
}

func TestRunningPID(t *testing.T) {
	const listing = `TASK    PID      STATUS
abc     100      STOPPED
def     200      RUNNING
`
	for container, want := range map[string]string{"abc": "", "def": "200", "ghi": ""} {
		if got, ok := runningPID(listing, container); got != want || ok != (want != "") {
			t.Errorf("runningPID(%q) = %q, %t; want %q", container, got, ok, want)
		}
	}
}

func TestLoaded(t *testing.T) {
	const listing = `REF                     TYPE                                       DIGEST      SIZE    PLATFORMS   LABELS
sandbox.local/a:1       application/vnd.oci.image.manifest.v1+json sha256:aaaa 1.0 MiB linux/amd64 -
`
	for _, tc := range []struct {
		name string
		refs []image.Reference
		want bool
	}{
		{"same digest", []image.Reference{{Name: "sandbox.local/a:1", Digest: "sha256:aaaa"}}, true},
		{"other digest", []image.Reference{{Name: "sandbox.local/a:1", Digest: "sha256:bbbb"}}, false},
		{"other name", []image.Reference{{Name: "sandbox.local/b:1", Digest: "sha256:aaaa"}}, false},
		{"no image", nil, false},
	} {
		if got := loaded(listing, tc.refs); got != tc.want {
			t.Errorf("%s: loaded = %t", tc.name, got)
		}
	}
}

func TestPlan(t *testing.T) {
	p := newPlan(map[string]string{"kubernetes": "kubernetes-v1"})
	if again := newPlan(map[string]string{"kubernetes": "kubernetes-v1"}); again.Fingerprint() != p.Fingerprint() {
		t.Error("the same plan has another fingerprint")
	}
	if other := newPlan(map[string]string{"kubernetes": "kubernetes-v2"}); other.Fingerprint() == p.Fingerprint() {
		t.Error("the fingerprint does not depend on the programs")
	}
	for name, content := range p.Files {
		if strings.Contains(content, "{{") || strings.Contains(content, "<no value>") {
			t.Errorf("%s is not rendered:\n%s", name, content)
		}
	}
	if !json.Valid([]byte(p.Files[statePath("cni", "10-bridge.conflist")])) {
		t.Error("the CNI configuration is not JSON")
	}
}

// A program of the node that is started outside of its namespaces would work on the host.
func TestNodeProgramsAreInNamespaces(t *testing.T) {
	p := newPlan(nil)
	for _, spec := range append(p.First, p.Then...) {
		inside := slices.Contains(spec.Command, "--net="+netnsFile) && slices.Contains(spec.Command, "--mount="+mountNS)
		if inside != onNode(spec.Name) {
			t.Errorf("%s: in the node's namespaces: %t, on the node: %t", spec.Name, inside, onNode(spec.Name))
		}
	}
}
