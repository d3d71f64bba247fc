// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/component-base/metrics/testutil"
)

// auditLine returns a line of an audit log, about a request of a program.
func auditLine(program, verb, resource, subresource, name, code string) string {
	return `{"kind":"Event","verb":"` + verb + `","userAgent":"` + program + `/v0 (linux/amd64)","objectRef":{"resource":"` + resource +
		`","subresource":"` + subresource + `","name":"` + name + `"},"responseStatus":{"code":` + code + `}}` + "\n"
}

func TestTrafficOfOurProgramsIsCounted(t *testing.T) {
	log := auditLine("sandbox-controller", "create", "pods", "", "a", "201") +
		auditLine("sandbox-controller", "create", "pods", "", "b", "403") +
		auditLine("sandbox-controller", "patch", "sandboxes", "status", "a", "200") +
		auditLine("sandbox-controller", "patch", "sandboxes", "status", "a", "200") +
		auditLine("sandbox-controller", "watch", "pods", "", "", "200") +
		auditLine("sandbox-apiserver", "create", "pods", "", "a", "201") +
		auditLine("kube-scheduler", "create", "pods", "binding", "a", "201") +
		strings.TrimSuffix(auditLine("sandbox-controller", "create", "pods", "", "half a line", "201"), "\n")
	got := &traffic{
		requests:   map[string]map[string]int{sandboxAPIServer: {}, sandboxController: {}},
		podCreates: map[string]int{}, statusWrites: map[string]int{},
	}
	if err := got.read(strings.NewReader(log)); err != nil {
		t.Fatal(err)
	}
	want := &traffic{
		requests: map[string]map[string]int{
			sandboxAPIServer:  {"create pods": 1},
			sandboxController: {"create pods": 2, "patch sandboxes/status": 2, "watch pods": 1},
		},
		podCreates: map[string]int{"a": 1}, statusWrites: map[string]int{"a": 2},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(traffic{})); diff != "" {
		t.Errorf("traffic differs (-want +got):\n%s", diff)
	}
	if got := got.writes(sandboxController); got != 4 {
		t.Errorf("%d writes", got)
	}
}

func TestMetricsAreRead(t *testing.T) {
	samples := testutil.NewMetrics()
	if err := testutil.ParseMetrics(`
process_resident_memory_bytes 1e6
process_cpu_seconds_total 2.5
controller_runtime_reconcile_total{controller="sandbox",result="success"} 3
controller_runtime_reconcile_total{controller="sandbox",result="error"} 1
apiserver_request_total{resource="sandboxes",subresource="status",verb="PATCH"} 5
apiserver_request_total{resource="sandboxes",subresource="",verb="POST"} 6
apiserver_request_total{resource="sandboxes",subresource="",verb="LIST"} 7
apiserver_request_total{resource="others",subresource="",verb="POST"} 8
`, &samples); err != nil {
		t.Fatal(err)
	}
	want := &program{memory: 1e6, cpu: 2.5, passes: 4, statusWrites: 5, otherWrites: 6}
	if diff := cmp.Diff(want, newProgram(samples), cmp.AllowUnexported(program{})); diff != "" {
		t.Errorf("figures differ (-want +got):\n%s", diff)
	}
}

func TestExcessIsAnError(t *testing.T) {
	for name, test := range map[string]struct {
		change func(stages []stage) []stage
		want   string
	}{
		"as it must be":       {func(s []stage) []stage { return s }, ""},
		"interrupted":         {func(s []stage) []stage { return s[:1] }, "not complete"},
		"a Pod too many":      {func(s []stage) []stage { s[2].traffic.podCreates["a"]++; return s }, "3 Pods"},
		"a Pod too few":       {func(s []stage) []stage { delete(s[2].traffic.podCreates, "a"); return s }, "1 Pods"},
		"a write too many":    {func(s []stage) []stage { s[2].traffic.statusWrites["a"]++; return s }, "3 times"},
		"a write at rest":     {func(s []stage) []stage { s[1].traffic.requests[sandboxController]["create events"]++; return s }, "at rest"},
		"a change by another": {func(s []stage) []stage { s[1].changed = true; return s }, "at rest"},
	} {
		t.Run(name, func(t *testing.T) {
			var stages []stage
			for _, name := range []string{stageSettled, stageRest, stageGone} {
				stages = append(stages, stage{name: name, traffic: &traffic{
					requests:   map[string]map[string]int{sandboxController: {"create pods": 2}},
					podCreates: map[string]int{"a": 1, "b": 1}, statusWrites: map[string]int{"a": 2, "b": 2},
				}})
			}
			err := check(2, test.change(stages))
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want one with %q", err, test.want)
			}
		})
	}
}
