// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package pki makes the certificates of a cluster. They are for throw-away
// clusters: a year of validity, no revocation, keys in plain files.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const validity = 365 * 24 * time.Hour

// Authority signs certificates; its own and theirs are files in one directory.
type Authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Leaf describes a certificate.
type Leaf struct {
	// Name is the base name of the files NAME.crt and NAME.key.
	Name          string
	CommonName    string
	Organizations []string
	// DNSNames and IPs make it a server certificate; without them it is a client's.
	DNSNames []string
	IPs      []net.IP
}

// NewAuthority makes a certificate authority with the files NAME.crt and NAME.key.
func NewAuthority(dir, name string) (*Authority, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	a := &Authority{dir: dir}
	cert, key, err := a.sign(name, template)
	if err != nil {
		return nil, fmt.Errorf("certificate authority %s: %w", name, err)
	}
	a.cert, a.key = cert, key
	return a, nil
}

// LoadAuthority reads an authority that NewAuthority made.
func LoadAuthority(dir, name string) (*Authority, error) {
	certDER, err := readPEM(filepath.Join(dir, name+".crt"))
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(certDER)
	if err != nil {
		return nil, err
	}
	keyDER, err := readPEM(filepath.Join(dir, name+".key"))
	if err != nil {
		return nil, err
	}
	key, err := x509.ParseECPrivateKey(keyDER)
	if err != nil {
		return nil, err
	}
	return &Authority{dir: dir, cert: cert, key: key}, nil
}

// Issue makes a key and a certificate for it.
func (a *Authority) Issue(leaf Leaf) error {
	usage := x509.ExtKeyUsageClientAuth
	if len(leaf.DNSNames)+len(leaf.IPs) > 0 {
		usage = x509.ExtKeyUsageServerAuth
	}
	_, _, err := a.sign(leaf.Name, &x509.Certificate{
		Subject:     pkix.Name{CommonName: leaf.CommonName, Organization: leaf.Organizations},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{usage},
		DNSNames:    leaf.DNSNames,
		IPAddresses: leaf.IPs,
	})
	if err != nil {
		return fmt.Errorf("certificate %s: %w", leaf.Name, err)
	}
	return nil
}

// sign completes a template with a new key, signs it and writes both. An
// authority that has no certificate yet signs with the new key.
func (a *Authority) sign(name string, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := newKey(filepath.Join(a.dir, name+".key"))
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, err
	}
	template.SerialNumber = serial
	// An hour earlier, for machines whose clock is set back after the start.
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = time.Now().Add(validity)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, err
	}
	return cert, key, writePEM(filepath.Join(a.dir, name+".crt"), "CERTIFICATE", der)
}

// NewKeyPair makes NAME.key and NAME.pub, the keys of service account tokens.
func NewKeyPair(dir, name string) error {
	key, err := newKey(filepath.Join(dir, name+".key"))
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	return writePEM(filepath.Join(dir, name+".pub"), "PUBLIC KEY", der)
}

func newKey(file string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, writePEM(file, "EC PRIVATE KEY", der)
}

func writePEM(file, kind string, der []byte) error {
	return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}

func readPEM(file string) ([]byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("%s: no PEM block", file)
	}
	return block.Bytes, nil
}
