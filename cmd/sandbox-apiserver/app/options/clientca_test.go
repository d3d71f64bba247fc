// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// kubeAPIServer returns a kubeconfig file for a kube-apiserver that has the given ConfigMap, or answers with the code if that is not 200.
func kubeAPIServer(t *testing.T, code int, data map[string]string) string {
	t.Helper()
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if want := "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"; req.URL.Path != want {
			t.Errorf("%s is asked for, want %s", req.URL.Path, want)
		}
		var answer any = corev1.ConfigMap{Data: data}
		if code != http.StatusOK {
			answer = apierrors.NewGenericServerResponse(code, "get", corev1.Resource("configmaps"), "", "", 0, true).Status()
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(listener.Close)
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{Server: listener.URL}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test"}
	config.CurrentContext = "test"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestFollowClientCA(t *testing.T) {
	published := map[string]string{"client-ca-file": "certificate"}
	for name, test := range map[string]struct {
		code    int
		data    map[string]string
		options genericoptions.DelegatingAuthenticationOptions
		// wantFollowed is whether it is taken from the cluster, wantAwaited whether the server waits for it.
		wantFollowed, wantAwaited, wantError bool
	}{
		"published":                {code: http.StatusOK, data: published, wantFollowed: true, wantAwaited: true},
		"the cluster has none":     {code: http.StatusOK, wantFollowed: true},
		"nothing published yet":    {code: http.StatusNotFound, wantFollowed: true, wantAwaited: true},
		"may not be looked up":     {code: http.StatusForbidden, wantFollowed: true, wantError: true},
		"may fail to be looked up": {code: http.StatusForbidden, options: tolerant(), wantFollowed: true, wantAwaited: true},
		"in a file":                {options: genericoptions.DelegatingAuthenticationOptions{ClientCert: genericoptions.ClientCertAuthenticationOptions{ClientCA: "ca"}}},
		"not to be looked up":      {options: genericoptions.DelegatingAuthenticationOptions{SkipInClusterLookup: true}},
	} {
		t.Run(name, func(t *testing.T) {
			o := test.options
			o.RemoteKubeConfigFile = kubeAPIServer(t, test.code, test.data)
			awaited, err := followClientCA(t.Context(), &o)
			if got := err != nil; got != test.wantError {
				t.Errorf("error is %v, want one: %t", err, test.wantError)
			}
			if got := awaited != nil; got != test.wantAwaited {
				t.Errorf("awaited: %t, want %t", got, test.wantAwaited)
			}
			if got := o.ClientCert.CAContentProvider != nil; got != test.wantFollowed {
				t.Errorf("followed: %t, want %t", got, test.wantFollowed)
			}
		})
	}
}

func tolerant() genericoptions.DelegatingAuthenticationOptions {
	return genericoptions.DelegatingAuthenticationOptions{TolerateInClusterLookupFailure: true}
}
