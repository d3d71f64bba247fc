// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// traffic is what the programs of the project have asked of kube-apiserver, from an audit log.
type traffic struct {
	// requests counts the requests of each program, by the name of the program and "verb resource[/subresource]".
	requests map[string]map[string]int
	// podCreates and statusWrites count the successful writes of the controller, by the name of the Sandbox.
	podCreates, statusWrites map[string]int
}

// readTraffic reads a whole audit log.
func readTraffic(files []string) (*traffic, error) {
	t := &traffic{
		requests:   map[string]map[string]int{sandboxAPIServer: {}, sandboxController: {}},
		podCreates: map[string]int{}, statusWrites: map[string]int{},
	}
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		err = errors.Join(t.read(file), file.Close())
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
	}
	return t, nil
}

func (t *traffic) read(from io.Reader) error {
	reader := bufio.NewReaderSize(from, 1<<20)
	for {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // What is left is a line that is being written.
		}
		if err != nil {
			return err
		}
		// Most lines are of others, and not worth decoding.
		if !bytes.Contains(line, []byte(`"userAgent":"sandbox-`)) {
			continue
		}
		var event auditv1.Event
		if err := json.Unmarshal(line, &event); err != nil {
			return err
		}
		t.add(&event)
	}
}

func (t *traffic) add(event *auditv1.Event) {
	program, _, _ := strings.Cut(event.UserAgent, "/")
	requests, ours := t.requests[program]
	if !ours || event.ObjectRef == nil || event.ResponseStatus == nil {
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
