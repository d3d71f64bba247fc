// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"net/http"
	"net/url"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
)

func unavailable() error { return apierrors.NewServiceUnavailable("no endpoints") }

func apiNotServed() error {
	return apierrors.NewGenericServerResponse(http.StatusNotFound, "list", agentsv1beta1.Resource("sandboxes"), "", "404 page not found", 0, true)
}

func connectionRefused() error {
	return &url.Error{Op: "Get", URL: "https://127.0.0.1/apis", Err: syscall.ECONNREFUSED}
}

func TestRequestIsRepeatedUntilTheServerIsBack(t *testing.T) {
	answers := []error{unavailable(), apiNotServed(), connectionRefused(), unavailable(), nil}
	asked := 0
	got, err := whenAvailable(t.Context(), time.Millisecond, func(context.Context) (string, error) {
		asked++
		return "list", answers[asked-1]
	})
	if err != nil || got != "list" || asked != len(answers) {
		t.Errorf("after %d answers: %q, %v", asked, got, err)
	}
}

func TestRequestEndsWithItsContextAndWithOtherErrors(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := whenAvailable(ended, time.Hour, func(context.Context) (int, error) { return 0, unavailable() }); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("error is %v", err)
	}
	forbidden := apierrors.NewForbidden(agentsv1beta1.Resource("sandboxes"), "", nil)
	if _, err := whenAvailable(t.Context(), time.Hour, func(context.Context) (int, error) { return 0, forbidden }); !apierrors.IsForbidden(err) {
		t.Errorf("error is %v", err)
	}
}
