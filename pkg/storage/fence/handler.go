// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server/healthz"
)

// retryAfterSeconds is short because client-go retries up to ten times before it shows anybody the message.
const retryAfterSeconds = 1

var _ healthz.HealthChecker = &Fence{}

// Name implements healthz.HealthChecker.
func (f *Fence) Name() string { return "storage-fence" }

// Check implements healthz.HealthChecker: the error says why the fence is closed. It is for readyz alone; a restart repairs nothing.
func (f *Fence) Check(*http.Request) error {
	if reason := f.closedBecause(); reason != "" {
		return errors.New(reason)
	}
	return nil
}

// WithFence answers requests for API groups, their discovery included, with 503 while the fence is closed: the garbage collector
// takes that as "ask again", but a 404 as "delete the dependents". All other paths (health, metrics, version, OpenAPI) are served as
// ever. It needs the RequestInfo in the context, and belongs behind authentication and authorization because the answer describes the
// storage. A request that is under way when the fence closes is not held back.
func (f *Fence) WithFence(handler http.Handler, serializer runtime.NegotiatedSerializer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		info, ok := request.RequestInfoFrom(req.Context())
		if !ok {
			responsewriters.InternalError(w, req, errors.New("no RequestInfo found in the context"))
			return
		}
		reason := f.closedBecause()
		if reason == "" || !ofAPIGroup(info.Path) {
			handler.ServeHTTP(w, req)
			return
		}
		err := apierrors.NewServiceUnavailable("the storage of the API server is fenced off: " + reason)
		err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: retryAfterSeconds}
		responsewriters.RespondWithError(w, req, err, serializer)
	})
}

// ofAPIGroup goes by the path because a RequestInfo names no group for discovery.
func ofAPIGroup(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	return len(parts) > 1 && parts[0] == "apis"
}
