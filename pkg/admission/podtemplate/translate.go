// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// verdict is what an answer of kube-apiserver means for the object.
type verdict int

const (
	// accepted: the Pod can be made.
	accepted verdict = iota
	// refused: it can never be made.
	refused
	// undecided: it cannot be made now, or nobody knows.
	undecided
	// unknowable: some webhook for Pods does not take part in dry runs, so the question cannot be asked.
	unknowable
)

// podSecurityMark is how the PodSecurity plugin begins what it says, after the standard preamble. It has no reason of its own.
const podSecurityMark = "violates PodSecurity"

// dryRunUnsupportedMark is how kube-apiserver says that it did not call a webhook in a dry run because that has side effects.
const dryRunUnsupportedMark = "does not support dry run"

func judge(err error) verdict {
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		// Rules come before the check of the name.
		return accepted
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return undecided
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err) && strings.Contains(err.Error(), podSecurityMark):
		return refused
	case apierrors.IsBadRequest(err) && strings.Contains(err.Error(), dryRunUnsupportedMark):
		return unknowable
	default:
		return undecided
	}
}

// translate turns a refusal of the Pod into one of the object that leads to it, which names the object's fields.
func translate(err error, resource schema.GroupResource, kind, name string) error {
	var pod apierrors.APIStatus
	if !errors.As(err, &pod) {
		return apierrors.NewInternalError(err)
	}
	status := metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    pod.Status().Code,
		Reason:  pod.Status().Reason,
		Details: &metav1.StatusDetails{Group: resource.Group, Kind: kind, Name: name},
	}
	if status.Code == http.StatusForbidden {
		status.Details.Kind = resource.Resource
		_, why, _ := strings.Cut(pod.Status().Message, " is forbidden: ")
		status.Message = fmt.Sprintf("%s %q is forbidden: spec.podTemplate: %s", resource, name, why)
		return &apierrors.StatusError{ErrStatus: status}
	}
	subject := schema.GroupKind{Group: resource.Group, Kind: kind}
	if pod.Status().Details == nil || len(pod.Status().Details.Causes) == 0 {
		status.Message = fmt.Sprintf("%s %q is invalid: spec.podTemplate: %s", subject, name, pod.Status().Message)
		return &apierrors.StatusError{ErrStatus: status}
	}
	var problems []string
	for _, cause := range pod.Status().Details.Causes {
		cause.Field = objectField(cause.Field)
		status.Details.Causes = append(status.Details.Causes, cause)
		problems = append(problems, cause.Field+": "+cause.Message)
	}
	found := strings.Join(problems, ", ")
	if len(problems) > 1 {
		found = "[" + found + "]"
	}
	status.Message = fmt.Sprintf("%s %q is invalid: %s", subject, name, found)
	return &apierrors.StatusError{ErrStatus: status}
}

// objectField returns the field of a Sandbox or template that a field of its Pod comes from.
func objectField(field string) string {
	switch field {
	case "metadata.name":
		return field
	case "":
		return "spec.podTemplate"
	default:
		return "spec.podTemplate." + field
	}
}
