// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"testing"

	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
)

func TestUnsettled(t *testing.T) {
	missing := func(o *Object) { o.Claim.Reason = extensionsv1beta1.ClaimReasonSandboxMissing }
	for name, tc := range map[string]struct {
		history   [][]Change
		dismissed bool
		want      []string
	}{
		"pool is full": {history: start()},
		"claimed and refilled": {
			history: start(at(claim("c", "s"), claimed("s", "c")), at(member("u"))),
		},
		"claimed and not refilled": {
			history: start(at(claim("c", "s"), claimed("s", "c"))),
			want:    []string{WrongPoolSize},
		},
		"one member too many": {
			history: start(at(member("u"))),
			want:    []string{WrongPoolSize},
		},
		"pool counts wrongly": {
			history: start(at(pool("p", 2, func(o *Object) { o.Pool.CountedReady = 1 }))),
			want:    []string{WrongPoolSize},
		},
		"pool has members of its predecessor": {
			history: start(at(deletion(Pools, "p")), at(pool("p", 2, withUID("again")))),
			want:    []string{StraySandbox, WrongPoolSize},
		},
		"Sandbox of a claim that is gone": {
			history: start(at(claim("c", "")), at(cold("c")), at(deletion(Claims, "c"))),
			want:    []string{StraySandbox},
		},
		"member that is not ready": {
			history: start(at(member("t", func(o *Object) { o.Sandbox.Ready = false }))),
			want:    []string{StraySandbox},
		},
		"member that is being deleted": {
			history: start(at(member("t", deleting))),
			want:    []string{StraySandbox},
		},
		"reserved member": {
			history: start(at(member("t", func(o *Object) { o.Sandbox.ReservedFor = "somebody" }))),
			want:    []string{StrayReservation},
		},
		"claim waits": {
			history: start(at(claim("c", ""))),
			want:    []string{UnservedClaim},
		},
		"claim is there after its time": {
			history: start(at(claim("c", "")), at(cold("c")), at(claim("c", "c", expiring))),
			want:    []string{NotExpired},
		},
		"claim is being deleted": {
			history: start(at(claim("c", "")), at(cold("c")), at(claim("c", "c", deleting))),
			want:    []string{UnservedClaim},
		},
		"claim does not know its Sandbox": {
			history: start(at(claim("c", "")), at(cold("c"))),
			want:    []string{UnservedClaim},
		},
		"claim knows other addresses": {
			history: start(at(claim("c", "")), at(cold("c")), at(claim("c", "c", func(o *Object) { o.Claim.PodIPs = []string{"10.0.0.2"} }))),
			want:    []string{UnservedClaim},
		},
		"claim's Sandbox was deleted by somebody": {
			history:   start(at(claim("c", "")), at(cold("c")), at(claim("c", "c")), at(deletion(Sandboxes, "c")), at(claim("c", "", missing))),
			dismissed: true,
		},
		"claim does not know that its Sandbox was deleted": {
			history:   start(at(claim("c", "")), at(cold("c")), at(claim("c", "c")), at(deletion(Sandboxes, "c"))),
			dismissed: true,
			want:      []string{UnservedClaim},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := replay(tc.history...)
			if tc.dismissed {
				r.Dismiss("sandbox-c")
			}
			checkRules(t, Unsettled(r), tc.want...)
		})
	}
}
