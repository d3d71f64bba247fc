// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestScrape(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		_, _ = w.Write([]byte("requests{verb=\"GET\"} 1\nrequests{verb=\"POST\"} 2\nrequests 4\n"))
	}))
	defer server.Close()
	metrics, err := Scrape(t.Context(), server.Client(), server.URL+"/metrics")
	if err != nil {
		t.Fatal(err)
	}
	for verb, want := range map[string]float64{"GET": 1, "POST": 2, "": 4, "PUT": 0} {
		got := metrics.Total("requests", func(labels map[string]string) bool { return labels["verb"] == verb })
		if got != want {
			t.Errorf("verb %q: got %v, want %v", verb, got, want)
		}
	}
	if _, err := Scrape(t.Context(), server.Client(), server.URL); err == nil {
		t.Error("no error where metrics are refused")
	}
}
