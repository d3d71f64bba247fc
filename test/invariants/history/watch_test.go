// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/watch"
)

// watched is a history with its right list at revision 5 and the right watch of Sandboxes from there on.
func watched() (*Record, *Watch) {
	r, _ := replay(start(
		at(claim("c", "s"), claimed("s", "c")),
		at(deletion(Claims, "c")),
		at(member("u")),
		at(claim("d", "t"), claimed("t", "d")),
		at(deletion(Sandboxes, "s")),
	)...)
	return r, &Watch{
		Who: "somebody", Resource: Sandboxes, From: 5, To: 8,
		List: map[Key]Version{key(Sandboxes, "s"): {4, claimed("s", "c").Object}, key(Sandboxes, "t"): {3, member("t").Object}},
		Events: []Event{
			{watch.Added, key(Sandboxes, "u"), 6, member("u").Object, "one"},
			{watch.Modified, key(Sandboxes, "t"), 7, claimed("t", "d").Object, "one"},
			{watch.Deleted, key(Sandboxes, "s"), 8, nil, "two"},
		},
	}
}

func TestCheckWatch(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Watch)
		want   []string
	}{
		"all there":          {change: func(*Watch) {}},
		"later bookmark":     {change: func(w *Watch) { w.To = 100 }},
		"earlier end":        {change: func(w *Watch) { w.To, w.Events = 7, w.Events[:2] }},
		"gap":                {change: func(w *Watch) { w.Events = slices.Delete(w.Events, 1, 2) }, want: []string{WrongWatch}},
		"end before the end": {change: func(w *Watch) { w.Events = w.Events[:2] }, want: []string{WrongWatch}},
		"twice":              {change: func(w *Watch) { w.Events = append(w.Events, w.Events[2]) }, want: []string{WrongWatch}},
		"out of order":       {change: func(w *Watch) { slices.Reverse(w.Events) }, want: []string{WrongWatch}},
		"other type":         {change: func(w *Watch) { w.Events[0].Type = watch.Modified }, want: []string{WrongWatch}},
		"other revision":     {change: func(w *Watch) { w.Events[0].Revision++ }, want: []string{WrongWatch}},
		"other content":      {change: func(w *Watch) { w.Events[1].Object = member("t").Object }, want: []string{WrongWatch}},
	} {
		t.Run(name, func(t *testing.T) {
			r, w := watched()
			tc.change(w)
			checkRules(t, CheckWatch(r, w), tc.want...)
		})
	}
}

func TestCheckList(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Watch)
		want   []string
	}{
		"all there": {change: func(*Watch) {}},
		"one missing": {
			change: func(w *Watch) { delete(w.List, key(Sandboxes, "t")) },
			want:   []string{WrongList},
		},
		"one that was not there yet": {
			change: func(w *Watch) { w.List[key(Sandboxes, "u")] = Version{6, member("u").Object} },
			want:   []string{WrongList},
		},
		"one that never was": {
			change: func(w *Watch) { w.List[key(Sandboxes, "x")] = Version{6, member("x").Object} },
			want:   []string{WrongList},
		},
		"older content": {
			change: func(w *Watch) { w.List[key(Sandboxes, "s")] = Version{2, member("s").Object} },
			want:   []string{WrongList},
		},
		"other revision": {
			change: func(w *Watch) { w.List[key(Sandboxes, "s")] = Version{5, claimed("s", "c").Object} },
			want:   []string{WrongList},
		},
		"before anything": {
			change: func(w *Watch) { w.From = 1; maps.DeleteFunc(w.List, func(Key, Version) bool { return true }) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, w := watched()
			tc.change(w)
			checkRules(t, CheckList(r, w), tc.want...)
		})
	}
}
