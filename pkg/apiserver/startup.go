// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/server/healthz"
)

var errFrontProxyUnknown = errors.New("the certificate authority of the front proxy is not known yet")

// frontProxyCheck tells whether the server can recognize the front proxy. It cannot until the ConfigMap that says how has come, a moment
// after it listens. Whoever is passed on by the front proxy before would be taken for anonymous, and told that he has no rights.
type frontProxyCheck struct {
	config *authenticatorfactory.RequestHeaderConfig
}

var _ healthz.HealthChecker = frontProxyCheck{}

// Name implements healthz.HealthChecker.
func (frontProxyCheck) Name() string { return "front-proxy-authentication" }

// Check implements healthz.HealthChecker.
func (c frontProxyCheck) Check(*http.Request) error {
	if c.config == nil {
		return nil
	}
	if len(c.config.CAContentProvider.CurrentCABundleContent()) == 0 || len(c.config.UsernameHeaders.Value()) == 0 {
		return errFrontProxyUnknown
	}
	return nil
}

// protect answers requests for our APIs with 503 until the front proxy can be recognized. It must be the outermost handler.
func (c frontProxyCheck) protect(handler http.Handler, serializer runtime.NegotiatedSerializer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if strings.HasPrefix(req.URL.Path, "/apis") && c.Check(req) != nil {
			err := apierrors.NewServiceUnavailable("the server is starting: " + errFrontProxyUnknown.Error())
			err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
			responsewriters.ErrorNegotiated(err, serializer, schema.GroupVersion{Version: "v1"}, w, req)
			return
		}
		handler.ServeHTTP(w, req)
	})
}
