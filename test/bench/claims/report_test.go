// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/bench/latency"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// after returns the moment so many milliseconds after the first request.
func after(milliseconds int) time.Time {
	return epoch.Add(time.Duration(milliseconds) * time.Millisecond)
}

func parseMetrics(t *testing.T, text string) framework.Metrics {
	t.Helper()
	metrics, err := framework.ParseMetrics(text)
	if err != nil {
		t.Fatal(err)
	}
	return metrics
}

// newTestResult returns the result of two rounds: three claims, one of which failed.
func newTestResult(t *testing.T) *result {
	t.Helper()
	r := newResult(scenario{name: "some"})
	r.pods = []time.Duration{2 * time.Millisecond, 4 * time.Millisecond}
	r.add([]attempt{
		{name: "some-0-0", begin: after(0), answered: after(4), ready: after(4), watched: after(10), inResponse: true, sandbox: "x"},
		{name: "some-0-1", begin: after(0), answered: after(8), ready: after(20), watched: after(20)},
	})
	r.add([]attempt{{name: "some-1-0", begin: after(100), err: errors.New("refused")}})
	before := &snapshot{processes: map[string]usage{"server": {cpu: time.Second, memory: 1e6, peak: 2e6}}, server: parseMetrics(t, `
apiserver_request_duration_seconds_sum{resource="sandboxclaims",subresource="",verb="POST"} 1
apiserver_request_duration_seconds_count{resource="sandboxclaims",subresource="",verb="POST"} 10
etcd_request_duration_seconds_sum{operation="create",resource="sandboxclaims"} 1
`)}
	end := &snapshot{processes: map[string]usage{"server": {cpu: 3 * time.Second, memory: 3e6, peak: 4e6}}, server: parseMetrics(t, `
apiserver_request_duration_seconds_sum{resource="sandboxclaims",subresource="",verb="POST"} 1.008
apiserver_request_duration_seconds_sum{resource="sandboxclaims",subresource="bind",verb="POST"} 5
apiserver_request_duration_seconds_count{resource="sandboxclaims",subresource="",verb="POST"} 12
etcd_request_duration_seconds_sum{operation="create",resource="sandboxclaims"} 1.002
etcd_request_duration_seconds_sum{operation="update",resource="sandboxclaims"} 7
`)}
	r.addUsage(before, end)
	r.addServer(before, end, &traffic{claims: []time.Duration{3 * time.Millisecond, 5 * time.Millisecond}, serverRequests: 3}, 6)
	r.Refill = []float64{1.5, 0.5}
	r.addWrong("a Sandbox is wrong")
	r.cold = 1
	r.summarize()
	return r
}

func TestResult(t *testing.T) {
	t.Parallel()
	want := &result{
		Scenario: "some", Claims: 3,
		Post:    latency.Distribution{Samples: 2, P50: 4, P90: 8, P99: 8, Max: 8},
		Ready:   latency.Distribution{Samples: 2, P50: 4, P90: 20, P99: 20, Max: 20},
		Watched: latency.Distribution{Samples: 2, P50: 10, P90: 20, P99: 20, Max: 20},
		PodPost: latency.Distribution{Samples: 2, P50: 2, P90: 4, P99: 4, Max: 4},
		Ratio:   2, PerSecond: 100, ReadyInAnswer: 1.0 / 3, Cold: 1.0 / 3, Refill: []float64{1.5, 0.5},
		Errors: 1, WrongBindings: 1, Messages: []string{"claim some-1-0: refused", "a Sandbox is wrong"},
		Processes: map[string]processCosts{"server": {CPUSeconds: 2, MemoryMB: 3, PeakMB: 4}},
		Server:    &serverCosts{WritesPerClaim: 2, RequestsPerClaim: 1, Client: 6, KubeAPIServer: 4, Server: 4, Etcd: 1},
	}
	diff := cmp.Diff(want, newTestResult(t), cmpopts.IgnoreUnexported(result{}, serverCosts{}), cmpopts.EquateApprox(0, 1e-6))
	if diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

func TestMessagesAreFew(t *testing.T) {
	t.Parallel()
	r := newResult(scenario{})
	for range 7 {
		r.addWrong("a Sandbox is wrong")
	}
	if r.WrongBindings != 7 || len(r.Messages) != maxMessages {
		t.Errorf("%d wrong bindings and %d messages", r.WrongBindings, len(r.Messages))
	}
}

func TestChangedBindings(t *testing.T) {
	t.Parallel()
	r := newResult(scenario{})
	r.add([]attempt{{name: "a", sandbox: "x"}, {name: "b", sandbox: "y"}, {name: "c"}, {name: "d", sandbox: "z"}})
	got := r.changedBindings([]extensionsv1beta1.SandboxClaim{claimOf("a", "x"), claimOf("b", "other"), claimOf("c", "late")})
	want := []string{`claim b was given sandbox y and has "other" now`, `claim d was given sandbox z and has "" now`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("wrong (-want +got):\n%s", diff)
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	foreign := newResult(scenario{name: "foreign"})
	foreign.summarize()
	r := &report{Cluster: "test", Results: []*result{newTestResult(t), foreign}}

	var table bytes.Buffer
	if err := r.writeTable(&table); err != nil {
		t.Fatal(err)
	}
	for row, want := range map[string]string{
		"cluster: test":             "some foreign",
		"Ready p50":                 "4.0 0.0",
		"ready in the answer":       "33.3% 0.0%",
		"etcd writes per claim":     "2.00 n/a",
		"pool full again after (s)": "1.5 n/a",
		"CPU seconds: server":       "2.00 n/a",
		"memory (MB): server":       "3 n/a",
	} {
		if got := tableRow(table.String(), row); got != want {
			t.Errorf("row %q is %q, want %q", row, got, want)
		}
	}

	file := filepath.Join(t.TempDir(), "report.json")
	if err := r.save(file); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := &report{}
	if err := json.Unmarshal(data, got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, got, cmpopts.IgnoreUnexported(result{}, serverCosts{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("report read back (-want +got):\n%s", diff)
	}
}

// tableRow returns the values of a row, with one space between them.
func tableRow(table, title string) string {
	for line := range strings.Lines(table) {
		if values, found := strings.CutPrefix(strings.TrimSpace(line), title+"  "); found {
			return strings.Join(strings.Fields(values), " ")
		}
	}
	return ""
}

func TestErrorsAndWrongBindingsFailTheRun(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		result result
		want   string
	}{
		"all well":        {result{Ready: latency.Distribution{P99: 1e9}}, ""},
		"errors":          {result{Errors: 1, Messages: []string{"refused"}}, "refused"},
		"a wrong binding": {result{WrongBindings: 1}, "1 wrong bindings"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := (&report{Results: []*result{&test.result}}).check()
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want one with %q", err, test.want)
			}
		})
	}
}
