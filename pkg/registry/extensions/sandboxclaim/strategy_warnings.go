// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxclaim

import (
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
)

// warnings returns what is allowed in a claim and yet hardly meant. Only what differs from the old claim is looked at.
func warnings(claim, old *extensions.SandboxClaim, now time.Time) []string {
	var found []string
	spec, oldSpec := &claim.Spec, &old.Spec
	path := field.NewPath("spec")
	if at := shutdownTime(spec); at != nil && !now.Before(at.Time) && !at.Equal(shutdownTime(oldSpec)) {
		found = append(found, fmt.Sprintf("%s: has passed already, so the claim expires at once", path.Child("lifecycle", "shutdownTime")))
	}
	if old.Status.Sandbox.Name == "" {
		return found
	}
	if !apiequality.Semantic.DeepEqual(spec.Env, oldSpec.Env) {
		found = append(found, fmt.Sprintf("%s: no effect, the claim has its Sandbox already", path.Child("env")))
	}
	if !apiequality.Semantic.DeepEqual(spec.VolumeClaimTemplates, oldSpec.VolumeClaimTemplates) {
		found = append(found, fmt.Sprintf("%s: no effect, the claim has its Sandbox already", path.Child("volumeClaimTemplates")))
	}
	return found
}

func shutdownTime(spec *extensions.SandboxClaimSpec) *metav1.Time {
	if spec.Lifecycle == nil {
		return nil
	}
	return spec.Lifecycle.ShutdownTime
}
