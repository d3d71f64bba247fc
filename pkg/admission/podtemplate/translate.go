// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	"context"
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
)

// verdict is what an answer of kube-apiserver means for the Sandbox.
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

// translate turns a refusal of the Pod into one of the Sandbox, which names the Sandbox's fields.
func translate(err error, name string) error {
	var pod apierrors.APIStatus
	if !errors.As(err, &pod) {
		return apierrors.NewInternalError(err)
	}
	status := metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    pod.Status().Code,
		Reason:  pod.Status().Reason,
		Details: &metav1.StatusDetails{Group: agents.GroupName, Kind: "Sandbox", Name: name},
	}
	if status.Code == http.StatusForbidden {
		status.Details.Kind = "sandboxes"
		_, why, _ := strings.Cut(pod.Status().Message, " is forbidden: ")
		status.Message = "sandboxes." + agents.GroupName + " \"" + name + "\" is forbidden: spec.podTemplate: " + why
		return &apierrors.StatusError{ErrStatus: status}
	}
	status.Message = "Sandbox." + agents.GroupName + " \"" + name + "\" is invalid: "
	if pod.Status().Details == nil || len(pod.Status().Details.Causes) == 0 {
		status.Message += "spec.podTemplate: " + pod.Status().Message
		return &apierrors.StatusError{ErrStatus: status}
	}
	var problems []string
	for _, cause := range pod.Status().Details.Causes {
		cause.Field = sandboxField(cause.Field)
		status.Details.Causes = append(status.Details.Causes, cause)
		problems = append(problems, cause.Field+": "+cause.Message)
	}
	status.Message += strings.Join(problems, ", ")
	if len(problems) > 1 {
		status.Message = strings.Replace(status.Message, " is invalid: ", " is invalid: [", 1) + "]"
	}
	return &apierrors.StatusError{ErrStatus: status}
}

// sandboxField returns the field of a Sandbox that a field of its Pod comes from.
func sandboxField(field string) string {
	switch field {
	case "metadata.name":
		return field
	case "":
		return "spec.podTemplate"
	default:
		return "spec.podTemplate." + field
	}
}
