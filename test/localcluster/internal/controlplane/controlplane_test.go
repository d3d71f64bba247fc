// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func testConfig(dir, address string) Config {
	return Config{
		Name:      "test",
		Dir:       dir,
		Binary:    func(name string) string { return "/bin/" + name },
		APIServer: netip.AddrPortFrom(netip.MustParseAddr(address), 6443),
		Services:  netip.MustParsePrefix("10.96.0.0/16"),
		Nodes:     []string{"node"},
		NodeIP:    netip.MustParseAddr("10.87.0.2"),
	}
}

func TestFlags(t *testing.T) {
	durable := testConfig("/d", "10.87.0.1")
	durable.Durable = true
	quick := testConfig("/d", "127.0.0.1")
	quick.Controllers = []string{"a", "b"}
	for _, tc := range []struct {
		name    string
		command []string
		flag    string
		want    bool
	}{
		{"etcd that waits for the disk", durable.EtcdSpec().Command, "--unsafe-no-fsync", false},
		{"etcd that does not", quick.EtcdSpec().Command, "--unsafe-no-fsync", true},
		{"API server on a link", durable.APIServerSpec().Command, "--endpoint-reconciler-type=none", false},
		{"API server on loopback", quick.APIServerSpec().Command, "--endpoint-reconciler-type=none", true},
		{"some controllers", quick.ControllerManagerSpec().Command, "--controllers=a,b", true},
	} {
		if got := slices.Contains(tc.command, tc.flag); got != tc.want {
			t.Errorf("%s: %s given: %t, want %t", tc.name, tc.flag, got, tc.want)
		}
	}
}

func TestServiceIP(t *testing.T) {
	if got := testConfig("", "127.0.0.1").serviceIP().String(); got != "10.96.0.1" {
		t.Errorf("serviceIP = %s", got)
	}
}

// Every file that a flag refers to is made by WritePKI.
func TestWritePKI(t *testing.T) {
	c := testConfig(t.TempDir(), "127.0.0.1")
	if err := c.WritePKI(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"ca.crt", "ca.key", "front-proxy-ca.crt", "front-proxy-client.crt", "sa.key", "sa.pub", "apiserver.crt",
		"kubelet-serving.crt", "admin.kubeconfig", "kubelet.kubeconfig", "kube-proxy.kubeconfig",
		"kube-scheduler.kubeconfig", "kube-controller-manager.kubeconfig",
	} {
		if _, err := os.Stat(filepath.Join(c.PKI(), name)); err != nil {
			t.Error(err)
		}
	}
}
