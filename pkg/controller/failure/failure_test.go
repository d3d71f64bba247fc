// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
)

func invalid(kind string) error {
	return apierrors.NewInvalid(schema.GroupKind{Kind: kind}, "s1", field.ErrorList{field.Required(field.NewPath("spec"), "")})
}

func unavailable() error { return apierrors.NewServiceUnavailable("no endpoints") }

func TestErrorClasses(t *testing.T) {
	wrapped := func(err error) error { return fmt.Errorf("creating: %w", err) }
	for name, test := range map[string]struct {
		err                error
		terminal, outdated bool
	}{
		"invalid":              {wrapped(invalid("Pod")), true, false},
		"all invalid":          {errors.Join(invalid("Pod"), wrapped(invalid("Service"))), true, false},
		"invalid and other":    {errors.Join(invalid("Pod"), unavailable()), false, false},
		"unavailable":          {wrapped(unavailable()), false, false},
		"conflict":             {wrapped(apierrors.NewConflict(corev1.Resource("pods"), "s1", nil)), false, true},
		"exists, then did not": {wrapped(apierrors.NewAlreadyExists(corev1.Resource("pods"), "s1")), false, true},
		"another object of the name": {wrapped(apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "s1",
			field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), "b", "field is immutable")})), true, true},
		"stale": {wrapped(ErrStale), false, true},
		"nil":   {nil, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Terminal(test.err); got != test.terminal {
				t.Errorf("terminal is %v", got)
			}
			if got := Outdated(test.err); got != test.outdated {
				t.Errorf("outdated is %v", got)
			}
		})
	}
}

func TestMissingAPIIsNotAMissingObject(t *testing.T) {
	if ObjectNotFound(apierrors.NewGenericServerResponse(http.StatusNotFound, "get", agentsv1beta1.Resource("sandboxes"), "s1", "404 page not found", 0, true)) {
		t.Error("404 for the API counts as 404 for the object")
	}
	if !ObjectNotFound(fmt.Errorf("getting: %w", apierrors.NewNotFound(agentsv1beta1.Resource("sandboxes"), "s1"))) {
		t.Error("404 for the object does not count")
	}
}
