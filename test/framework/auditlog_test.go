// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

func TestAuditLogIsRead(t *testing.T) {
	const log = `{"verb":"create","userAgent":"ours/v0","responseStatus":{"code":201}}
{"verb":"get","userAgent":"theirs/v0","responseStatus":{"code":200}}
{"verb":"watch","userAgent":"ours/v0"}
{"verb":"delete","userAgent":"ours/v0","responseStatus":{"code":404}}
{"verb":"half a line","userAgent":"ours/v0","respon`
	var got []string
	err := readAuditLog(strings.NewReader(log), `"userAgent":"ours`, func(event *auditv1.Event) { got = append(got, event.Verb) })
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"create", "delete"}, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestAuditLogThatIsNone(t *testing.T) {
	err := readAuditLog(strings.NewReader("ours, but not JSON\n"), "ours", func(*auditv1.Event) { t.Error("an event was made of it") })
	if err == nil {
		t.Error("no error")
	}
}
