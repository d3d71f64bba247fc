// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/apitesting/roundtrip"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	agentsfuzzer "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/fuzzer"
)

// iterations is how many objects of each kind are tried; the library's own default is a fifth of it.
const iterations = 100

// TestRoundTrip takes random objects of every registered kind from the internal version to every served one and back, in JSON and in
// protobuf.
func TestRoundTrip(t *testing.T) {
	*roundtrip.FuzzIters = iterations
	roundtrip.RoundTripProtobufTestForAPIGroup(t, Install, agentsfuzzer.Funcs)
}

func TestRoundTripYAML(t *testing.T) { group.TestYAML(t, agentsfuzzer.Funcs, &agents.Sandbox{}) }
