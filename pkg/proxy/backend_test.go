// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

// seen is what kube-apiserver got to see of a request.
type seen struct {
	Proto, Method, Host, Path string
	Query                     url.Values
	Header                    http.Header
}

// backend stands for kube-apiserver: it speaks exec over WebSocket (v5) and SPDY (v4), as a command that writes "ready" to stderr,
// copies stdin to stdout and ends with the exit code that is its second argument.
type backend struct {
	*httptest.Server
	// requests receives every request. It has room for those of one test.
	requests chan seen
	// refuse, if set, answers in place of the upgrade.
	refuse http.HandlerFunc
}

func newBackend(t *testing.T) *backend {
	t.Helper()
	b := &backend{requests: make(chan seen, 16)}
	b.Server = httptest.NewUnstartedServer(b)
	// As kube-apiserver does, and as would break upgrades if it were chosen.
	b.EnableHTTP2 = true
	b.StartTLS()
	t.Cleanup(b.Close)
	return b
}

func (b *backend) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	b.requests <- seen{
		Proto: req.Proto, Method: req.Method, Host: req.Host, Path: req.URL.Path, Query: req.URL.Query(), Header: req.Header.Clone(),
	}
	switch {
	case b.refuse != nil:
		b.refuse(w, req)
	case wsstream.IsWebSocketRequest(req):
		serveWebSocket(w, req)
	default:
		serveSPDY(w, req)
	}
}

func serveWebSocket(w http.ResponseWriter, req *http.Request) {
	conn := wsstream.NewConn(map[string]wsstream.ChannelProtocolConfig{
		remotecommand.StreamProtocolV5Name: {Binary: true, Channels: []wsstream.ChannelType{
			wsstream.ReadChannel, wsstream.WriteChannel, wsstream.WriteChannel, wsstream.WriteChannel, wsstream.ReadChannel,
		}},
	})
	_, streams, err := conn.Open(w, req)
	if err != nil {
		return
	}
	defer conn.Close()
	runCommand(req, streams[remotecommand.StreamStdIn], streams[remotecommand.StreamStdOut],
		streams[remotecommand.StreamStdErr], streams[remotecommand.StreamErr])
}

func serveSPDY(w http.ResponseWriter, req *http.Request) {
	if _, err := httpstream.Handshake(req, w, []string{remotecommand.StreamProtocolV4Name}); err != nil {
		return
	}
	opened := make(chan httpstream.Stream, 4)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, req, func(stream httpstream.Stream, _ <-chan struct{}) error {
		opened <- stream
		return nil
	})
	if conn == nil {
		return
	}
	defer conn.Close()
	streams := map[string]httpstream.Stream{}
	for range cap(opened) {
		select {
		case stream := <-opened:
			streams[stream.Headers().Get(corev1.StreamType)] = stream
		case <-conn.CloseChan():
			return
		}
	}
	runCommand(req, streams[corev1.StreamTypeStdin], streams[corev1.StreamTypeStdout],
		streams[corev1.StreamTypeStderr], streams[corev1.StreamTypeError])
	for _, stream := range streams {
		stream.Close()
	}
	// The client closes the connection when it has the end of every stream.
	<-conn.CloseChan()
}

func runCommand(req *http.Request, stdin io.Reader, stdout, stderr, result io.Writer) {
	fmt.Fprint(stderr, "ready")
	if _, err := io.Copy(stdout, stdin); err != nil {
		return
	}
	command := req.URL.Query()["command"]
	code, _ := strconv.Atoi(command[len(command)-1])
	status := metav1.Status{Status: metav1.StatusSuccess}
	if code != 0 {
		status = metav1.Status{
			Status: metav1.StatusFailure,
			Reason: remotecommand.NonZeroExitCodeReason,
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{
				{Type: remotecommand.ExitCodeCauseType, Message: strconv.Itoa(code)},
			}},
		}
	}
	_ = json.NewEncoder(result).Encode(status)
}
