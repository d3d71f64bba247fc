// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"slices"
	"testing"
)

func TestMissing(t *testing.T) {
	all := []requirement{{"iproute2", "ip"}, {"nftables", "nft"}, {"gcc", "gcc"}}
	got := missing(all, func(probe string) bool { return probe == "nft" })
	if want := []string{"iproute2", "gcc"}; !slices.Equal(got, want) {
		t.Errorf("missing = %v, want %v", got, want)
	}
}
