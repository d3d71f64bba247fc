// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const (
	// lifetime is that of a certificate and of the authority made for it.
	lifetime = 365 * 24 * time.Hour
	// backdating lets machines whose clocks are a little behind accept a new certificate.
	backdating = 5 * time.Minute
)

// pair is a serving certificate and what clients need to verify it. All fields are PEM.
type pair struct {
	bundle []byte
	cert   []byte
	key    []byte
}

// issue makes a new authority and with it one serving certificate for the given names. The authority's key is thrown away at once: it
// could sign nothing but what it was made for. The authorities in previous that are still valid stay in the bundle, so that
// replicas that serve the old certificate are still trusted.
func issue(now time.Time, names []string, previous []byte) (pair, error) {
	notBefore, notAfter := now.Add(-backdating), now.Add(lifetime)
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, fmt.Errorf("generating the authority's key: %w", err)
	}
	ca, err := sign(&x509.Certificate{
		Subject:   pkix.Name{CommonName: fmt.Sprintf("%s-ca@%d", names[0], now.Unix())},
		NotBefore: notBefore, NotAfter: notAfter,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IsCA:     true, BasicConstraintsValid: true,
	}, nil, caKey.Public(), caKey)
	if err != nil {
		return pair{}, fmt.Errorf("signing the authority: %w", err)
	}
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, fmt.Errorf("generating the serving key: %w", err)
	}
	leaf, err := sign(&x509.Certificate{
		Subject:   pkix.Name{CommonName: names[0]},
		DNSNames:  names,
		NotBefore: notBefore, NotAfter: notAfter,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, ca, leafKey.Public(), caKey)
	if err != nil {
		return pair{}, fmt.Errorf("signing the serving certificate: %w", err)
	}
	key, err := keyutil.MarshalPrivateKeyToPEM(leafKey)
	if err != nil {
		return pair{}, fmt.Errorf("encoding the serving key: %w", err)
	}
	bundle, err := cert.EncodeCertificates(append([]*x509.Certificate{ca}, stillValid(previous, now)...)...)
	if err != nil {
		return pair{}, fmt.Errorf("encoding the bundle: %w", err)
	}
	leafPEM, err := cert.EncodeCertificates(leaf)
	if err != nil {
		return pair{}, fmt.Errorf("encoding the serving certificate: %w", err)
	}
	return pair{bundle: bundle, cert: leafPEM, key: key}, nil
}

// sign signs the template with the signer's key. Without a parent the certificate is its own issuer.
func sign(template, parent *x509.Certificate, public crypto.PublicKey, signer crypto.Signer) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, signer)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

func stillValid(bundle []byte, now time.Time) []*x509.Certificate {
	// What cannot be parsed is not worth keeping: clients could not use it either.
	certs, _ := cert.ParseCertsPEM(bundle)
	var valid []*x509.Certificate
	for _, c := range certs {
		if now.Before(c.NotAfter) {
			valid = append(valid, c)
		}
	}
	return valid
}

// usable reports whether the pair serves the given names and has more than a third of its life left.
func (p pair) usable(now time.Time, names []string) bool {
	keyPair, err := tls.X509KeyPair(p.cert, p.key)
	if err != nil {
		return false
	}
	leaf := keyPair.Leaf
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(p.bundle) {
		return false
	}
	for _, name := range names {
		if _, err := leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: now}); err != nil {
			return false
		}
	}
	return now.Before(leaf.NotAfter.Add(-lifetime / 3))
}
