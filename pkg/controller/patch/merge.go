// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package patch makes merge patches that fail on the wrong object.
package patch

import (
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Lock says what a patch is conditional on, besides the UID of the object.
type Lock bool

const (
	// AnyVersion patches whatever the object has become; other writers' fields are not touched.
	AnyVersion Lock = false
	// SameVersion fails with a conflict if the object has changed. For decisions that rest on the whole object.
	SameVersion Lock = true
)

// Merge returns the JSON merge patch that turns original into modified, and fails on an object of another UID: names are
// used again.
func Merge(original, modified metav1.Object, lock Lock) ([]byte, error) {
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
	if lock == SameVersion {
		preconditions.Metadata.ResourceVersion = original.GetResourceVersion()
	}
	conditional, err := json.Marshal(preconditions)
	if err != nil {
		return nil, fmt.Errorf("encoding the preconditions: %w", err)
	}
	return jsonpatch.MergeMergePatches(diff, conditional)
}
