// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package binder_test

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/claimtest"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/registrytest"
)

// awaitAnnouncement moves the clock until a claim is no longer as it was.
func awaitAnnouncement(s *claimtest.Server, claim *extensions.SandboxClaim) *extensions.SandboxClaim {
	s.Helper()
	var current *extensions.SandboxClaim
	s.Eventually("the claim is announced", func() bool {
		// What is queued may reach the timer only after the clock was moved.
		s.Clock.Step(time.Second)
		current = s.Claim(claim.Name)
		return current.ResourceVersion != claim.ResourceVersion
	})
	return current
}

// TestBoundClaimIsAnnouncedOnce watches a claim from the answer to its creation on.
func TestBoundClaimIsAnnouncedOnce(t *testing.T) {
	for name, start := range map[string]func(t *testing.T) *claimtest.Server{
		"bound in one transaction": func(t *testing.T) *claimtest.Server { return claimtest.Start(t, registrytest.StartEtcd(t)) },
		"bound in two steps":       startTwoEtcds,
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			s.AddPoolOf("pool", 1)
			bound := s.MustCreate(managedClaim("claim", "pool"))
			at := s.Clock.Now()
			w := startWatch(t, s.Claims, bound.ResourceVersion)

			announced := awaitAnnouncement(s, bound)

			want := bound.DeepCopy()
			want.Annotations[extensionsv1beta1.ClaimFirstReadyAtAnnotation] = at.UTC().Format(time.RFC3339Nano)
			if diff := cmp.Diff(want, announced, cmpopts.IgnoreFields(metav1.ObjectMeta{}, "ResourceVersion", "ManagedFields")); diff != "" {
				t.Errorf("the announced claim (-want +got):\n%s", diff)
			}
			wantEvent(t, "the announcement", w, event{watch.Modified, "claim", announced.ResourceVersion})
			changed := announced.DeepCopy()
			changed.Annotations["example.com/seen"] = "true"
			s.Clock.Step(time.Hour)
			wantEvent(t, "the next event", w, event{watch.Modified, "claim", s.UpdateClaim(changed).ResourceVersion})
		})
	}
}

// TestClaimsGoBeforeAnnouncements announces nothing while many claims are being created, and then does.
func TestClaimsGoBeforeAnnouncements(t *testing.T) {
	for name, test := range map[string]struct {
		crowd int
		// after is how long the clock goes until the claim may be announced.
		after time.Duration
	}{
		"a crowd that stays": {crowd: 100, after: 500 * time.Millisecond},
		"no crowd":           {crowd: 1, after: 4 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			s := claimtest.Start(t, registrytest.StartEtcd(t))
			s.AddPoolOf("pool", 1)
			claim := s.MustCreate(claimtest.Claim("claim", "pool"))
			leave := s.Binder.Crowd(test.crowd)
			defer leave()
			begin := s.Clock.Now()
			for s.Clock.Since(begin) < test.after {
				if got := s.Claim("claim"); got.ResourceVersion != claim.ResourceVersion {
					t.Fatalf("the claim was announced after %v", s.Clock.Since(begin))
				}
				s.Clock.Step(5 * time.Millisecond)
			}
			awaitAnnouncement(s, claim)
		})
	}
}

// TestWaitingClaimIsNotAnnounced stores a claim for which there is nothing to give, and then one that is bound: only that is announced.
func TestWaitingClaimIsNotAnnounced(t *testing.T) {
	s := claimtest.Start(t, registrytest.StartEtcd(t))
	s.AddPoolOf("pool", 1)
	waiting := s.MustCreate(claimtest.Claim("waiting", "none"))
	awaitAnnouncement(s, s.MustCreate(claimtest.Claim("bound", "pool")))
	if diff := cmp.Diff(waiting, s.Claim("waiting")); diff != "" {
		t.Errorf("the waiting claim has changed (-before +after):\n%s", diff)
	}
}

// TestAnnouncementThatIsOutOfDateWritesNothing announces a claim that is not there any more, or not as it was.
func TestAnnouncementThatIsOutOfDateWritesNothing(t *testing.T) {
	for name, test := range map[string]struct {
		meanwhile func(s *claimtest.Server, claim *extensions.SandboxClaim)
		fails     func(error) bool
	}{
		"deleted": {
			meanwhile: func(s *claimtest.Server, claim *extensions.SandboxClaim) { s.Delete(s.Claims, claim.Name) },
			fails:     storage.IsNotFound,
		},
		"replaced by another of its name": {
			meanwhile: func(s *claimtest.Server, claim *extensions.SandboxClaim) {
				s.Delete(s.Claims, claim.Name)
				s.MustCreate(claimtest.Claim(claim.Name, "pool"))
			},
			fails: storage.IsInvalidObj,
		},
		"announced by the controller": {
			meanwhile: func(s *claimtest.Server, claim *extensions.SandboxClaim) {
				claim = claim.DeepCopy()
				claim.Annotations = maps.Clone(claim.Annotations)
				claim.Annotations[extensionsv1beta1.ClaimFirstReadyAtAnnotation] = "earlier"
				s.UpdateClaim(claim)
			},
			fails: func(err error) bool { return err == nil },
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := claimtest.Start(t, registrytest.StartEtcd(t))
			s.AddPoolOf("pool", 1)
			claim := s.MustCreate(claimtest.Claim("claim", "pool"))
			test.meanwhile(s, claim)
			before := list[*extensions.SandboxClaimList](t, s.Claims).Items
			if err := s.Binder.Announce(t.Context(), claim, s.Clock.Now()); !test.fails(err) {
				t.Errorf("announcing: %v", err)
			}
			if diff := cmp.Diff(before, list[*extensions.SandboxClaimList](t, s.Claims).Items); diff != "" {
				t.Errorf("claims have changed (-before +after):\n%s", diff)
			}
		})
	}
}
