// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"

	"github.com/google/go-cmp/cmp"

	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
)

// Rules about what must be in the end.
const (
	// StraySandbox is broken by a Sandbox whose controller is gone, that is being deleted, or that is not ready.
	StraySandbox = "StraySandbox"
	// StrayReservation is broken by a Sandbox that is kept for a claim and not given to it.
	StrayReservation = "StrayReservation"
	// UnservedClaim is broken by a claim without a Sandbox that is ready.
	UnservedClaim = "UnservedClaim"
	// NotExpired is broken by a claim that was to be deleted some time before the end.
	NotExpired = "NotExpired"
	// WrongPoolSize is broken by a pool that has, or counts, more or fewer idle members than it is asked for.
	WrongPoolSize = "WrongPoolSize"
)

// Unsettled returns what is not as it must be once nobody asks for anything any more, and every pool can be filled.
func Unsettled(r *Record) []Violation {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &settling{Record: r}
	members := map[Owner]int32{}
	for key, object := range r.present {
		switch {
		case object.Sandbox != nil:
			s.sandbox(key, object)
			members[object.Controller]++
		case object.Claim != nil:
			s.claim(key, object)
		}
	}
	for key, object := range r.present {
		if object.Pool == nil {
			continue
		}
		want := Pool{Replicas: object.Pool.Replicas, Counted: object.Pool.Replicas, CountedReady: object.Pool.Replicas}
		if got := members[Owner{PoolKind, key.Name, object.UID}]; got != want.Replicas || *object.Pool != want {
			s.violate(WrongPoolSize, key, "%s has %d members, and is %s", key, got, object)
		}
	}
	return s.violations
}

type settling struct {
	*Record
	violations []Violation
}

func (s *settling) violate(rule string, key Key, format string, args ...any) {
	s.violations = append(s.violations, Violation{Rule: rule, Text: fmt.Sprintf(format, args...), Keys: []Key{key}})
}

func (s *settling) sandbox(key Key, object *Object) {
	if object.Sandbox.ReservedFor != "" {
		s.violate(StrayReservation, key, "%s is %s", key, object)
	}
	owner := Key{Namespace: key.Namespace, Name: object.Controller.Name}
	switch object.Controller.Kind {
	case ClaimKind:
		owner.Resource = Claims
	case PoolKind:
		owner.Resource = Pools
	}
	controller := s.present[owner]
	if controller == nil || controller.UID != object.Controller.UID || object.Deleting || !object.Sandbox.Ready {
		s.violate(StraySandbox, key, "%s is %s, and its controller %s", key, object, controller)
	}
}

// claim judges a claim. One whose Sandbox was deleted by somebody who may do that gets no other, and says so.
func (s *settling) claim(key Key, object *Object) {
	if object.Claim.Expires {
		s.violate(NotExpired, key, "%s is %s", key, object)
		return
	}
	own := s.boxOf[object.UID]
	if s.dismissed[own.UID] && s.present[own.Key] == nil {
		if object.Claim.Ready || object.Claim.Sandbox != "" || object.Claim.Reason != extensionsv1beta1.ClaimReasonSandboxMissing {
			s.violate(UnservedClaim, key, "%s is %s, and its Sandbox was deleted", key, object)
		}
		return
	}
	sandbox := s.present[Key{Sandboxes, key.Namespace, object.Claim.Sandbox}]
	if object.Deleting || !object.Claim.Ready || sandbox == nil || sandbox.Controller.UID != object.UID {
		s.violate(UnservedClaim, key, "%s is %s, and its Sandbox %s", key, object, sandbox)
		return
	}
	if diff := cmp.Diff(sandbox.Sandbox.PodIPs, object.Claim.PodIPs); diff != "" {
		s.violate(UnservedClaim, key, "%s has other addresses than its Sandbox (-Sandbox +claim):\n%s", key, diff)
	}
}
