// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package naming

import "testing"

func TestHash(t *testing.T) {
	for in, want := range map[string]string{
		"":                    "811c9dc5",
		"a":                   "e40c292c",
		"my-sandbox":          "374de8f5",
		"python-sandbox-pool": "00375482",
		"test-sandbox":        "86489827",
	} {
		if got := Hash(in); got != want {
			t.Errorf("Hash(%q) = %q, want %q", in, got, want)
		}
	}
}
