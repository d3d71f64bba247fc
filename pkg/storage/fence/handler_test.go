// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/component-base/metrics"
)

func testSerializer() runtime.NegotiatedSerializer {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	scheme.AddUnversionedTypes(schema.GroupVersion{Version: "v1"}, &metav1.Status{})
	return serializer.NewCodecFactory(scheme)
}

// newUnconnected returns a Fence that no check has opened, without a storage.
func newUnconnected() *Fence {
	return &Fence{closed: metrics.NewGauge(&metrics.GaugeOpts{Name: "closed"}), disturbed: make(chan struct{}, 1), reason: "it is gone"}
}

// serve sends a GET through the fence to a handler that knows no path, as the server does when its storage is empty.
func serve(f *Fence, path string) *httptest.ResponseRecorder {
	resolver := &request.RequestInfoFactory{APIPrefixes: sets.NewString("apis", "api"), GrouplessAPIPrefixes: sets.NewString("api")}
	handler := filters.WithRequestInfo(f.WithFence(http.NotFoundHandler(), testSerializer()), resolver)
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
	return recorder
}

func TestClosedFenceRefusesAPIGroupsOnly(t *testing.T) {
	f := newUnconnected()
	for path, want := range map[string]int{
		"/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes/one":                 http.StatusServiceUnavailable,
		"/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes/one/exec?command=sh": http.StatusServiceUnavailable,
		"/apis/agents.x-k8s.io/v1beta1/sandboxes?watch=true":                             http.StatusServiceUnavailable,
		"/apis/agents.x-k8s.io/v1beta1":                                                  http.StatusServiceUnavailable,
		"/apis/agents.x-k8s.io/":                                                         http.StatusServiceUnavailable,
		"/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default/sandboxclaims/one":  http.StatusServiceUnavailable,
		"/apis":                       http.StatusNotFound,
		"/livez":                      http.StatusNotFound,
		"/readyz":                     http.StatusNotFound,
		"/metrics":                    http.StatusNotFound,
		"/version":                    http.StatusNotFound,
		"/openapi/v3/apis/agents/one": http.StatusNotFound,
	} {
		t.Run(path, func(t *testing.T) {
			if got := serve(f, path).Code; got != want {
				t.Errorf("GET %s = %d, want %d", path, got, want)
			}
		})
	}
}

func TestRefusalIsAStatusThatSaysWhy(t *testing.T) {
	recorder := serve(newUnconnected(), "/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes/one")
	if got := recorder.Header().Get("Retry-After"); got != "1" {
		t.Errorf("Retry-After is %q, want 1", got)
	}
	var got metav1.Status
	if err := json.Unmarshal(recorder.Body.Bytes(), &got); err != nil {
		t.Fatalf("body %q: %v", recorder.Body, err)
	}
	want := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure,
		Code:     http.StatusServiceUnavailable,
		Reason:   metav1.StatusReasonServiceUnavailable,
		Message:  "the storage of the API server is fenced off: it is gone",
		Details:  &metav1.StatusDetails{RetryAfterSeconds: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func TestOpenFenceRefusesNothing(t *testing.T) {
	f := newUnconnected()
	f.open(t.Context(), 0)
	if got := serve(f, "/apis/agents.x-k8s.io/v1beta1/sandboxes").Code; got != http.StatusNotFound {
		t.Errorf("code is %d, want that of the handler behind the fence", got)
	}
}

func TestCheckOfBeforeADisturbanceDoesNotOpen(t *testing.T) {
	f := newUnconnected()
	before := f.disturbancesSoFar()
	f.disturb(t.Context())
	f.open(t.Context(), before)
	if err := f.Check(nil); err == nil {
		t.Error("the fence is open on the strength of a check that began before the connection changed")
	}
	f.open(t.Context(), f.disturbancesSoFar())
	if err := f.Check(nil); err != nil {
		t.Errorf("the fence is closed after a check that began after the connection changed: %v", err)
	}
}
