// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/watch"
)

// Rules about lists and watches.
const (
	// WrongList is broken by a list that is not what was stored at its revision.
	WrongList = "WrongList"
	// WrongWatch is broken by a watch with a gap, or with an event that is out of order, twice, or not what was stored.
	WrongWatch = "WrongWatch"
)

// Watch is what a client saw of a resource: a list, and then every event of a watch, which may have been broken off and resumed at
// any server where it was.
type Watch struct {
	// Who tells watches apart.
	Who      string
	Resource string
	// From is the revision of the list.
	From int64
	List map[Key]Version
	// Events are in the order in which they came.
	Events []Event
	// To is the revision of the last event, or of a later bookmark: nothing before is missing.
	To int64
}

// Event is an event of a watch.
type Event struct {
	Type     watch.EventType
	Key      Key
	Revision int64
	// Object is nil if the event is a deletion.
	Object *Object
	// Server is who sent the event.
	Server string
}

// CheckList holds the list that a watch began with against the record, which must have come to its revision.
func CheckList(r *Record, w *Watch) []Violation {
	r.mu.Lock()
	defer r.mu.Unlock()
	var violations []Violation
	differ := func(key Key, diff string) {
		violations = append(violations, Violation{
			Rule: WrongList, Text: fmt.Sprintf("list of %s at revision %d: %s (-stored +listed):\n%s", w.Who, w.From, key, diff), Keys: []Key{key},
		})
	}
	for key := range r.versions {
		if key.Resource != w.Resource {
			continue
		}
		listed := w.List[key]
		if diff := cmp.Diff(r.at(key, w.From), listed.Object); diff != "" {
			differ(key, diff)
		} else if listed.Object != nil && !r.writtenAt(key, listed.Revision) {
			differ(key, fmt.Sprintf("resourceVersion %d", listed.Revision))
		}
	}
	for key, listed := range w.List {
		if len(r.versions[key]) == 0 {
			differ(key, listed.Object.String())
		}
	}
	return violations
}

// CheckWatch holds the events of a watch against the record, which must have come to its end.
func CheckWatch(r *Record, w *Watch) []Violation {
	r.mu.Lock()
	defer r.mu.Unlock()
	want := r.events(w.Resource, w.From, w.To)
	for i := range max(len(want), len(w.Events)) {
		var expected, seen *Event
		if i < len(w.Events) {
			seen = &w.Events[i]
		}
		if i < len(want) {
			expected = &want[i]
			if seen != nil {
				expected.Server = seen.Server
			}
		}
		if diff := cmp.Diff(expected, seen); diff != "" {
			// What follows differs because this does.
			return []Violation{{
				Rule: WrongWatch,
				Text: fmt.Sprintf("watch of %s by %s from revision %d to %d: event %d of %d (-stored +seen):\n%s",
					w.Resource, w.Who, w.From, w.To, i, len(want), diff),
				Keys: keysOf(expected, seen),
			}}
		}
	}
	return nil
}

func keysOf(events ...*Event) []Key {
	var keys []Key
	for _, event := range events {
		if event != nil {
			keys = append(keys, event.Key)
		}
	}
	return keys
}

// events returns the events of a resource after a revision, and up to another.
func (r *Record) events(resource string, after, until int64) []Event {
	var events []Event
	for _, w := range r.written[resource] {
		if w.revision <= after || w.revision > until {
			continue
		}
		event := Event{Type: watch.Modified, Key: w.key, Revision: w.revision, Object: r.at(w.key, w.revision)}
		switch {
		case event.Object == nil:
			event.Type = watch.Deleted
		case r.at(w.key, w.revision-1) == nil:
			event.Type = watch.Added
		}
		events = append(events, event)
	}
	return events
}
