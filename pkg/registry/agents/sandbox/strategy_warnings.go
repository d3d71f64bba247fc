// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/warnings"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/sandboxpod"
)

// warningsOf returns what is allowed in a Sandbox and yet hardly meant. Only what differs from the old Sandbox is looked at: whoever
// suspends a Sandbox has nothing to learn about its template.
func warningsOf(sandbox, old *agents.Sandbox, now time.Time) []string {
	var found []string
	spec, oldSpec := &sandbox.Spec, &old.Spec
	path := field.NewPath("spec")
	if at := spec.ShutdownTime; at != nil && !now.Before(at.Time) && !at.Equal(oldSpec.ShutdownTime) {
		found = append(found, fmt.Sprintf("%s: has passed already, so the Sandbox expires at once", path.Child("shutdownTime")))
	}
	if sandboxpod.ExtensionsOwner(sandbox) != nil {
		// A controller made it from a template, whose author was told, and marked it with keys that are reserved.
		return found
	}
	return append(found, warnings.PodTemplate(&spec.PodTemplate, &oldSpec.PodTemplate, path.Child("podTemplate"))...)
}
