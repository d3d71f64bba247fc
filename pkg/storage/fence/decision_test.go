// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	storageA = identity{clusterID: 0xa, uuid: "a"}
	storageB = identity{clusterID: 0xa, uuid: "b"}
	clusterB = identity{clusterID: 0xb, uuid: "a"}
)

func TestDecide(t *testing.T) {
	observed := observation{identity: storageA, revision: 120, marked: 100}
	for name, test := range map[string]struct {
		recorded *record
		token    string
		want     verdict
	}{
		"no record":                          {want: unrecorded},
		"no record, useless acceptance":      {token: "a/a:100", want: unrecorded},
		"marked at the recorded revision":    {recorded: &record{storageA, 100}, want: intact},
		"marked later":                       {recorded: &record{storageA, 99}, want: intact},
		"intact, useless acceptance":         {recorded: &record{storageA, 99}, token: "a/a:100", want: intact},
		"marked earlier":                     {recorded: &record{storageA, 121}, want: rolledBack},
		"marked earlier but grown past":      {recorded: &record{storageA, 110}, want: rolledBack},
		"marked earlier, accepted":           {recorded: &record{storageA, 121}, token: "a/a:100", want: accepted},
		"marked earlier, other state's word": {recorded: &record{storageA, 121}, token: "a/a:99", want: rolledBack},
		"other UUID":                         {recorded: &record{storageB, 50}, want: replaced},
		"other UUID, accepted":               {recorded: &record{storageB, 50}, token: "a/a:100", want: accepted},
		"other UUID, other storage's word":   {recorded: &record{storageB, 50}, token: "a/b:100", want: replaced},
		"other cluster":                      {recorded: &record{clusterB, 50}, want: replaced},
		"other cluster, accepted":            {recorded: &record{clusterB, 50}, token: "a/a:100", want: accepted},
		"unreadable record":                  {recorded: &record{}, want: replaced},
		"unreadable record, accepted":        {recorded: &record{}, token: "a/a:100", want: accepted},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decide(observed, test.recorded, test.token); got != test.want {
				t.Errorf("decide() = %v, want %v", got, test.want)
			}
		})
	}
}

func TestContinues(t *testing.T) {
	earlier := observation{identity: storageA, revision: 120, marked: 100}
	for name, test := range map[string]struct {
		observed observation
		want     bool
	}{
		"same":              {observation{storageA, 120, 100}, true},
		"grown":             {observation{storageA, 121, 100}, true},
		"marked again":      {observation{storageA, 121, 121}, true},
		"lower revision":    {observation{storageA, 119, 100}, false},
		"grown, lower mark": {observation{storageA, 130, 90}, false},
		"other UUID":        {observation{storageB, 121, 100}, false},
		"other cluster":     {observation{clusterB, 121, 100}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.observed.continues(earlier); got != test.want {
				t.Errorf("continues() = %v, want %v", got, test.want)
			}
		})
	}
}

func TestParseRecord(t *testing.T) {
	valid := record{identity: identity{clusterID: 0xcdf818194e3a8c32, uuid: "3f0e"}, revision: 1 << 40}
	with := func(key, value string) map[string]string {
		data := valid.data("")
		data[key] = value
		return data
	}
	for name, test := range map[string]struct {
		data map[string]string
		want record
	}{
		"what was written":  {valid.data(""), valid},
		"no data":           {nil, record{}},
		"no UUID":           {with(uuidKey, ""), record{}},
		"bad cluster ID":    {with(clusterIDKey, "xyz"), record{}},
		"bad revision":      {with(revisionKey, "last"), record{}},
		"too high revision": {with(revisionKey, "9223372036854775808"), record{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, parseRecord(test.data, ""), cmp.AllowUnexported(record{}, identity{})); diff != "" {
				t.Errorf("parseRecord() (-want +got):\n%s", diff)
			}
		})
	}
}
