// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// AuditLogs returns the files in which kube-apiserver records the requests that it has answered, the older ones too.
func (c *LightCluster) AuditLogs() ([]string, error) {
	return filepath.Glob(filepath.Join(c.Dir, "audit", "audit*.log"))
}

// AuditEvents returns what kube-apiserver recorded of the requests about objects in a namespace that it has answered: who asked for
// what, without contents.
func (c *LightCluster) AuditEvents(namespace string) ([]auditv1.Event, error) {
	files, err := c.AuditLogs()
	if err != nil {
		return nil, err
	}
	var events []auditv1.Event
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for line := range bytes.Lines(data) {
			var event auditv1.Event
			if !bytes.Contains(line, []byte(namespace)) || json.Unmarshal(line, &event) != nil {
				continue // Another namespace, or a line that is being written.
			}
			if event.ObjectRef != nil && event.ObjectRef.Namespace == namespace && event.ResponseStatus != nil {
				events = append(events, event)
			}
		}
	}
	return events, nil
}
