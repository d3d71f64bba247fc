// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// bundle is a CA bundle that may not have come yet.
type bundle struct {
	dynamiccertificates.CAContentProvider
	content []byte
}

func (b bundle) CurrentCABundleContent() []byte { return b.content }

func TestProtectUntilFrontProxyIsKnown(t *testing.T) {
	config := func(ca string, usernameHeaders ...string) *authenticatorfactory.RequestHeaderConfig {
		return &authenticatorfactory.RequestHeaderConfig{
			CAContentProvider: bundle{content: []byte(ca)},
			UsernameHeaders:   headerrequest.StaticStringSlice(usernameHeaders),
		}
	}
	const object = "/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes/sandbox"
	for _, test := range []struct {
		name   string
		config *authenticatorfactory.RequestHeaderConfig
		path   string
		want   int
	}{
		{"nothing known", config(""), object, http.StatusServiceUnavailable},
		{"discovery, nothing known", config(""), "/apis", http.StatusServiceUnavailable},
		{"headers not known", config("ca"), object, http.StatusServiceUnavailable},
		{"authority not known", config("", "X-Remote-User"), object, http.StatusServiceUnavailable},
		{"probe, nothing known", config(""), "/livez", http.StatusOK},
		{"all known", config("ca", "X-Remote-User"), object, http.StatusOK},
		{"no front proxy configured", nil, object, http.StatusOK},
	} {
		t.Run(test.name, func(t *testing.T) {
			ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
			recorder := httptest.NewRecorder()
			frontProxyCheck{test.config}.protect(ok, NewSerialization().Codecs).
				ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, test.path, nil))
			if recorder.Code != test.want {
				t.Errorf("%s answers %d, want %d", test.path, recorder.Code, test.want)
			}
			if recorder.Code == http.StatusServiceUnavailable && recorder.Header().Get("Retry-After") == "" {
				t.Error("the answer does not say when to try again")
			}
		})
	}
}
