// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package failure tells apart the errors that a pass of a controller ends with: those of old data, those that a retry cannot mend, those of
// a server that is away, and those that mean less than they seem to.
package failure

import (
	"errors"
	"net"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ErrStale is returned when a live read does not confirm what the cache says. The next pass sees what the cache has become.
var ErrStale = errors.New("the cached object is out of date")

// Outdated says that an error comes from acting on old data, which another pass on newer data will not meet.
func Outdated(err error) bool {
	return errors.Is(err, ErrStale) || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || uidChanged(err)
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

// Terminal says that retrying cannot help: every error in err is an API server's word that what was sent is invalid.
func Terminal(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			if !Terminal(err) {
				return false
			}
		}
		return true
	}
	return apierrors.IsInvalid(err)
}

// ObjectNotFound says that the API server knows the resource and has no such object. While an aggregated API is being installed
// or removed, kube-apiserver answers 404 for the resource itself, which says nothing about objects.
func ObjectNotFound(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// Unavailable says that a request met no server that could answer it, or that its answer was lost, and may succeed as soon as the server
// is back: nothing was wrong with what was asked. A server that is merely too busy, and says so by 429, is not meant. Of several errors
// one is enough.
func Unavailable(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return slices.ContainsFunc(joined.Unwrap(), Unavailable)
	}
	if errors.As(err, new(apierrors.APIStatus)) {
		return apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) ||
			apierrors.IsNotFound(err) && !ObjectNotFound(err)
	}
	return errors.As(err, new(net.Error))
}
