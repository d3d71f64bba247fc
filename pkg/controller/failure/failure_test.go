// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"syscall"
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

func apiNotServed() error {
	return apierrors.NewGenericServerResponse(http.StatusNotFound, "get", agentsv1beta1.Resource("sandboxes"), "s1", "404 page not found", 0, true)
}

func TestUnavailable(t *testing.T) {
	pods := corev1.Resource("pods")
	refused := &url.Error{Op: "Patch", URL: "https://127.0.0.1", Err: syscall.ECONNREFUSED}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"no endpoints":              {fmt.Errorf("creating: %w", unavailable()), true},
		"the API is not served":     {apiNotServed(), true},
		"timeout":                   {apierrors.NewTimeoutError("the request did not complete", 0), true},
		"cannot be completed now":   {apierrors.NewServerTimeout(pods, "create", 0), true},
		"connection refused":        {fmt.Errorf("patching: %w", refused), true},
		"the answer was lost":       {&url.Error{Op: "Post", URL: "https://127.0.0.1", Err: io.EOF}, true},
		"with another":              {errors.Join(invalid("Pod"), fmt.Errorf("patching: %w", refused)), true},
		"no such object":            {apierrors.NewNotFound(pods, "s1"), false},
		"too busy":                  {apierrors.NewTooManyRequests("later", 1), false},
		"broken":                    {apierrors.NewInternalError(errors.New("broken")), false},
		"refused":                   {errors.Join(invalid("Pod"), apierrors.NewForbidden(pods, "s1", nil)), false},
		"nothing that was asked of": {ErrStale, false},
		"nil":                       {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Unavailable(test.err); got != test.want {
				t.Errorf("got %v for %v", got, test.err)
			}
		})
	}
}

func TestMissingAPIIsNotAMissingObject(t *testing.T) {
	if ObjectNotFound(apiNotServed()) {
		t.Error("404 for the API counts as 404 for the object")
	}
	if !ObjectNotFound(fmt.Errorf("getting: %w", apierrors.NewNotFound(agentsv1beta1.Resource("sandboxes"), "s1"))) {
		t.Error("404 for the object does not count")
	}
}
