// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// reviews answers TokenReviews like a kube-apiserver in the given state.
func reviews(t *testing.T, code int, status authenticationv1.TokenReviewStatus) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		var answer any = authenticationv1.TokenReview{Status: status}
		if code != http.StatusCreated {
			answer = apierrors.NewGenericServerResponse(code, "post", authenticationv1.Resource("tokenreviews"), "", "", 0, false).Status()
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}
}

// untilCancelled answers never. A server notices that the client has gone once it has read the body.
func untilCancelled(_ http.ResponseWriter, req *http.Request) {
	_, _ = io.Copy(io.Discard, req.Body)
	<-req.Context().Done()
}

func TestTokensThatCannotBeJudgedAreNotCalledBad(t *testing.T) {
	known := authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: "somebody"}}
	expired := authenticationv1.TokenReviewStatus{Error: "token has expired"}
	for name, test := range map[string]struct {
		header, value string
		review        http.HandlerFunc
		want          int
	}{
		"good token":                      {"Authorization", "Bearer token", reviews(t, http.StatusCreated, known), http.StatusOK},
		"unknown token":                   {"Authorization", "Bearer token", reviews(t, http.StatusCreated, authenticationv1.TokenReviewStatus{}), http.StatusUnauthorized},
		"expired token":                   {"Authorization", "Bearer token", reviews(t, http.StatusCreated, expired), http.StatusUnauthorized},
		"not a token":                     {"Authorization", "Basic password", nil, http.StatusUnauthorized},
		"no token":                        {"Accept", "application/json", nil, http.StatusUnauthorized},
		"kube-apiserver unreachable":      {"Authorization", "Bearer token", nil, http.StatusServiceUnavailable},
		"kube-apiserver in trouble":       {"Authorization", "Bearer token", reviews(t, http.StatusInternalServerError, known), http.StatusServiceUnavailable},
		"kube-apiserver busy":             {"Authorization", "Bearer token", reviews(t, http.StatusTooManyRequests, known), http.StatusServiceUnavailable},
		"may not ask kube-apiserver":      {"Authorization", "Bearer token", reviews(t, http.StatusForbidden, known), http.StatusServiceUnavailable},
		"kube-apiserver too slow":         {"Authorization", "Bearer token", untilCancelled, http.StatusServiceUnavailable},
		"good token of a WebSocket":       {"Sec-WebSocket-Protocol", "base64url.bearer.authorization.k8s.io.dG9rZW4, p", reviews(t, http.StatusCreated, known), http.StatusOK},
		"WebSocket, unreachable":          {"Sec-WebSocket-Protocol", "base64url.bearer.authorization.k8s.io.dG9rZW4, p", nil, http.StatusServiceUnavailable},
		"WebSocket without, unreachable":  {"Sec-WebSocket-Protocol", "v5.channel.k8s.io", nil, http.StatusUnauthorized},
		"kube-apiserver is somebody else": {"Authorization", "Bearer token", http.NotFound, http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked string
			handler := judgeTokensBefore(authenticateOnly)(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
				user, _ := request.UserFrom(req.Context())
				asked = user.GetName()
				if token := req.Header.Get("Authorization"); token != "" {
					t.Errorf("the token %q is passed on", token)
				}
			}), authenticationBy(t, test.review))
			req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, objectPath, nil)
			req.Header.Set(test.header, test.value)
			if test.header == "Sec-WebSocket-Protocol" {
				req.Header.Set("Connection", "Upgrade")
				req.Header.Set("Upgrade", "websocket")
			}
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, req)
			if recorder.Code != test.want {
				t.Fatalf("code is %d, want %d", recorder.Code, test.want)
			}
			if test.want == http.StatusServiceUnavailable {
				expectRefusal(t, recorder)
			}
			if want := map[int]string{http.StatusOK: "somebody"}[test.want]; asked != want {
				t.Errorf("%q asks, want %q", asked, want)
			}
		})
	}
}

func TestTokenIsReviewedOnce(t *testing.T) {
	asked := 0
	unknown := reviews(t, http.StatusCreated, authenticationv1.TokenReviewStatus{Error: "token has expired"})
	config := authenticationBy(t, func(w http.ResponseWriter, req *http.Request) {
		asked++
		unknown(w, req)
	})
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, objectPath, nil)
	req.Header.Set("Authorization", "Bearer token")
	judgeTokensBefore(authenticateOnly)(http.NotFoundHandler(), config).ServeHTTP(httptest.NewRecorder(), req)
	if asked != 1 {
		t.Errorf("%d reviews of one token, want 1", asked)
	}
}

// authenticateOnly is the part of the library's handler chain that this is about.
func authenticateOnly(apiHandler http.Handler, config *genericapiserver.Config) http.Handler {
	resolver := &request.RequestInfoFactory{APIPrefixes: sets.NewString("apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	return filters.WithRequestInfo(filters.WithAuthentication(apiHandler, config.Authentication.Authenticator, filters.Unauthorized(config.Serializer),
		config.Authentication.APIAudiences, nil), resolver)
}

// authenticationBy returns a configuration whose tokens are judged by a kube-apiserver that answers so, or does not listen if review is nil.
func authenticationBy(t *testing.T, review http.HandlerFunc) *genericapiserver.Config {
	t.Helper()
	kubeAPIServer := httptest.NewServer(review)
	if review == nil {
		kubeAPIServer.Close()
	} else {
		t.Cleanup(kubeAPIServer.Close)
	}
	client, err := kubernetes.NewForConfig(&rest.Config{Host: kubeAPIServer.URL})
	if err != nil {
		t.Fatal(err)
	}
	authenticate, _, err := authenticatorfactory.DelegatingAuthenticatorConfig{
		TokenAccessReviewClient:  client.AuthenticationV1(),
		TokenAccessReviewTimeout: 500 * time.Millisecond,
		WebhookRetryBackoff:      &wait.Backoff{Steps: 2, Duration: time.Millisecond},
		CacheTTL:                 time.Minute,
	}.New()
	if err != nil {
		t.Fatal(err)
	}
	config := genericapiserver.NewConfig(NewSerialization().Codecs)
	config.Authentication.Authenticator = authenticate
	return config
}
