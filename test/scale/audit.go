// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

// traffic is what the programs of the project have asked of kube-apiserver, from an audit log.
type traffic struct {
	// requests counts the requests of each program, by the name of the program and "verb resource[/subresource]".
	requests map[string]map[string]int
	// podCreates and statusWrites count the successful writes of the controller, by the name of the Sandbox.
	podCreates, statusWrites map[string]int
}

func newTraffic() *traffic {
	return &traffic{
		requests:   map[string]map[string]int{sandboxAPIServer: {}, sandboxController: {}},
		podCreates: map[string]int{}, statusWrites: map[string]int{},
	}
}

// readTraffic reads the whole audit log of a cluster.
func readTraffic(cluster *framework.LightCluster) (*traffic, error) {
	t := newTraffic()
	return t, cluster.EachAuditEvent(`"userAgent":"sandbox-`, t.add)
}

func (t *traffic) add(event *auditv1.Event) {
	program, _, _ := strings.Cut(event.UserAgent, "/")
	requests, ours := t.requests[program]
	if !ours || event.ObjectRef == nil {
		return
	}
	resource := event.ObjectRef.Resource
	if event.ObjectRef.Subresource != "" {
		resource += "/" + event.ObjectRef.Subresource
	}
	requests[event.Verb+" "+resource]++
	if program != sandboxController || event.ResponseStatus.Code >= 300 {
		return
	}
	switch event.Verb + " " + resource {
	case "create pods":
		t.podCreates[event.ObjectRef.Name]++
	case "patch sandboxes/status":
		t.statusWrites[event.ObjectRef.Name]++
	}
}

// writes returns how many of the requests of a program may have changed something.
func (t *traffic) writes(program string) int {
	writes := 0
	for request, count := range t.requests[program] {
		switch verb, _, _ := strings.Cut(request, " "); verb {
		case "create", "update", "patch", "delete", "deletecollection":
			writes += count
		}
	}
	return writes
}

func sum(counts map[string]int) int {
	total := 0
	for _, count := range counts {
		total += count
	}
	return total
}

func largest(counts map[string]int) int {
	largest := 0
	for _, count := range counts {
		largest = max(largest, count)
	}
	return largest
}
