// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package lightcluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/build"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/component"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/progress"
)

func TestPlan(t *testing.T) {
	cache := t.TempDir()
	if err := os.WriteFile(filepath.Join(cache, component.KwokStages), []byte("---\nkind: Stage\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	binaries := &build.Binaries{Dirs: map[string]string{kwok: cache}}
	c := New("/some/dir", progress.New(os.Stderr, time.Now()))
	o := Options{Port: 17000, Nodes: 2}
	p, err := newPlan(c.config(o, binaries), o, binaries)
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range []string{"kwok-0", "kwok-1"} {
		if !strings.Contains(p.Objects[nodePath(node)], "name: "+node) {
			t.Errorf("no manifest of node %s", node)
		}
	}
	if config := p.Files["/some/dir/kwok.yaml"]; !strings.Contains(config, "ClusterExec") || !strings.Contains(config, "Stage") {
		t.Errorf("kwok.yaml lacks something:\n%s", config)
	}
	o.Port++
	other, err := newPlan(c.config(o, binaries), o, binaries)
	if err != nil {
		t.Fatal(err)
	}
	if other.Fingerprint() == p.Fingerprint() {
		t.Error("the fingerprint does not depend on the port")
	}
}

// What a removal removes must be all that a start makes.
func TestOwnedCoversFiles(t *testing.T) {
	c := New("/some/dir", progress.New(os.Stderr, time.Now()))
	config := c.config(Options{Port: 17000, Nodes: 1}, &build.Binaries{})
	files := []string{
		c.portFile(), c.FingerprintFile, c.Group.Records, c.Group.Logs, config.PKI(), config.AuditPolicy(),
		filepath.Dir(config.AuditLog()),
	}
	for _, file := range files {
		found := false
		for _, name := range owned {
			found = found || filepath.Join("/some/dir", name) == file
		}
		if !found {
			t.Errorf("%s is not removed", file)
		}
	}
}

func TestProducts(t *testing.T) {
	if _, err := findProduct("etcd"); err == nil {
		t.Error("programs of the cluster itself can be started")
	}
	c := New("/some/dir", progress.New(os.Stderr, time.Now()))
	seen := map[string]string{}
	for name, p := range products {
		for _, arg := range p.args(c, 17000) {
			if _, port, ok := strings.Cut(arg, "127.0.0.1:"); ok {
				if other := seen[port]; other != "" {
					t.Errorf("%s and %s use port %s", name, other, port)
				}
				seen[port] = name
			}
		}
	}
}
