// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
)

// Rules about each transaction.
const (
	// TwoOfOneResource is broken by a transaction that writes two objects of a resource: a watch that resumes at its revision, after
	// one of the two events, loses the other.
	TwoOfOneResource = "TwoOfOneResource"
	// SandboxReused is broken by a Sandbox that had a claim for its controller and then another one, a pool, or nobody.
	SandboxReused = "SandboxReused"
	// SecondSandbox is broken by a claim that gets a Sandbox and ever had another.
	SecondSandbox = "SecondSandbox"
	// NoController is broken by a Sandbox that belongs to nobody.
	NoController = "NoController"
	// WrongAdoption is broken by a claim that is given what is not an idle member of the pool it names.
	WrongAdoption = "WrongAdoption"
	// NotAtOnce is broken by a Sandbox that is given to a claim which does not say so at the same revision.
	NotAtOnce = "NotAtOnce"
	// WrongColdStart is broken by a Sandbox made for a claim that does not say so, or has another name than the claim.
	WrongColdStart = "WrongColdStart"
	// WrongName is broken by a claim whose status names a Sandbox that never belonged to it.
	WrongName = "WrongName"
	// ReadyWithout is broken by a claim that is ready without a Sandbox or without addresses.
	ReadyWithout = "ReadyWithout"
	// LostSandbox is broken by the deletion of a Sandbox whose claim lives.
	LostSandbox = "LostSandbox"
	// OverfullPool is broken by a new member of a pool that has far more than it was ever asked for.
	OverfullPool = "OverfullPool"
)

// rules judge a transaction that is stored in the record already. Their order matters: the first ones note who belongs to whom.
var rules = []func(*step){
	twoOfOneResource,
	each(exclusive),
	each(adopted),
	each(named),
	each(ready),
	each(lost),
	each(overfull),
	each(count),
}

// step is a transaction that is being judged.
type step struct {
	*Record
	revision   int64
	changes    []changed
	violations []Violation
}

// changed is a change, and what the key held before.
type changed struct {
	Key
	before, after *Object
}

func (s *step) violate(rule string, keys []Key, format string, args ...any) {
	text := fmt.Sprintf("revision %d: ", s.revision) + fmt.Sprintf(format, args...)
	s.violations = append(s.violations, Violation{Rule: rule, Text: text, Keys: keys})
}

// each returns a rule about all changes of a transaction, of one about each.
func each(rule func(*step, changed)) func(*step) {
	return func(s *step) {
		for _, c := range s.changes {
			rule(s, c)
		}
	}
}

func twoOfOneResource(s *step) {
	seen := map[string]Key{}
	for _, c := range s.changes {
		if other, twice := seen[c.Resource]; twice {
			s.violate(TwoOfOneResource, []Key{other, c.Key}, "%s and %s were written at once", other, c.Key)
		}
		seen[c.Resource] = c.Key
	}
}

// exclusive notes which claim a Sandbox belongs to, for ever.
func exclusive(s *step, c changed) {
	if c.after == nil || c.after.Sandbox == nil {
		return
	}
	controller := c.after.Controller
	if controller.UID == "" {
		s.violate(NoController, []Key{c.Key}, "%s has no controller", c.Key)
	}
	keys := []Key{c.Key, {Claims, c.Namespace, controller.Name}}
	switch claim := s.claimOf[c.after.UID]; {
	case claim != "":
		if controller.UID != claim || controller.Kind != ClaimKind {
			s.violate(SandboxReused, keys, "%s of UID %s belonged to claim %s and has the controller %+v", c.Key, c.after.UID, claim, controller)
		}
	case controller.Kind == ClaimKind:
		s.claimOf[c.after.UID] = controller.UID
		if other, has := s.boxOf[controller.UID]; has {
			s.violate(SecondSandbox, append(keys, other.Key), "claim %s of UID %s gets %s and had %s",
				controller.Name, controller.UID, c.Key, other.Key)
			return
		}
		s.boxOf[controller.UID] = box{c.Key, c.after.UID}
	}
}

// adopted judges how a Sandbox came to a claim.
func adopted(s *step, c changed) {
	if c.after == nil || c.after.Sandbox == nil || c.after.Controller.Kind != ClaimKind ||
		(c.before != nil && c.before.UID == c.after.UID && c.before.Controller.Kind == ClaimKind) {
		return
	}
	controller := c.after.Controller
	claimKey := Key{Claims, c.Namespace, controller.Name}
	keys := []Key{c.Key, claimKey}
	if c.before == nil || c.before.UID != c.after.UID {
		if c.Name != controller.Name || c.after.Sandbox.LaunchType != agentsv1beta1.LaunchTypeCold {
			s.violate(WrongColdStart, keys, "%s was made for claim %s with launch type %q", c.Key, controller.Name, c.after.Sandbox.LaunchType)
		}
		return
	}
	claim := s.present[claimKey]
	if claim == nil || claim.UID != controller.UID || claim.Claim.Sandbox != c.Name || !s.changedNow(claimKey) {
		s.violate(NotAtOnce, keys, "%s was given to claim %s of UID %s, which is %s", c.Key, controller.Name, controller.UID, claim)
		return
	}
	poolKey := Key{Pools, c.Namespace, claim.Claim.Pool}
	pool, owner := s.present[poolKey], c.before.Controller
	if pool == nil || owner != (Owner{PoolKind, poolKey.Name, pool.UID}) || c.before.Deleting || claim.Claim.Cold ||
		c.after.Sandbox.LaunchType != agentsv1beta1.LaunchTypeWarm {
		s.violate(WrongAdoption, append(keys, poolKey), "%s (%s) was given to %s (%s), whose pool is %s", c.Key, c.before, claimKey, claim, pool)
	}
}

func (s *step) changedNow(key Key) bool {
	versions := s.versions[key]
	return len(versions) > 0 && versions[len(versions)-1].Revision == s.revision
}

// named judges the name in a claim's status.
func named(s *step, c changed) {
	if c.after == nil || c.after.Claim == nil || c.after.Claim.Sandbox == "" {
		return
	}
	if own := s.boxOf[c.after.UID]; own.Key != (Key{Sandboxes, c.Namespace, c.after.Claim.Sandbox}) {
		s.violate(WrongName, []Key{c.Key, own.Key, {Sandboxes, c.Namespace, c.after.Claim.Sandbox}},
			"%s names Sandbox %s, its own is %s", c.Key, c.after.Claim.Sandbox, own.Key)
	}
}

func ready(s *step, c changed) {
	if c.after == nil || c.after.Claim == nil || !c.after.Claim.Ready {
		return
	}
	if c.after.Claim.Sandbox == "" || len(c.after.Claim.PodIPs) == 0 {
		s.violate(ReadyWithout, []Key{c.Key}, "%s is ready, and is %s", c.Key, c.after)
	}
}

// lost judges the deletion of a Sandbox, which begins with a time of deletion if there are finalizers.
func lost(s *step, c changed) {
	if c.before == nil || c.before.Sandbox == nil || c.before.Deleting || s.dismissed[c.before.UID] {
		return
	}
	if c.after != nil && c.after.UID == c.before.UID && !c.after.Deleting {
		return
	}
	claimKey, lives := s.claims[s.claimOf[c.before.UID]]
	if lives && !s.present[claimKey].Deleting {
		s.violate(LostSandbox, []Key{c.Key, claimKey}, "%s was deleted, and %s lives", c.Key, claimKey)
	}
}

// overfullShare is how far beyond its size a pool may be: one creation may be under way twice, by a controller that was killed and by
// its successor, or because its answer was lost.
const overfullShare = 2

func overfull(s *step, c changed) {
	if c.before != nil || c.after == nil || c.after.Sandbox == nil || c.after.Controller.Kind != PoolKind {
		return
	}
	members := 0
	for _, object := range s.present {
		if object.Sandbox != nil && object.Controller.UID == c.after.Controller.UID && !object.Deleting {
			members++
		}
	}
	peak := int(s.peaks[c.after.Controller.UID])
	s.stats.Overshoot = max(s.stats.Overshoot, members-peak)
	if members > overfullShare*peak {
		poolKey := Key{Pools, c.Namespace, c.after.Controller.Name}
		s.violate(OverfullPool, []Key{poolKey, c.Key}, "%s has %d members, and was never asked for more than %d", poolKey, members, peak)
	}
}

// count judges nothing.
func count(s *step, c changed) {
	switch {
	case c.after == nil:
		if c.before != nil && c.before.Claim != nil {
			s.stats.Deleted++
		}
	case c.after.Claim != nil:
		if c.before != nil {
			return
		}
		s.stats.Claims++
		if c.after.Claim.Sandbox != "" {
			s.stats.AtOnce++
		}
	case c.after.Sandbox != nil:
		s.countSandbox(c)
	}
}

func (s *step) countSandbox(c changed) {
	if c.after.Sandbox.ReservedFor != "" && (c.before == nil || c.before.Sandbox.ReservedFor == "") {
		s.stats.Reserved++
	}
	if c.after.Controller.Kind != ClaimKind || (c.before != nil && c.before.Controller.Kind == ClaimKind) {
		return
	}
	claimKey := Key{Claims, c.Namespace, c.after.Controller.Name}
	switch {
	case c.before == nil:
		s.stats.Cold++
	case len(s.versions[claimKey]) > 1:
		s.stats.Later++
	}
}
