// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package lightcluster

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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

// Each process must have ports of its own, and none beyond those of the cluster.
func TestProducts(t *testing.T) {
	const first = 17000
	c := New(t.TempDir(), progress.New(os.Stderr, time.Now()))
	if err := os.WriteFile(c.portFile(), fmt.Append(nil, first), 0o600); err != nil {
		t.Fatal(err)
	}
	seen := map[int]string{}
	for program, p := range products {
		for number := 1; number <= p.instances; number++ {
			i, err := c.instance(Process{program, number})
			if err != nil {
				t.Fatal(err)
			}
			for _, port := range portsOf(t, i.args(i)) {
				if port < first || port >= first+PortsPerCluster {
					t.Errorf("%s uses port %d, which is not the cluster's", i.process(), port)
				}
				if other := seen[port]; other != "" && other != i.process() {
					t.Errorf("%s and %s use port %d", i.process(), other, port)
				}
				seen[port] = i.process()
			}
		}
	}
	if want := 2 + MaxInstances*portsPerInstance; len(seen) != want {
		t.Errorf("%d ports are used: %v, want %d", len(seen), seen, want)
	}
}

// portsOf returns the ports in flags.
func portsOf(t *testing.T, args []string) []int {
	t.Helper()
	var ports []int
	for _, arg := range args {
		port, ok := strings.CutPrefix(arg, "--secure-port=")
		if !ok {
			if _, port, ok = strings.Cut(arg, "127.0.0.1:"); !ok {
				continue
			}
		}
		number, err := strconv.Atoi(port)
		if err != nil {
			t.Fatalf("%s: %v", arg, err)
		}
		ports = append(ports, number)
	}
	return ports
}

func TestOnlyProductsCanBeStarted(t *testing.T) {
	for _, which := range []Process{
		{"etcd", 1}, {"", 1}, {sandboxAPIServer, 0}, {sandboxAPIServer, MaxInstances + 1}, {ExternalEtcd, 2},
	} {
		if _, err := newInstance(which); err == nil {
			t.Errorf("%+v can be started", which)
		}
	}
}

func TestStorageOfServers(t *testing.T) {
	c := New(t.TempDir(), progress.New(os.Stderr, time.Now()))
	if err := os.WriteFile(c.portFile(), []byte("17000"), 0o600); err != nil {
		t.Fatal(err)
	}
	second, err := c.instance(Process{sandboxAPIServer, 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := prepareAPIServer(t.Context(), second, nil); err == nil || !strings.Contains(err.Error(), ExternalEtcd) {
		t.Errorf("a second server without a shared etcd: %v", err)
	}
	if got := storageFlag(second); got != "--etcd-data-dir="+filepath.Join(c.dir, sandboxEtcd) {
		t.Errorf("without a shared etcd: %s", got)
	}
	if err := os.Mkdir(filepath.Join(c.dir, ExternalEtcd), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := storageFlag(second); got != "--etcd-servers=http://127.0.0.1:17006" {
		t.Errorf("with a shared etcd: %s", got)
	}
}

// storageFlag returns the flag that says where a server stores.
func storageFlag(i instance) string {
	args := apiServerArgs(i)
	return args[slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--etcd-") })]
}

func TestArgumentsReplaceFlags(t *testing.T) {
	args := []string{"--etcd-servers=http://one", "--secure-port=1", "--kubeconfig=file"}
	got := without(args, []string{"--etcd-servers=http://two", "--v=2", "--kubeconfig", "other"})
	if want := []string{"--secure-port=1"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
