// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/util/cert"
)

// bundle is a CA bundle that may not have come yet.
type bundle struct {
	dynamiccertificates.CAContentProvider
	content []byte
}

func (b bundle) CurrentCABundleContent() []byte { return b.content }

const objectPath = "/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes/sandbox"

func TestProtectUntilCertificatesCanBeJudged(t *testing.T) {
	proxy := func(ca string, usernameHeaders ...string) *authenticatorfactory.RequestHeaderConfig {
		return &authenticatorfactory.RequestHeaderConfig{
			CAContentProvider: bundle{content: []byte(ca)},
			UsernameHeaders:   headerrequest.StaticStringSlice(usernameHeaders),
		}
	}
	noClients, clients := bundle{}, bundle{content: []byte("ca")}
	knownProxy := proxy("ca", "X-Remote-User")
	for _, test := range []struct {
		name        string
		authorities authorities
		path        string
		want        int
	}{
		{"nothing known", authorities{proxy(""), noClients}, objectPath, http.StatusServiceUnavailable},
		{"discovery, nothing known", authorities{proxy(""), noClients}, "/apis", http.StatusServiceUnavailable},
		{"OpenAPI, nothing known", authorities{proxy(""), noClients}, "/openapi/v3", http.StatusServiceUnavailable},
		{"headers not known", authorities{proxy("ca"), clients}, objectPath, http.StatusServiceUnavailable},
		{"front proxy's authority not known", authorities{proxy("", "X-Remote-User"), clients}, objectPath, http.StatusServiceUnavailable},
		{"clients' authority not known", authorities{knownProxy, noClients}, objectPath, http.StatusServiceUnavailable},
		{"probe, nothing known", authorities{proxy(""), noClients}, "/livez", http.StatusOK},
		{"part of a probe, nothing known", authorities{proxy(""), noClients}, "/readyz/etcd", http.StatusOK},
		{"all known", authorities{knownProxy, clients}, objectPath, http.StatusOK},
		{"no front proxy configured", authorities{nil, clients}, objectPath, http.StatusOK},
		{"no authority of clients to wait for", authorities{knownProxy, nil}, objectPath, http.StatusOK},
	} {
		t.Run(test.name, func(t *testing.T) {
			ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
			recorder := httptest.NewRecorder()
			test.authorities.protect(ok, NewSerialization().Codecs).
				ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, test.path, nil))
			if recorder.Code != test.want {
				t.Errorf("%s answers %d, want %d", test.path, recorder.Code, test.want)
			}
			if recorder.Code == http.StatusServiceUnavailable {
				expectRefusal(t, recorder)
			}
		})
	}
}

// expectRefusal checks that the answer tells a client to try again later, over another connection.
func expectRefusal(t *testing.T, recorder *httptest.ResponseRecorder) {
	t.Helper()
	for header, want := range map[string]string{"Retry-After": "1", "Connection": "close"} {
		if got := recorder.Header().Get(header); got != want {
			t.Errorf("%s is %q, want %q", header, got, want)
		}
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
		Message:  got.Message,
		Details:  &metav1.StatusDetails{RetryAfterSeconds: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" || got.Message == "" {
		t.Errorf("status with message %q (-want +got):\n%s", got.Message, diff)
	}
}

// TestAuthoritiesAreKnownBeforeTheServerListens checks what the handshakes of the first clients depend on.
func TestAuthoritiesAreKnownBeforeTheServerListens(t *testing.T) {
	ca, _, err := cert.GenerateSelfSignedCertKey("authority", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	kube := fake.NewClientset(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "published"},
		Data:       map[string]string{"ca": string(ca)},
	})
	authority, err := dynamiccertificates.NewDynamicCAFromConfigMapController("test", "kube-system", "published", "ca", kube)
	if err != nil {
		t.Fatal(err)
	}
	config := NewConfig(NewSerialization(), ExtraConfig{})
	config.ClientCA = authority
	config.GenericConfig.SecureServing = &genericapiserver.SecureServingInfo{ClientCA: authority}

	config.FollowAuthorities(t.Context())()
	if err := config.authorities().Check(nil); err != nil {
		t.Error(err)
	}
	serving := config.GenericConfig.SecureServing.ClientCA
	if diff := cmp.Diff(string(ca), string(serving.CurrentCABundleContent())); diff != "" {
		t.Errorf("authorities at the handshake (-want +got):\n%s", diff)
	}
	if _, ok := serving.(dynamiccertificates.ControllerRunner); ok {
		t.Error("the authority would be followed twice")
	}
}
