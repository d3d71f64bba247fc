// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// EachAuditEvent calls do for each request that kube-apiserver has answered and whose record contains a text: who asked for what, and
// when, without contents.
func (c *LightCluster) EachAuditEvent(text string, do func(*auditv1.Event)) error {
	// Older logs have a time in their names.
	files, err := filepath.Glob(filepath.Join(c.Dir, "audit", "audit*.log"))
	if err != nil {
		return err
	}
	for _, name := range files {
		if err := EachAuditEvent(name, text, do); err != nil {
			return err
		}
	}
	return nil
}

// EachAuditEvent calls do for each answered request in an audit log whose record contains a text.
func EachAuditEvent(name, text string, do func(*auditv1.Event)) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	if err := errors.Join(readAuditLog(file, text, do), file.Close()); err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	return nil
}

// readAuditLog calls do for each answered request in a log whose line contains a text.
func readAuditLog(from io.Reader, text string, do func(*auditv1.Event)) error {
	reader := bufio.NewReaderSize(from, 1<<20)
	for {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // What is left is a line that is being written.
		}
		if err != nil {
			return err
		}
		if !bytes.Contains(line, []byte(text)) {
			continue
		}
		event := &auditv1.Event{}
		if err := json.Unmarshal(line, event); err != nil {
			return err
		}
		if event.ResponseStatus != nil {
			do(event)
		}
	}
}

// AuditEvents returns what kube-apiserver recorded of the requests about objects in a namespace that it has answered.
func (c *LightCluster) AuditEvents(namespace string) ([]auditv1.Event, error) {
	var events []auditv1.Event
	err := c.EachAuditEvent(namespace, func(event *auditv1.Event) {
		if event.ObjectRef != nil && event.ObjectRef.Namespace == namespace {
			events = append(events, *event)
		}
	})
	return events, err
}
