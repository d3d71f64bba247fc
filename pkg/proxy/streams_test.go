// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
)

var upgradeHeader = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"SPDY/3.1"}}

// openStream starts a stream through server that lasts until stdin ends, and returns its result. It returns once the command runs.
func openStream(t *testing.T, server *httptest.Server, stdin io.Reader, stdout io.Writer) <-chan error {
	t.Helper()
	executor, err := executors["websocket"](clientConfig(server, "user-token"))
	if err != nil {
		t.Fatal(err)
	}
	running, stderr := io.Pipe()
	result := make(chan error, 1)
	go func() {
		err := executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: stdin, Stdout: stdout, Stderr: stderr})
		stderr.CloseWithError(err)
		result <- err
	}()
	if _, err := io.ReadFull(running, make([]byte, len("ready"))); err != nil {
		t.Fatalf("the stream did not start: %v", err)
	}
	return result
}

func wantOpen(t *testing.T, registry metrics.KubeRegistry, want string) {
	t.Helper()
	expected := `
# HELP sandbox_apiserver_open_streams [ALPHA] Number of streams to Pods (exec and its like) that are open.
# TYPE sandbox_apiserver_open_streams gauge
sandbox_apiserver_open_streams ` + want + "\n"
	if err := testutil.GatherAndCompare(registry, strings.NewReader(expected)); err != nil {
		t.Error(err)
	}
}

func TestShutdownWaitsForStreamsToEnd(t *testing.T) {
	registry := metrics.NewKubeRegistry()
	streams, err := NewStreams(0, registry.Register)
	if err != nil {
		t.Fatal(err)
	}
	backend := newBackend(t)
	server := newProxy(t, newStreamer(t, clientConfig(backend.Server, "server-token"), streams), &allStreams)
	stdin, input := io.Pipe()
	result := openStream(t, server, stdin, io.Discard)
	wantOpen(t, registry, "1")

	drained := make(chan error, 1)
	go func() { drained <- streams.Shutdown(t.Context()) }()
	// Until Shutdown has begun, new requests are passed on and fail for lack of a protocol version.
	for post(t, server, upgradeHeader).Code != http.StatusServiceUnavailable {
	}
	select {
	case err := <-drained:
		t.Fatalf("Shutdown returned %v with a stream open", err)
	default:
	}

	input.Close()
	var exit exec.CodeExitError
	if err := <-result; !errors.As(err, &exit) {
		t.Errorf("the stream ended with %v, want an exit code", err)
	}
	if err := <-drained; err != nil {
		t.Errorf("Shutdown returned %v after the last stream ended", err)
	}
	wantOpen(t, registry, "0")
}

// blockedWriter does not take what it is given until its context is done.
type blockedWriter struct{ ctx context.Context }

func (w blockedWriter) Write([]byte) (int, error) {
	<-w.ctx.Done()
	return 0, w.ctx.Err()
}

// endless is a reader that does not run dry.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestShutdownCutsOffStreamsWhenTimeIsUp(t *testing.T) {
	idle, input := io.Pipe()
	defer input.Close()
	for name, stdin := range map[string]io.Reader{"idle client": idle, "client that does not read": endless{}} {
		t.Run(name, func(t *testing.T) {
			streams := newStreams(t, 0)
			backend := newBackend(t)
			server := newProxy(t, newStreamer(t, clientConfig(backend.Server, "server-token"), streams), &allStreams)
			result := openStream(t, server, stdin, blockedWriter{t.Context()})

			expired, cancel := context.WithCancel(t.Context())
			cancel()
			if err := streams.Shutdown(expired); !errors.Is(err, context.Canceled) {
				t.Errorf("Shutdown returned %v, want %v", err, context.Canceled)
			}
			if streams.count != 0 {
				t.Errorf("%d streams are open after Shutdown", streams.count)
			}
			if name == "idle client" {
				var exit exec.CodeExitError
				if err := <-result; err == nil || errors.As(err, &exit) {
					t.Errorf("the stream ended with %v, want a broken connection", err)
				}
			}
		})
	}
}

func TestShutdownInterruptsAnUpgradeThatIsNotAnswered(t *testing.T) {
	streams := newStreams(t, 0)
	backend := newBackend(t)
	backend.refuse = func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() }
	server := newProxy(t, newStreamer(t, clientConfig(backend.Server, "server-token"), streams), &allStreams)

	answered := make(chan int32, 1)
	go func() { answered <- post(t, server, upgradeHeader).Code }()
	<-backend.requests
	expired, cancel := context.WithCancel(t.Context())
	cancel()
	if err := streams.Shutdown(expired); !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown returned %v, want %v", err, context.Canceled)
	}
	if code := <-answered; code != http.StatusInternalServerError {
		t.Errorf("the request was answered with %d, want %d", code, http.StatusInternalServerError)
	}
}

func TestLimit(t *testing.T) {
	backend := newBackend(t)
	streams := newStreams(t, 1)
	server := newProxy(t, newStreamer(t, clientConfig(backend.Server, "server-token"), streams), &allStreams)
	stdin, input := io.Pipe()
	result := openStream(t, server, stdin, io.Discard)

	status := post(t, server, upgradeHeader)
	if status.Code != http.StatusTooManyRequests || status.Details.RetryAfterSeconds != retryAfterSeconds {
		t.Errorf("status = %v, want %d with a delay", status, http.StatusTooManyRequests)
	}

	input.Close()
	var exit exec.CodeExitError
	if err := <-result; !errors.As(err, &exit) {
		t.Errorf("the stream ended with %v, want the exit code of the command", err)
	}
	// The place is free when the handler has returned, which is shortly after the client has the result.
	for post(t, server, upgradeHeader).Code == http.StatusTooManyRequests {
	}
}

func TestNewStreamsFailsWithoutItsMetric(t *testing.T) {
	broken := errors.New("broken")
	if _, err := NewStreams(0, func(metrics.Registerable) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("error = %v, want %v", err, broken)
	}
}
