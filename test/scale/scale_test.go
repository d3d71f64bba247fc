// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

func TestTrafficOfOurProgramsIsCounted(t *testing.T) {
	got := newTraffic()
	for _, event := range []struct {
		program, verb, resource, subresource, name string
		code                                       int32
	}{
		{sandboxController, "create", "pods", "", "a", 201},
		{sandboxController, "create", "pods", "", "b", 403},
		{sandboxController, "patch", "sandboxes", "status", "a", 200},
		{sandboxController, "patch", "sandboxes", "status", "a", 200},
		{sandboxController, "watch", "pods", "", "", 200},
		{sandboxAPIServer, "create", "pods", "", "a", 201},
		{"kube-scheduler", "create", "pods", "binding", "a", 201},
	} {
		got.add(&auditv1.Event{
			UserAgent: event.program + "/v0 (linux/amd64)", Verb: event.verb, ResponseStatus: &metav1.Status{Code: event.code},
			ObjectRef: &auditv1.ObjectReference{Resource: event.resource, Subresource: event.subresource, Name: event.name},
		})
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
	metrics, err := framework.ParseMetrics(`
process_resident_memory_bytes 1e6
process_cpu_seconds_total 2.5
controller_runtime_reconcile_total{controller="sandbox",result="success"} 3
controller_runtime_reconcile_total{controller="sandbox",result="error"} 1
apiserver_request_total{resource="sandboxes",subresource="status",verb="PATCH"} 5
apiserver_request_total{resource="sandboxes",subresource="",verb="POST"} 6
apiserver_request_total{resource="sandboxes",subresource="",verb="LIST"} 7
apiserver_request_total{resource="others",subresource="",verb="POST"} 8
`)
	if err != nil {
		t.Fatal(err)
	}
	want := &program{memory: 1e6, cpu: 2.5, passes: 4, statusWrites: 5, otherWrites: 6}
	if diff := cmp.Diff(want, newProgram(metrics), cmp.AllowUnexported(program{})); diff != "" {
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
