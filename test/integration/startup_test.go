// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
)

// directClient is somebody who asks sandbox-apiserver itself.
type directClient struct {
	http.RoundTripper
	url string
}

// newDirectClient returns a client with the credentials of config, which connects anew for each request or keeps one connection.
func newDirectClient(t *testing.T, config *rest.Config, url string, anew bool) directClient {
	t.Helper()
	credentials, err := rest.TLSConfigFor(config)
	if err != nil {
		t.Fatal(err)
	}
	// The server makes itself a certificate that the cluster does not know.
	trusting := &tls.Config{InsecureSkipVerify: true, Certificates: credentials.Certificates, GetClientCertificate: credentials.GetClientCertificate}
	transport := &http.Transport{TLSClientConfig: trusting, DisableKeepAlives: anew, ForceAttemptHTTP2: !anew}
	t.Cleanup(transport.CloseIdleConnections)
	withToken, err := rest.HTTPWrappersForConfig(config, transport)
	if err != nil {
		t.Fatal(err)
	}
	return directClient{withToken, url + "/apis/" + v1beta1.SchemeGroupVersion.String()}
}

// ask returns the code of the answer to a request for discovery, 0 if there is none.
func (c directClient) ask(ctx context.Context) int {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return 0
	}
	response, err := c.RoundTrip(req)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// askUntilServed asks until the server serves, and returns an error if it says before that it does not know the client.
func (c directClient) askUntilServed(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for {
		switch code := c.ask(ctx); code {
		case http.StatusOK:
			return nil
		case 0, http.StatusServiceUnavailable:
		default:
			return fmt.Errorf("code %d, want %d or that it cannot be reached", code, http.StatusServiceUnavailable)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// TestStartCallsNoCredentialsBad has clients ask a server from before it listens until it serves. They may be told to wait, but never that
// their credentials are bad. It is not parallel, because the server is restarted.
func TestStartCallsNoCredentialsBad(t *testing.T) {
	const rounds = 5
	token := newUser(t, newNamespace(t), rule("get", "sandboxes")).config
	if err := env.killProgram(t.Context(), sandboxAPIServer); err != nil {
		t.Fatal(err)
	}
	server, err := env.cluster.Start(t.Context(), sandboxAPIServer, 1)
	if err != nil {
		t.Fatal(err)
	}
	clients := map[string]directClient{}
	for name, config := range map[string]*rest.Config{"certificate": env.config, "token": token} {
		for kind, anew := range map[string]bool{"new connections": true, "one connection": false} {
			clients[name+", "+kind] = newDirectClient(t, config, server.URL, anew)
		}
	}
	for round := range rounds {
		if err := env.killProgram(t.Context(), sandboxAPIServer); err != nil {
			t.Fatal(err)
		}
		var asking sync.WaitGroup
		for name, client := range clients {
			asking.Go(func() {
				if err := client.askUntilServed(t.Context()); err != nil {
					t.Errorf("start %d: %s: %v", round, name, err)
				}
			})
		}
		err := env.startProgram(t.Context(), sandboxAPIServer)
		asking.Wait()
		if err != nil {
			t.Fatal(err)
		}
	}
}
