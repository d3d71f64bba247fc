// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// patchLock says what a patch is conditional on, besides the UID of the object.
type patchLock bool

const (
	// anyVersion patches whatever the object has become; other writers' fields are not touched.
	anyVersion patchLock = false
	// sameVersion fails with a conflict if the object has changed. For decisions that rest on the whole object.
	sameVersion patchLock = true
)

// mergePatch returns the JSON merge patch that turns original into modified, and fails on an object of another UID: names are
// used again.
func mergePatch(original, modified metav1.Object, lock patchLock) ([]byte, error) {
	before, err := json.Marshal(original)
	if err != nil {
		return nil, fmt.Errorf("encoding the original: %w", err)
	}
	after, err := json.Marshal(modified)
	if err != nil {
		return nil, fmt.Errorf("encoding the modification: %w", err)
	}
	diff, err := jsonpatch.CreateMergePatch(before, after)
	if err != nil {
		return nil, fmt.Errorf("computing the difference: %w", err)
	}
	preconditions := struct {
		Metadata struct {
			UID             types.UID `json:"uid"`
			ResourceVersion string    `json:"resourceVersion,omitempty"`
		} `json:"metadata"`
	}{}
	preconditions.Metadata.UID = original.GetUID()
	if lock == sameVersion {
		preconditions.Metadata.ResourceVersion = original.GetResourceVersion()
	}
	conditional, err := json.Marshal(preconditions)
	if err != nil {
		return nil, fmt.Errorf("encoding the preconditions: %w", err)
	}
	return jsonpatch.MergeMergePatches(diff, conditional)
}
