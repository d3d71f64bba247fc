// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/audit"
)

func TestForwardedHeader(t *testing.T) {
	tests := []struct {
		name    string
		auditID string
		in      http.Header
		want    http.Header
	}{
		{
			name: "websocket handshake is kept",
			in: http.Header{
				"Connection":               {"Upgrade"},
				"Upgrade":                  {"websocket"},
				"Sec-Websocket-Key":        {"a2V5"},
				"Sec-Websocket-Version":    {"13"},
				"Sec-Websocket-Extensions": {"permessage-deflate"},
				"Sec-Websocket-Protocol":   {"v5.channel.k8s.io"},
			},
			want: http.Header{
				"Connection":               {"Upgrade"},
				"Upgrade":                  {"websocket"},
				"Sec-Websocket-Key":        {"a2V5"},
				"Sec-Websocket-Version":    {"13"},
				"Sec-Websocket-Extensions": {"permessage-deflate"},
				"Sec-Websocket-Protocol":   {"v5.channel.k8s.io"},
			},
		},
		{
			name: "spdy handshake is kept with every protocol version",
			in: http.Header{
				"Connection":                {"Upgrade"},
				"Upgrade":                   {"SPDY/3.1"},
				"X-Stream-Protocol-Version": {"v5.channel.k8s.io", "v4.channel.k8s.io"},
			},
			want: http.Header{
				"Connection":                {"Upgrade"},
				"Upgrade":                   {"SPDY/3.1"},
				"X-Stream-Protocol-Version": {"v5.channel.k8s.io", "v4.channel.k8s.io"},
			},
		},
		{
			name: "credentials and identities are dropped",
			in: http.Header{
				"Connection":           {"Upgrade"},
				"Authorization":        {"Bearer secret"},
				"Proxy-Authorization":  {"Basic secret"},
				"Cookie":               {"session=secret"},
				"Impersonate-User":     {"root"},
				"Impersonate-Group":    {"system:masters"},
				"Impersonate-Extra-Id": {"1"},
				"Impersonate-Uid":      {"1"},
				"X-Remote-User":        {"root"},
				"X-Remote-Group":       {"system:masters"},
				"X-Remote-Extra-Id":    {"1"},
				"X-Forwarded-For":      {"192.0.2.1"},
				"X-Forwarded-Host":     {"example.com"},
				"X-Forwarded-Proto":    {"https"},
			},
			want: http.Header{"Connection": {"Upgrade"}},
		},
		{
			name: "bearer subprotocols are dropped from among the others",
			in: http.Header{"Sec-Websocket-Protocol": {
				"base64url.bearer.authorization.k8s.io.c2VjcmV0, v5.channel.k8s.io",
				"v4.channel.k8s.io,BASE64URL.Bearer.authorization.k8s.io.c2VjcmV0",
			}},
			want: http.Header{
				"Connection":             {"Upgrade"},
				"Sec-Websocket-Protocol": {"v5.channel.k8s.io, v4.channel.k8s.io"},
			},
		},
		{
			name: "nothing is left of a header that had bearer subprotocols only",
			in:   http.Header{"Sec-Websocket-Protocol": {"base64url.bearer.authorization.k8s.io.c2VjcmV0"}},
			want: http.Header{"Connection": {"Upgrade"}},
		},
		{
			name: "connection options of the incoming hop are dropped",
			in:   http.Header{"Connection": {"Upgrade, Keep-Alive, X-Other"}, "Keep-Alive": {"1"}},
			want: http.Header{"Connection": {"Upgrade"}},
		},
		{
			name:    "audit ID is that of the request context",
			auditID: "from-context",
			in:      http.Header{"Audit-Id": {"from-header"}, "Traceparent": {"00-1-2-01"}, "User-Agent": {"kubectl/v1"}},
			want: http.Header{
				"Connection":  {"Upgrade"},
				"Audit-Id":    {"from-context"},
				"Traceparent": {"00-1-2-01"},
				"User-Agent":  {"kubectl/v1"},
			},
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			ctx := t.Context()
			if tc.auditID != "" {
				ctx = withAuditID(ctx, tc.auditID)
			}
			if diff := cmp.Diff(tc.want, forwardedHeader(ctx, tc.in)); diff != "" {
				t.Errorf("forwarded header (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzWithoutBearerTokens(f *testing.F) {
	f.Add("v5.channel.k8s.io")
	f.Add("base64url.bearer.authorization.k8s.io.dG9rZW4, v5.channel.k8s.io")
	f.Add(",, \tBase64URL.bearer.authorization.k8s.io.dG9rZW4 ,")
	f.Fuzz(func(t *testing.T, value string) {
		for _, protocol := range withoutBearerTokens([]string{value}) {
			if strings.HasPrefix(strings.ToLower(protocol), bearerProtocolPrefix) {
				t.Errorf("%q lets %q through", value, protocol)
			}
			if protocol == "" || strings.Contains(protocol, ",") {
				t.Errorf("%q yields %q, which is not a single protocol", value, protocol)
			}
		}
	})
}

func TestForwardedHeaderWithoutAuditContext(t *testing.T) {
	if _, ok := audit.AuditIDFrom(t.Context()); ok {
		t.Fatal("the test context has an audit ID")
	}
	if got := forwardedHeader(t.Context(), http.Header{"Audit-Id": {"forged"}}).Get("Audit-Id"); got != "" {
		t.Errorf("Audit-ID = %q, want none", got)
	}
}
