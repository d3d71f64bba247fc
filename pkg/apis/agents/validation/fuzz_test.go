// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/install"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/validation"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/apigroup"
)

var group = apigroup.Group{Install: install.Install, Internal: agents.SchemeGroupVersion, Served: v1beta1.SchemeGroupVersion, Testdata: "../v1beta1/testdata"}

var sandboxValidation = apigroup.Validation{
	Create: func(obj runtime.Object) field.ErrorList { return validation.ValidateSandbox(obj.(*agents.Sandbox)) },
	Updates: map[string]func(obj, old runtime.Object) field.ErrorList{
		"sandboxes": func(obj, old runtime.Object) field.ErrorList {
			return validation.ValidateSandboxUpdate(obj.(*agents.Sandbox), old.(*agents.Sandbox))
		},
		"sandboxes/status": func(obj, old runtime.Object) field.ErrorList {
			return validation.ValidateSandboxStatusUpdate(obj.(*agents.Sandbox), old.(*agents.Sandbox))
		},
	},
}

func FuzzValidateSandbox(f *testing.F) {
	var seeds []string
	for _, fields := range [][2]string{
		{`"service": true`, ""},
		{`"shutdownTime": "9999-12-31T23:59:59-01:00"`, ""},
		{`"volumeClaimTemplates": [{"metadata": {"name": "data", "labels": {"a": "b"}}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]`, ""},
		{`"volumeClaimTemplates": [{"spec": {}}, {"spec": {"selector": {"matchLabels": {"": ""}}, "storageClassName": "A", "volumeMode": "b"}}]`, ""},
		{`"operatingMode": "Suspended"`, `, "env": [{"name": "A", "value": "a"}], "livenessProbe": {"tcpSocket": {"port": "http"}}, "resources": {"limits": {"cpu": "1e3"}}`},
	} {
		seeds = append(seeds, fmt.Sprintf(manifest, fields[0], fields[1]))
	}
	group.FuzzValidation(f, func(obj runtime.Object) *apigroup.Validation {
		if _, ok := obj.(*agents.Sandbox); !ok {
			return nil
		}
		return &sandboxValidation
	}, seeds...)
}
