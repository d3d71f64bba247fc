// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"net/http"
	"strings"

	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

// bearerProtocolPrefix marks the WebSocket subprotocol in which browsers, which cannot set an Authorization header, carry a
// bearer token. It is matched without regard to case, more widely than authenticators do, because what slips through here
// reaches a third party.
const bearerProtocolPrefix = "base64url.bearer.authorization.k8s.io."

// handshakeHeaders returns the headers of a request that make up the upgrade handshake or identify the request, the only ones to
// be forwarded. An allow list keeps out credentials and identities of any kind, those that nobody has thought of included:
// the transport leaves an Authorization header alone when it finds one, and kube-apiserver would heed X-Remote-* and
// Impersonate-* from a client with our rights.
func handshakeHeaders() []string {
	return []string{
		httpstream.HeaderUpgrade,
		httpstream.HeaderProtocolVersion,
		"Sec-Websocket-Extensions",
		"Sec-Websocket-Key",
		"Sec-Websocket-Version",
		"Traceparent",
		"Tracestate",
		"User-Agent",
	}
}

// forwardedHeader returns the header of the request to kube-apiserver that stands for an incoming request with the given header
// and context.
func forwardedHeader(ctx context.Context, in http.Header) http.Header {
	out := http.Header{}
	for _, name := range handshakeHeaders() {
		for _, value := range in.Values(name) {
			out.Add(name, value)
		}
	}
	// Connection is hop-by-hop: what else the client lists in it concerns this hop alone.
	out.Set(httpstream.HeaderConnection, httpstream.HeaderUpgrade)
	if protocols := withoutBearerTokens(in.Values(wsstream.WebSocketProtocolHeader)); len(protocols) > 0 {
		out.Set(wsstream.WebSocketProtocolHeader, strings.Join(protocols, ", "))
	}
	// One ID on the audit records of both servers: here it stands next to the person, there next to the Pod.
	if id := audit.GetAuditIDTruncated(ctx); id != "" {
		out.Set(auditinternal.HeaderAuditID, id)
	}
	return out
}

// withoutBearerTokens returns the WebSocket subprotocols of the given header values, in order, less those that carry a token.
func withoutBearerTokens(values []string) []string {
	var protocols []string
	for protocol := range strings.SplitSeq(strings.Join(values, ","), ",") {
		protocol = strings.TrimSpace(protocol)
		if protocol == "" || strings.HasPrefix(strings.ToLower(protocol), bearerProtocolPrefix) {
			continue
		}
		protocols = append(protocols, protocol)
	}
	return protocols
}
