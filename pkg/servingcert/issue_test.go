// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"testing"
	"time"

	"k8s.io/client-go/util/cert"
)

var (
	now   = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	names = []string{"server.namespace.svc", "localhost"}
)

func mustIssue(t *testing.T, now time.Time, names []string, previous []byte) pair {
	t.Helper()
	p, err := issue(now, names, previous)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestUsable(t *testing.T) {
	fresh, other := mustIssue(t, now, names, nil), mustIssue(t, now, names, nil)
	for _, test := range []struct {
		name  string
		pair  pair
		now   time.Time
		names []string
		want  bool
	}{
		{"fresh", fresh, now, names, true},
		{"on a clock a little behind", fresh, now.Add(-backdating), names, true},
		{"before a third of its life is left", fresh, now.Add(lifetime*2/3 - time.Minute), names, true},
		{"when a third of its life is left", fresh, now.Add(lifetime * 2 / 3), names, false},
		{"expired", fresh, now.Add(2 * lifetime), names, false},
		{"for another name", fresh, now, []string{"other.namespace.svc"}, false},
		{"empty", pair{}, now, names, false},
		{"with garbage for a certificate", pair{bundle: fresh.bundle, cert: []byte("garbage"), key: fresh.key}, now, names, false},
		{"with garbage for a key", pair{bundle: fresh.bundle, cert: fresh.cert, key: []byte("garbage")}, now, names, false},
		{"with another certificate's key", pair{bundle: fresh.bundle, cert: fresh.cert, key: other.key}, now, names, false},
		{"with another authority", pair{bundle: other.bundle, cert: fresh.cert, key: fresh.key}, now, names, false},
		{"with another authority besides", pair{bundle: append(append([]byte{}, other.bundle...), fresh.bundle...), cert: fresh.cert, key: fresh.key}, now, names, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.pair.usable(test.now, test.names); got != test.want {
				t.Errorf("usable = %v, want %v", got, test.want)
			}
		})
	}
}

func TestRenewalTrustsBothAuthorities(t *testing.T) {
	first := mustIssue(t, now, names, nil)
	later := now.Add(lifetime * 2 / 3)
	second := mustIssue(t, later, names, first.bundle)
	old := pair{bundle: second.bundle, cert: first.cert, key: first.key}
	if !old.usable(now, names) || !second.usable(later, names) {
		t.Error("the renewed bundle does not vouch for the old and the new certificate")
	}
}

func TestRenewalForgetsExpiredAuthorities(t *testing.T) {
	first := mustIssue(t, now, names, nil)
	second := mustIssue(t, now.Add(lifetime), names, append([]byte("garbage\n"), first.bundle...))
	certs, err := cert.ParseCertsPEM(second.bundle)
	if err != nil {
		t.Fatal(err)
	}
	if len(certs) != 1 {
		t.Errorf("the bundle holds %d authorities, want the new one alone", len(certs))
	}
}
