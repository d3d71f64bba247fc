// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package labeldomains

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want List
	}{
		"nothing":                  {"", Default},
		"only separators":          {" ,\n, \r\n", Default},
		"replaces the default":     {"example.com", List{"example.com"}},
		"commas":                   {"a.io, b.io,c.io", List{"a.io", "b.io", "c.io"}},
		"lines":                    {"a.io\r\nb.io\n", List{"a.io", "b.io"}},
		"cases are not told apart": {"Example.COM", List{"example.com"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Parse(test.text)); diff != "" {
				t.Errorf("list differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAllows(t *testing.T) {
	list := List{"example.com", "users.io"}
	for prefix, want := range map[string]bool{
		"example.com":         true,
		"a.b.example.com":     true,
		"A.Example.com":       true,
		"users.io":            true,
		"notexample.com":      false,
		"com":                 false,
		".com":                false,
		"example.com.evil.io": false,
		"":                    false,
	} {
		if got := list.Allows(prefix); got != want {
			t.Errorf("%q is allowed: %v, want %v", prefix, got, want)
		}
	}
	if !Default.Allows("sandbox.users.io") || Default.Allows("users.io") {
		t.Error("the default list is not what is documented")
	}
}
