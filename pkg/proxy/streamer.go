// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilproxy "k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"
)

const (
	dialTimeout = 30 * time.Second
	// keepAlivePeriod keeps idle streams alive through middleboxes, and notices a peer that is gone.
	keepAlivePeriod = 30 * time.Second
)

// PodStreamer opens streams to Pods through kube-apiserver with this server's own credentials. It is safe for concurrent use.
type PodStreamer struct {
	// core builds URLs and sends nothing.
	core    rest.Interface
	upgrade utilproxy.UpgradeRequestRoundTripper
	streams *Streams
}

// NewPodStreamer returns a PodStreamer that reaches kube-apiserver as cfg says. A token file named by cfg is read again as
// it is rotated. All streams are entered in streams.
func NewPodStreamer(cfg *rest.Config, streams *Streams) (*PodStreamer, error) {
	// The client gets no transport, for it sends nothing.
	core, err := corev1client.NewForConfigAndClient(cfg, &http.Client{})
	if err != nil {
		return nil, fmt.Errorf("building a client for locations of Pods: %w", err)
	}
	upgrade, err := upgradeTransport(cfg)
	if err != nil {
		return nil, fmt.Errorf("building the transport for upgrades: %w", err)
	}
	return &PodStreamer{core: core.RESTClient(), upgrade: upgrade, streams: streams}, nil
}

// upgradeTransport returns a transport that dials for HTTP/1.1, the only version that knows upgrades. Its TLS configuration must
// be its own: an HTTP/2 transport that shared it would add h2 to its protocols, and the server would choose that.
func upgradeTransport(cfg *rest.Config) (utilproxy.UpgradeRequestRoundTripper, error) {
	transportConfig, err := cfg.TransportConfig()
	if err != nil {
		return nil, err
	}
	tlsConfig, err := transport.TLSConfigFor(transportConfig)
	if err != nil {
		return nil, err
	}
	if tlsConfig != nil {
		tlsConfig = tlsConfig.Clone()
		tlsConfig.NextProtos = []string{"http/1.1"}
	}
	dial := cfg.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlivePeriod}).DialContext
	}
	connection := &http.Transport{
		TLSClientConfig: tlsConfig,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			// Between dial and upgrade nothing but the context can interrupt the wait for an answer.
			closeWith(ctx, conn)
			return conn, nil
		},
	}
	// The wrappers run for every request, so that the token is that of the hour and not of the start.
	credentials, err := transport.HTTPWrappersForConfig(transportConfig, utilproxy.MirrorRequest)
	if err != nil {
		return nil, err
	}
	return utilproxy.NewUpgradeRequestRoundTripper(connection, credentials), nil
}

// Exec returns a handler that passes a single upgrade request on to the exec subresource of a Pod. The request contributes
// its method and handshake headers only; the query is made from options. Errors before the upgrade go to responder, except
// for kube-apiserver's own, which reach the client as they are.
func (s *PodStreamer) Exec(namespace, pod string, options *corev1.PodExecOptions, responder utilproxy.SimpleErrorResponder) (http.Handler, error) {
	request := s.core.Post().Namespace(namespace).Resource("pods").Name(pod).SubResource("exec").
		VersionedParams(options, scheme.ParameterCodec)
	if err := request.Error(); err != nil {
		return nil, fmt.Errorf("building the location of exec for pod %s/%s: %w", namespace, pod, err)
	}
	return s.handler(request.URL(), responder), nil
}

func (s *PodStreamer) handler(location *url.URL, responder utilproxy.SimpleErrorResponder) http.Handler {
	upgrade := utilproxy.NewUpgradeAwareHandler(location, s.upgrade, false, true, utilproxy.NewErrorResponder(responder))
	upgrade.UpgradeTransport = s.upgrade
	upgrade.UseLocationHost = true

	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !httpstream.IsUpgradeRequest(req) {
			responder.Error(apierrors.NewBadRequest("the connection must be upgraded: send the request as a WebSocket or SPDY handshake"))
			return
		}
		ctx, done, err := s.streams.begin(req.Context())
		if err != nil {
			responder.Error(err)
			return
		}
		defer done()
		// The upgrade handler and the transport's debugging log the location, which holds the command.
		out := req.Clone(klog.NewContext(ctx, klog.Logger{}))
		out.Header = forwardedHeader(ctx, req.Header)
		// The protocols have no use for a body, and one would be taken for the first bytes of the stream.
		out.Body, out.ContentLength, out.TransferEncoding = http.NoBody, 0, nil
		upgrade.ServeHTTP(&closingWriter{ResponseWriter: w, ctx: ctx}, out)
	})
}
