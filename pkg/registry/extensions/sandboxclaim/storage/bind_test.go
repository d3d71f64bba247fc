// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/claimtest"
)

// startWaiting returns a server with a claim that waits, and then as many members that it could be given.
func startWaiting(t *testing.T, members int) *claimtest.Server {
	t.Helper()
	s := start(t)
	pool := s.AddPoolOf("pool", 0)
	s.MustCreate(claimtest.Claim("claim", "pool"))
	for i := range members {
		s.AddMember(claimtest.Member(pool, i), claimtest.ReadyStatus())
	}
	s.AwaitCandidates("pool", members)
	return s
}

func TestBind(t *testing.T) {
	s := startWaiting(t, 2)
	bound, err := s.Bind("claim", &extensions.SandboxClaimBind{}, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s.Claim("claim"), bound); diff != "" || bound.Status.Sandbox.Name == "" {
		t.Errorf("the answer is not the bound claim that was stored (-stored +answer):\n%s", diff)
	}
	again, err := s.Bind("claim", &extensions.SandboxClaimBind{}, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(bound, again); diff != "" {
		t.Errorf("binding twice changed the claim (-once +twice):\n%s", diff)
	}
	if got := s.Candidates("pool"); got != 1 {
		t.Errorf("%d candidates are left, want 1", got)
	}
}

func TestBindWithNothingToGive(t *testing.T) {
	s := startWaiting(t, 0)
	before := s.Claim("claim")
	got, err := s.Bind("claim", &extensions.SandboxClaimBind{}, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, got); diff != "" {
		t.Errorf("the claim changed (-before +answer):\n%s", diff)
	}
}

func TestBindDryRunGivesNothing(t *testing.T) {
	s := startWaiting(t, 1)
	before := s.Claim("claim")
	got, err := s.Bind("claim", &extensions.SandboxClaimBind{}, &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, got); diff != "" {
		t.Errorf("the answer (-claim +answer):\n%s", diff)
	}
	if diff := cmp.Diff(before, s.Claim("claim")); diff != "" {
		t.Errorf("the claim changed (-before +after):\n%s", diff)
	}
	if got := s.Candidates("pool"); got != 1 {
		t.Errorf("%d candidates are left, want 1", got)
	}
}

func TestBindRefuses(t *testing.T) {
	refuse := func(context.Context, runtime.Object) error {
		return apierrors.NewForbidden(extensions.Resource("sandboxclaims"), "claim", nil)
	}
	for name, test := range map[string]struct {
		body     runtime.Object
		target   string
		validate rest.ValidateObjectFunc
		deleting bool
		want     int32
	}{
		"a claim that is not there":     {target: "other", want: http.StatusNotFound},
		"a body that names another":     {body: &extensions.SandboxClaimBind{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, want: http.StatusBadRequest},
		"a body of another kind":        {body: &agents.SandboxSuspend{}, want: http.StatusBadRequest},
		"another UID":                   {body: preconditions(agents.Preconditions{UID: ptr.To(types.UID("other"))}), want: http.StatusConflict},
		"another resourceVersion":       {body: preconditions(agents.Preconditions{ResourceVersion: ptr.To("0")}), want: http.StatusConflict},
		"what admission refuses":        {validate: refuse, want: http.StatusForbidden},
		"a claim that is being deleted": {deleting: true, want: http.StatusConflict},
	} {
		t.Run(name, func(t *testing.T) {
			s := startWaiting(t, 1)
			if test.deleting {
				foreground := metav1.DeletePropagationForeground
				if _, _, err := s.Claims.Delete(claimtest.Context(t.Context()), "claim", rest.ValidateAllObjectFunc,
					&metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
					t.Fatal(err)
				}
			}
			target, body := test.target, test.body
			if target == "" {
				target = "claim"
			}
			if body == nil {
				body = &extensions.SandboxClaimBind{}
			}
			before := s.Claim("claim")
			_, err := s.ClaimBind.Create(claimtest.Context(t.Context()), target, body, test.validate, &metav1.CreateOptions{})
			var status apierrors.APIStatus
			if !errors.As(err, &status) || status.Status().Code != test.want {
				t.Errorf("error is %v, want one with code %d", err, test.want)
			}
			if diff := cmp.Diff(before, s.Claim("claim")); diff != "" {
				t.Errorf("the claim changed (-before +after):\n%s", diff)
			}
			if got := s.Candidates("pool"); got != 1 {
				t.Errorf("%d candidates are left, want 1", got)
			}
		})
	}
}

func preconditions(p agents.Preconditions) *extensions.SandboxClaimBind {
	return &extensions.SandboxClaimBind{Preconditions: &p}
}

func TestBindWithMatchingPreconditions(t *testing.T) {
	s := startWaiting(t, 1)
	claim := s.Claim("claim")
	got, err := s.Bind("claim", preconditions(agents.Preconditions{UID: &claim.UID, ResourceVersion: &claim.ResourceVersion}), &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Status.Sandbox.Name != "pool-00000" {
		t.Errorf("the claim got %q, want pool-00000", got.Status.Sandbox.Name)
	}
}
