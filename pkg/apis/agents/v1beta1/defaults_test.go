// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"testing"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/install"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/apigroup"
)

var group = apigroup.Group{Install: install.Install, Internal: agents.SchemeGroupVersion, Served: v1beta1.SchemeGroupVersion, Testdata: "testdata"}

// TestDefaults pins what defaulting adds to a manifest. A library that came to fill more of a PodSpec would change the stored
// templates of everybody, and the hashes that are taken of them.
func TestDefaults(t *testing.T) { group.TestDefaults(t) }

func FuzzDefaults(f *testing.F) { group.FuzzDefaults(f, &v1beta1.Sandbox{}) }
