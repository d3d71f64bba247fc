// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/bench/latency"
)

// maxMessages bounds how many errors a report tells about in words.
const maxMessages = 5

// result is what a scenario has shown. Latencies are in milliseconds.
type result struct {
	Scenario string `json:"scenario"`
	Claims   int    `json:"claims"`
	// Post is how long the creation of a claim took, Ready how long it took until the claim could be used. Watched is how long it took
	// until a watch from the answer on told so: some clients do not look at the answer.
	Post    latency.Distribution `json:"post"`
	Ready   latency.Distribution `json:"ready"`
	Watched latency.Distribution `json:"watched"`
	// PodPost is how long the creation of a bare Pod took. Ratio is the median of Post divided by that.
	PodPost latency.Distribution `json:"podPost"`
	Ratio   float64              `json:"ratio"`
	// PerSecond is the number of claims that became ready, divided by the time from the first request to the last of them.
	PerSecond float64 `json:"claimsPerSecond"`
	// ReadyInAnswer is the share of claims whose creation was answered with all that is needed to use the Sandbox, Cold is the share of
	// those whose Sandbox was made for them.
	ReadyInAnswer float64 `json:"readyInAnswer"`
	Cold          float64 `json:"cold"`
	// Refill is how many seconds it took after the last claim of each round until the pool was full again.
	Refill []float64 `json:"refillSeconds"`
	// Errors counts claims that could not be created or did not become ready, WrongBindings counts what is wrong with who has got what.
	// Messages tells of some of both.
	Errors        int      `json:"errors"`
	WrongBindings int      `json:"wrongBindings"`
	Messages      []string `json:"messages,omitempty"`
	// Processes are the costs of each process that is known, by its name.
	Processes map[string]processCosts `json:"processes,omitempty"`
	// Server is what only the server of the project tells.
	Server *serverCosts `json:"server,omitempty"`

	attempts []attempt
	pods     []time.Duration
	cold     int
	// busy is the time of all rounds.
	busy time.Duration
}

// processCosts are what a process used while claims were made.
type processCosts struct {
	CPUSeconds float64 `json:"cpuSeconds"`
	// MemoryMB and PeakMB are the resident set at the end, and the largest ever, in millions of bytes.
	MemoryMB float64 `json:"memoryMB"`
	PeakMB   float64 `json:"peakMB"`
}

// serverCosts are what the server of the project did for claims. Times are the means of the creation of a claim in milliseconds, as seen
// from further and further inside.
type serverCosts struct {
	// WritesPerClaim is the number of transactions that wrote a claim or its Sandbox, from its creation on.
	WritesPerClaim float64 `json:"etcdWritesPerClaim"`
	// RequestsPerClaim is the number of requests that the server made to kube-apiserver meanwhile.
	RequestsPerClaim float64 `json:"kubeAPIServerRequestsPerClaim"`
	Client           float64 `json:"clientMean"`
	KubeAPIServer    float64 `json:"kubeAPIServerMean"`
	Server           float64 `json:"serverMean"`
	Etcd             float64 `json:"etcdMean"`

	writes, requests      int
	kubeAPIServer         []time.Duration
	served, serverSeconds float64
	etcdSeconds           float64
}

func newResult(s scenario) *result {
	return &result{Scenario: s.name, Processes: map[string]processCosts{}}
}

// add adds the claims of a round.
func (r *result) add(attempts []attempt) {
	r.attempts = append(r.attempts, attempts...)
	var first, last time.Time
	for i := range attempts {
		a := &attempts[i]
		if first.IsZero() || a.begin.Before(first) {
			first = a.begin
		}
		if a.ready.After(last) {
			last = a.ready
		}
		if a.err != nil {
			r.Errors++
			r.say(fmt.Sprintf("claim %s: %v", a.name, a.err))
		}
	}
	if last.After(first) {
		r.busy += last.Sub(first)
	}
}

// say adds a message, unless there are many.
func (r *result) say(message string) {
	if len(r.Messages) < maxMessages {
		r.Messages = append(r.Messages, message)
	}
}

// addUsage adds what each process used in a round.
func (r *result) addUsage(before, after *snapshot) {
	for name, end := range after.processes {
		costs := r.Processes[name]
		costs.CPUSeconds += (end.cpu - before.processes[name].cpu).Seconds()
		costs.MemoryMB, costs.PeakMB = float64(end.memory)/1e6, float64(end.peak)/1e6
		r.Processes[name] = costs
	}
}

// addServer adds what the server did in a round.
func (r *result) addServer(before, after *snapshot, t *traffic, writes int) {
	if r.Server == nil {
		r.Server = &serverCosts{}
	}
	s := r.Server
	s.writes += writes
	s.requests += t.serverRequests
	s.kubeAPIServer = append(s.kubeAPIServer, t.claims...)
	added := func(name string, count func(labels map[string]string) bool) float64 {
		return after.server.Total(name, count) - before.server.Total(name, count)
	}
	s.served += added("apiserver_request_duration_seconds_count", createsClaim)
	s.serverSeconds += added("apiserver_request_duration_seconds_sum", createsClaim)
	s.etcdSeconds += added("etcd_request_duration_seconds_sum", writesClaim)
}

// createsClaim says whether a sample of the metrics of requests is about the creation of claims.
func createsClaim(labels map[string]string) bool {
	return labels["resource"] == "sandboxclaims" && labels["subresource"] == "" && labels["verb"] == "POST"
}

// writesClaim says whether a sample of the metrics of etcd is about the transactions that make claims.
func writesClaim(labels map[string]string) bool {
	return labels["resource"] == "sandboxclaims" && labels["operation"] == "create"
}

// addWrong adds something that is wrong with who has got what.
func (r *result) addWrong(message string) {
	r.WrongBindings++
	r.say(message)
}

// changedBindings returns what is wrong with claims that say now that they have another Sandbox than at their creation.
func (r *result) changedBindings(claims []extensionsv1beta1.SandboxClaim) []string {
	now := map[string]string{}
	for i := range claims {
		now[claims[i].Name] = claims[i].Status.Sandbox.Name
	}
	var wrong []string
	for i := range r.attempts {
		if a := &r.attempts[i]; a.sandbox != "" && a.sandbox != now[a.name] {
			wrong = append(wrong, fmt.Sprintf("claim %s was given sandbox %s and has %q now", a.name, a.sandbox, now[a.name]))
		}
	}
	return wrong
}

// summarize fills in what follows from all that was added.
func (r *result) summarize() {
	var posts, readies, watches []time.Duration
	inAnswer := 0
	for i := range r.attempts {
		a := &r.attempts[i]
		if a.inResponse {
			inAnswer++
		}
		posts = appendSince(posts, a.begin, a.answered)
		readies = appendSince(readies, a.begin, a.ready)
		watches = appendSince(watches, a.begin, a.watched)
	}
	r.Claims = len(r.attempts)
	r.Post, r.Ready, r.Watched, r.PodPost = latency.Of(posts), latency.Of(readies), latency.Of(watches), latency.Of(r.pods)
	r.Ratio = quotient(r.Post.P50, r.PodPost.P50)
	r.PerSecond = quotient(float64(len(readies)), r.busy.Seconds())
	r.ReadyInAnswer = quotient(float64(inAnswer), float64(r.Claims))
	r.Cold = quotient(float64(r.cold), float64(r.Claims))
	if s := r.Server; s != nil {
		s.WritesPerClaim = quotient(float64(s.writes), float64(r.Claims))
		s.RequestsPerClaim = quotient(float64(s.requests), float64(r.Claims))
		s.Client, s.KubeAPIServer = latency.Mean(posts), latency.Mean(s.kubeAPIServer)
		s.Server, s.Etcd = 1000*quotient(s.serverSeconds, s.served), 1000*quotient(s.etcdSeconds, s.served)
	}
}

// appendSince appends how long something took, if it happened at all.
func appendSince(samples []time.Duration, begin, end time.Time) []time.Duration {
	if end.IsZero() {
		return samples
	}
	return append(samples, end.Sub(begin))
}

// summary is one line about the result.
func (r *result) summary() string {
	return fmt.Sprintf("Ready after %.1f ms (p50), %.1f ms (p99); %.0f claims/s; %d errors, %d wrong bindings",
		r.Ready.P50, r.Ready.P99, r.PerSecond, r.Errors, r.WrongBindings)
}

// quotient is 0 where there is nothing to divide by.
func quotient(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
