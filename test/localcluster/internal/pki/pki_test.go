// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/x509"
	"net"
	"path/filepath"
	"testing"
)

func TestIssue(t *testing.T) {
	dir := t.TempDir()
	if _, err := NewAuthority(dir, "ca"); err != nil {
		t.Fatal(err)
	}
	// Leaves are also issued later, by an authority read from its files.
	ca, err := LoadAuthority(dir, "ca")
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	for _, tc := range []struct {
		leaf Leaf
		opts x509.VerifyOptions
	}{
		{
			Leaf{Name: "server", CommonName: "server", DNSNames: []string{"a.b.svc"}, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}},
			x509.VerifyOptions{DNSName: "a.b.svc", KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}},
		},
		{
			Leaf{Name: "client", CommonName: "admin", Organizations: []string{"system:masters"}},
			x509.VerifyOptions{KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}},
		},
	} {
		if err := ca.Issue(tc.leaf); err != nil {
			t.Fatal(err)
		}
		der, err := readPEM(filepath.Join(dir, tc.leaf.Name+".crt"))
		if err != nil {
			t.Fatal(err)
		}
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		tc.opts.Roots = roots
		if _, err := cert.Verify(tc.opts); err != nil {
			t.Errorf("%s: %v", tc.leaf.Name, err)
		}
	}
}
