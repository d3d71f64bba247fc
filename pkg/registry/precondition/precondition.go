// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package precondition checks what the body of an action says must be true of the object that it acts on.
package precondition

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
)

// CheckName fails with BadRequest if the body of an action names another object than the path does.
func CheckName(body metav1.Object, name string) error {
	if body.GetName() != "" && body.GetName() != name {
		return apierrors.NewBadRequest(fmt.Sprintf("metadata.name %q does not match the name %q in the URL", body.GetName(), name))
	}
	return nil
}

// Check fails with Conflict if the object is not what the preconditions say. Nil holds of any object.
func Check(resource schema.GroupResource, object metav1.Object, preconditions *agents.Preconditions) error {
	if preconditions == nil {
		return nil
	}
	if uid := preconditions.UID; uid != nil && *uid != object.GetUID() {
		return apierrors.NewConflict(resource, object.GetName(),
			fmt.Errorf("the UID in preconditions.uid (%s) does not match that of the object (%s)", *uid, object.GetUID()))
	}
	if rv := preconditions.ResourceVersion; rv != nil && *rv != object.GetResourceVersion() {
		return apierrors.NewConflict(resource, object.GetName(),
			fmt.Errorf("the resourceVersion in preconditions.resourceVersion (%s) does not match that of the object (%s)", *rv, object.GetResourceVersion()))
	}
	return nil
}
