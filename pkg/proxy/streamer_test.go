// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/oauth2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport"
	"k8s.io/client-go/util/exec"
	"k8s.io/component-base/metrics"
	"k8s.io/streaming/pkg/httpstream"
)

func withAuditID(ctx context.Context, id string) context.Context {
	ctx = audit.WithAuditContext(ctx)
	audit.WithAuditID(ctx, types.UID(id))
	return ctx
}

func clientConfig(server *httptest.Server, token string) *rest.Config {
	return &rest.Config{
		Host:        server.URL,
		BearerToken: token,
		TLSClientConfig: rest.TLSClientConfig{
			CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		},
	}
}

func newStreams(t *testing.T, limit int) *Streams {
	t.Helper()
	streams, err := NewStreams(limit, metrics.NewKubeRegistry().Register)
	if err != nil {
		t.Fatal(err)
	}
	return streams
}

func newStreamer(t *testing.T, cfg *rest.Config, streams *Streams) *PodStreamer {
	t.Helper()
	streamer, err := NewPodStreamer(cfg, streams)
	if err != nil {
		t.Fatal(err)
	}
	return streamer
}

type statusResponder struct{ w http.ResponseWriter }

func (r statusResponder) Error(err error) {
	status := apierrors.NewInternalError(err).Status()
	if known := apierrors.APIStatus(nil); errors.As(err, &known) {
		status = known.Status()
	}
	status.Kind, status.APIVersion = "Status", "v1"
	r.w.Header().Set("Content-Type", "application/json")
	r.w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(r.w).Encode(status)
}

// newProxy serves streamer's exec of the Pod ns/pod over TLS.
func newProxy(t *testing.T, streamer *PodStreamer, options *corev1.PodExecOptions) *httptest.Server {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		handler, err := streamer.Exec("ns", "pod", options, statusResponder{w})
		if err != nil {
			statusResponder{w}.Error(err)
			return
		}
		handler.ServeHTTP(w, req.WithContext(withAuditID(req.Context(), "audit-id")))
	}))
	t.Cleanup(server.Close)
	return server
}

var allStreams = corev1.PodExecOptions{
	Container: "main", Command: []string{"sh -c", "a&b=c", "7"}, Stdin: true, Stdout: true, Stderr: true,
}

// executors are the two kinds of client there are.
var executors = map[string]func(*rest.Config) (remotecommand.Executor, error){
	"websocket": func(cfg *rest.Config) (remotecommand.Executor, error) {
		return remotecommand.NewWebSocketExecutorForProtocols(cfg, http.MethodGet, cfg.Host+"/?command=other",
			"v5.channel.k8s.io", "base64url.bearer.authorization.k8s.io.c2VjcmV0")
	},
	"spdy": func(cfg *rest.Config) (remotecommand.Executor, error) {
		location, err := url.Parse(cfg.Host + "/?command=other")
		if err != nil {
			return nil, err
		}
		return remotecommand.NewSPDYExecutor(cfg, http.MethodPost, location)
	},
}

func TestExec(t *testing.T) {
	handshake := map[string]http.Header{
		"websocket": {
			"Upgrade":                {"websocket"},
			"Sec-Websocket-Version":  {"13"},
			"Sec-Websocket-Protocol": {"v5.channel.k8s.io"},
		},
		"spdy": {
			"Upgrade":                   {"SPDY/3.1"},
			"X-Stream-Protocol-Version": {"v5.channel.k8s.io", "v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io"},
			"Content-Length":            {"0"},
		},
	}
	method := map[string]string{"websocket": http.MethodGet, "spdy": http.MethodPost}

	for name, newExecutor := range executors {
		t.Run(name, func(t *testing.T) {
			backend := newBackend(t)
			streams := newStreams(t, 0)
			server := newProxy(t, newStreamer(t, clientConfig(backend.Server, "server-token"), streams), &allStreams)
			cfg := clientConfig(server, "user-token")
			cfg.UserAgent = "client"
			cfg.WrapTransport = func(rt http.RoundTripper) http.RoundTripper { return hostileHeaders{rt} }
			executor, err := newExecutor(cfg)
			if err != nil {
				t.Fatal(err)
			}

			// More than any buffer on the way, so that the copying is put to the test and not only the handshake.
			input := strings.Repeat("0123456789abcdef", 1<<16)
			var stdout, stderr bytes.Buffer
			err = executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{
				Stdin: strings.NewReader(input), Stdout: &stdout, Stderr: &stderr,
			})

			var exit exec.CodeExitError
			if !errors.As(err, &exit) || exit.Code != 7 {
				t.Errorf("error = %v, want exit code 7", err)
			}
			if stdout.String() != input {
				t.Errorf("stdout has %d bytes, want the %d of stdin", stdout.Len(), len(input))
			}
			if got := stderr.String(); got != "ready" {
				t.Errorf("stderr = %q, want %q", got, "ready")
			}

			want := seen{
				Proto:  "HTTP/1.1",
				Method: method[name],
				Host:   strings.TrimPrefix(backend.URL, "https://"),
				Path:   "/api/v1/namespaces/ns/pods/pod/exec",
				Query: url.Values{
					"container": {"main"}, "command": {"sh -c", "a&b=c", "7"}, "stdin": {"true"}, "stdout": {"true"}, "stderr": {"true"},
				},
				Header: handshake[name],
			}
			want.Header.Set("Authorization", "Bearer server-token")
			want.Header.Set("Audit-Id", "audit-id")
			want.Header.Set("Connection", "Upgrade")
			want.Header.Set("User-Agent", "client")
			want.Header.Set("X-Forwarded-For", "127.0.0.1")
			random := cmpopts.IgnoreMapEntries(func(key string, _ []string) bool { return key == "Sec-Websocket-Key" })
			if diff := cmp.Diff(want, <-backend.requests, random); diff != "" {
				t.Errorf("request to kube-apiserver (-want +got):\n%s", diff)
			}
			if err := streams.Shutdown(t.Context()); err != nil {
				t.Errorf("a stream was left open: %v", err)
			}
		})
	}
}

// hostileHeaders adds headers that must not get to kube-apiserver.
type hostileHeaders struct{ http.RoundTripper }

func (h hostileHeaders) RoundTrip(req *http.Request) (*http.Response, error) {
	for name, value := range map[string]string{
		"Impersonate-User": "root", "Impersonate-Group": "system:masters", "X-Remote-User": "root", "X-Remote-Group": "system:masters",
		"Cookie": "session=secret", "X-Forwarded-For": "192.0.2.1", "X-Forwarded-Host": "example.com", "Audit-ID": "forged",
	} {
		req.Header.Set(name, value)
	}
	return h.RoundTripper.RoundTrip(req)
}

func TestRefusalOfKubeAPIServerIsRelayed(t *testing.T) {
	for name, newExecutor := range executors {
		t.Run(name, func(t *testing.T) {
			backend := newBackend(t)
			backend.refuse = func(w http.ResponseWriter, _ *http.Request) {
				statusResponder{w}.Error(apierrors.NewForbidden(corev1.Resource("pods"), "pod", errors.New("not for you")))
			}
			server := newProxy(t, newStreamer(t, clientConfig(backend.Server, "server-token"), newStreams(t, 0)), &allStreams)
			executor, err := newExecutor(clientConfig(server, "user-token"))
			if err != nil {
				t.Fatal(err)
			}

			err = executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{
				Stdin: strings.NewReader(""), Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{},
			})
			if err == nil || !strings.Contains(err.Error(), `pods "pod" is forbidden: not for you`) {
				t.Errorf("error = %v, want the message of kube-apiserver", err)
			}
			var failure *httpstream.UpgradeFailureError
			if name == "websocket" && (!errors.As(err, &failure) || !apierrors.IsForbidden(failure.Cause)) {
				t.Errorf("error = %#v, want the Status of kube-apiserver", err)
			}
		})
	}
}

func TestErrorsBeforeTheUpgrade(t *testing.T) {
	reachable := newBackend(t)
	gone := newBackend(t)
	gone.Close()
	redirecting := newBackend(t)
	redirecting.refuse = func(w http.ResponseWriter, req *http.Request) { http.Redirect(w, req, "/", http.StatusFound) }

	tests := []struct {
		name    string
		backend *backend
		header  http.Header
		code    int32
		message string
	}{
		{
			name:    "request without upgrade",
			backend: reachable,
			code:    http.StatusBadRequest,
			message: "the connection must be upgraded",
		},
		{
			name:    "kube-apiserver cannot be reached",
			backend: gone,
			header:  http.Header{"Connection": {"Upgrade"}, "Upgrade": {"SPDY/3.1"}},
			code:    http.StatusInternalServerError,
			message: "error dialing backend",
		},
		{
			name:    "kube-apiserver redirects",
			backend: redirecting,
			header:  http.Header{"Connection": {"Upgrade"}, "Upgrade": {"SPDY/3.1"}},
			code:    http.StatusInternalServerError,
			message: "invalid upgrade response: status code 302",
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			server := newProxy(t, newStreamer(t, clientConfig(tc.backend.Server, "server-token"), newStreams(t, 0)), &allStreams)
			if status := post(t, server, tc.header); status.Code != tc.code || !strings.Contains(status.Message, tc.message) {
				t.Errorf("status = %d %q, want %d %q", status.Code, status.Message, tc.code, tc.message)
			}
		})
	}
}

// post sends a request with the given header and returns the Status that answers it, or only the code if it is no Status.
func post(t *testing.T, server *httptest.Server, header http.Header) metav1.Status {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header
	resp, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var status metav1.Status
	if err := json.Unmarshal(body, &status); err != nil {
		return metav1.Status{Code: int32(resp.StatusCode)}
	}
	return status
}

type tokens struct{ current atomic.Value }

func (s *tokens) Token() (*oauth2.Token, error) {
	return &oauth2.Token{AccessToken: s.current.Load().(string)}, nil
}

func TestCredentialsAreThoseOfTheHour(t *testing.T) {
	backend := newBackend(t)
	source := &tokens{}
	source.current.Store("first")
	cfg := clientConfig(backend.Server, "")
	cfg.WrapTransport = transport.TokenSourceWrapTransport(source)
	server := newProxy(t, newStreamer(t, cfg, newStreams(t, 0)), &allStreams)

	for _, token := range []string{"first", "second"} {
		source.current.Store(token)
		executor, err := executors["websocket"](clientConfig(server, "user-token"))
		if err != nil {
			t.Fatal(err)
		}
		var exit exec.CodeExitError
		err = executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{
			Stdin: strings.NewReader(""), Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{},
		})
		if !errors.As(err, &exit) {
			t.Fatalf("error = %v, want an exit code", err)
		}
		if got, want := (<-backend.requests).Header.Get("Authorization"), "Bearer "+token; got != want {
			t.Errorf("Authorization = %q, want %q", got, want)
		}
	}
}

func TestExecRefusesNamesThatLeaveTheirPathSegment(t *testing.T) {
	streamer := newStreamer(t, &rest.Config{Host: "https://localhost"}, newStreams(t, 0))
	for _, name := range []string{"", "..", "a/b"} {
		if _, err := streamer.Exec("ns", name, &allStreams, statusResponder{}); err == nil {
			t.Errorf("Exec of pod %q gave no error", name)
		}
	}
}
