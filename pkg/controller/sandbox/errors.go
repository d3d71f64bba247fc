// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// errStale is returned when a live read does not confirm what the cache says. The next pass sees what the cache has become.
var errStale = errors.New("the cached Sandbox is out of date")

// errNamespaceTerminating is returned instead of a request that the API server would refuse.
var errNamespaceTerminating = errors.New("the namespace is being terminated")

// multiplePodsError is returned when a Sandbox controls more than one Pod. Which of them holds the user's work cannot be told, so
// nothing is done until a person has removed the others.
type multiplePodsError struct {
	count int
}

func (e *multiplePodsError) Error() string {
	return fmt.Sprintf("multiple Pods (%d) are controlled by this Sandbox; refusing to choose or create a Pod", e.count)
}

// outdated says that an error comes from acting on old data, which another pass on newer data will not meet.
func outdated(err error) bool {
	return errors.Is(err, errStale) || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || uidChanged(err)
}

// uidChanged says that a patch met an object of the right name that is not the one it was made for. API servers refuse it as an
// invalid change of the UID.
func uidChanged(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Field == "metadata.uid" {
			return true
		}
	}
	return false
}

// terminal says that retrying cannot help: every error in err is an API server's word that a child is invalid.
func terminal(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			if !terminal(err) {
				return false
			}
		}
		return true
	}
	return apierrors.IsInvalid(err)
}

func namespaceTerminating(err error) bool {
	return errors.Is(err, errNamespaceTerminating) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// objectNotFound says that the API server knows the resource and has no such object. While an aggregated API is being installed
// or removed, kube-apiserver answers 404 for the resource itself, which says nothing about objects.
func objectNotFound(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
