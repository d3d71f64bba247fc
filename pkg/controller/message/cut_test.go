// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package message

import "testing"

func TestCutKeepsCharactersWhole(t *testing.T) {
	for _, test := range []struct {
		text string
		size int
		want string
	}{
		{"", 3, ""}, {"abc", 3, "abc"}, {"abcd", 3, "abc"}, {"aéé", 3, "aé"}, {"aéé", 4, "aé"}, {"é", 1, ""},
	} {
		if got := Cut(test.text, test.size); got != test.want {
			t.Errorf("%q cut to %d bytes is %q, want %q", test.text, test.size, got, test.want)
		}
	}
}
