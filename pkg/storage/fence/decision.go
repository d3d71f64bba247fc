// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package fence

import "fmt"

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

// lossReason says for people what was lost. The verdict is replaced or rolledBack. Different tokens have different reasons.
func lossReason(v verdict, observed observation, recorded record) string {
	switch {
	case recorded == record{}:
		return fmt.Sprintf("the storage is %s, but the record of it is unreadable", observed.token())
	case v == replaced:
		return fmt.Sprintf("the storage is %s, but the recorded one is %s", observed.token(), recorded)
	default:
		return fmt.Sprintf("the storage was rolled back to %s, but the recorded one is %s", observed.token(), recorded)
	}
}
