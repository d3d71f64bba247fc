// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// watchLag is an API server whose watches tell everything late, and which answers all other requests at once: the caches of who uses it
// lag behind what he is told in answers. It does with requests what the user of the tests may do.
type watchLag struct {
	// kubeconfig is the file of a client of it.
	kubeconfig string
	// delayed counts what watches were told late.
	delayed atomic.Int64
}

// newWatchLag starts such a server, until the end of the test. Its clients must have ended by then.
func newWatchLag(t *testing.T, lag time.Duration) *watchLag {
	t.Helper()
	backend, err := url.Parse(env.config.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(env.config)
	if err != nil {
		t.Fatal(err)
	}
	l := &watchLag{kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(backend) },
		Transport:     transport,
		FlushInterval: -1,                         // What a watch tells is to arrive when it is told.
		ErrorLog:      log.New(io.Discard, "", 0), // A client that is killed leaves requests behind.
		ModifyResponse: func(response *http.Response) error {
			if response.Request.URL.Query().Get("watch") == "true" && response.StatusCode == http.StatusOK {
				response.Body = l.delay(response.Body, lag)
			}
			return nil
		},
	})
	t.Cleanup(server.Close)
	config := clientcmdapi.NewConfig()
	config.Clusters["lag"] = &clientcmdapi.Cluster{Server: server.URL}
	config.Contexts["lag"] = &clientcmdapi.Context{Cluster: "lag"}
	config.CurrentContext = "lag"
	if err := clientcmd.WriteToFile(*config, l.kubeconfig); err != nil {
		t.Fatal(err)
	}
	return l
}

// delay returns a body that has what another has, each part of it so much later.
func (l *watchLag) delay(body io.ReadCloser, lag time.Duration) io.ReadCloser {
	// It is read without waiting for who reads late: otherwise the delays would add up.
	late := &lateBody{body: body, parts: make(chan part, 1<<16), closed: make(chan struct{})}
	go func() {
		for {
			buffer := make([]byte, 32<<10)
			n, err := body.Read(buffer)
			select {
			case late.parts <- part{buffer[:n], err, time.Now().Add(lag)}:
				l.delayed.Add(1)
			case <-late.closed:
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return late
}

// part is what one call of Read returned, and when it is to be returned again.
type part struct {
	data []byte
	err  error
	due  time.Time
}

// lateBody is what watchLag makes of a body.
type lateBody struct {
	body    io.ReadCloser
	parts   chan part
	current part
	closing sync.Once
	closed  chan struct{}
}

// Read returns what was read so much earlier.
func (b *lateBody) Read(p []byte) (int, error) {
	for len(b.current.data) == 0 {
		if b.current.err != nil {
			return 0, b.current.err
		}
		select {
		case b.current = <-b.parts:
		case <-b.closed:
			return 0, io.ErrClosedPipe
		}
		select {
		case <-time.After(time.Until(b.current.due)):
		case <-b.closed:
			return 0, io.ErrClosedPipe
		}
	}
	n := copy(p, b.current.data)
	b.current.data = b.current.data[n:]
	return n, nil
}

// Close ends both bodies.
func (b *lateBody) Close() error {
	b.closing.Do(func() { close(b.closed) })
	return b.body.Close()
}
