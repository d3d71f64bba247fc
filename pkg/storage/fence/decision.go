// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// verdict is what an observation means in the light of a record.
type verdict int

const (
	// unrecorded: there is no record yet, so there is nothing that could have been lost.
	unrecorded verdict = iota
	// intact: the storage holds all that it was recorded to hold.
	intact
	// accepted: it does not, and somebody took the responsibility.
	accepted
	// replaced: this is another storage, or one that was emptied.
	replaced
	// rolledBack: this is the recorded storage in an earlier state.
	rolledBack
	// displaced: it holds all that it was recorded to hold, but is to hold more now, which was recorded of another storage.
	displaced
)

// decide compares the storage with the record of it, nil if there is none, and with the token of an accepted loss.
func decide(observed observation, recorded *record, acceptedToken string) verdict {
	switch {
	case recorded == nil:
		return unrecorded
	case observed.identity == recorded.identity && observed.marked >= recorded.revision:
		return intact
	case observed.token() == acceptedToken:
		return accepted
	case observed.identity != recorded.identity:
		return replaced
	default:
		return rolledBack
	}
}

// continues reports whether the observation can be of the storage that the same process saw in the given state before.
func (o observation) continues(earlier observation) bool {
	return o.identity == earlier.identity && o.revision >= earlier.revision && o.marked >= earlier.marked
}

// finding is what came out of the comparison of a storage with the record of it.
type finding struct {
	storage  *guarded
	verdict  verdict
	recorded record
	// elsewhere are the names of storages that are recorded but not used.
	elsewhere []string
}

// isLoss reports whether somebody has to take the responsibility.
func (f finding) isLoss() bool {
	return f.verdict == replaced || f.verdict == rolledBack || f.verdict == displaced
}

// reason says for people what was lost. Different tokens have different reasons.
func (f finding) reason() string {
	subject, token := f.storage.subject(), f.storage.seen.token()
	switch {
	case f.recorded == record{}:
		return fmt.Sprintf("%s is %s, but the record of it is missing or unreadable", subject, token)
	case f.verdict == displaced:
		return fmt.Sprintf("%s is %s, but what belongs to %s was recorded to be in another one", subject, token, readable(f.elsewhere...))
	case f.verdict == rolledBack:
		return fmt.Sprintf("%s was rolled back to %s, but the recorded one is %s", subject, token, f.recorded)
	default:
		return fmt.Sprintf("%s is %s, but the recorded one is %s", subject, token, f.recorded)
	}
}

// subject is what people are told that a finding is about.
func (s *guarded) subject() string {
	if s.name == "" {
		return "the storage"
	}
	return "the storage of " + readable(s.name)
}

// readable returns the resources in the names of storages.
func readable(names ...string) string {
	return strings.ReplaceAll(strings.Join(names, ", "), "_", ", ")
}

// comparison is that of all storages with the record. configMap is the one that has the record, nil if there is none.
type comparison struct {
	configMap *corev1.ConfigMap
	findings  []finding
}

// losses returns what somebody has to take the responsibility for before the storages are served from.
func (c comparison) losses() []finding {
	return slices.DeleteFunc(slices.Clone(c.findings), func(f finding) bool { return !f.isLoss() })
}
