// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/install"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/validation"
)

const manifest = `{"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "metadata": {"name": "sandbox", "namespace": "default"},
	"spec": {%s, "podTemplate": {"spec": {"containers": [{"name": "main", "image": "image"%s}]}}}}`

// decode reads a manifest as the server does for a request: what fails here is answered with 400.
func decode(t *testing.T, spec, container string) (*agents.Sandbox, error) {
	t.Helper()
	scheme := runtime.NewScheme()
	install.Install(scheme)
	decoder := serializer.NewCodecFactory(scheme).UniversalDecoder(agents.SchemeGroupVersion)
	obj, err := runtime.Decode(decoder, fmt.Appendf(nil, manifest, spec, container))
	if err != nil {
		return nil, err
	}
	return obj.(*agents.Sandbox), nil
}

// TestShutdownTimeForms is about dates as people write them (case V11): one that does not say which moment it means is refused
// with the value, and any other is stored as that moment.
func TestShutdownTimeForms(t *testing.T) {
	const unreadable = "cannot parse"
	for _, test := range []struct {
		form string
		// want is the stored time as it is written in JSON, or part of the error.
		want, wantErr string
	}{
		{form: `"2026-09-01T10:00:00Z"`, want: "2026-09-01T10:00:00Z"},
		{form: `"2026-09-01T10:00:00+09:00"`, want: "2026-09-01T01:00:00Z"},
		{form: `"2026-09-01T10:00:00.999Z"`, want: "2026-09-01T10:00:00Z"},
		{form: `"9999-12-31T23:59:59Z"`, want: "9999-12-31T23:59:59Z"},
		{form: `"1970-01-01T00:00:00Z"`, want: "1970-01-01T00:00:00Z"},
		{form: `null`, want: "null"},
		{form: `"2026-09-01 10:00"`, wantErr: unreadable},
		{form: `"2026-09-01 10:00:00Z"`, wantErr: unreadable},
		{form: `"2026-09-01T10:00:00"`, wantErr: unreadable},
		{form: `"2026-09-01"`, wantErr: unreadable},
		{form: `"tomorrow"`, wantErr: unreadable},
		{form: `""`, wantErr: unreadable},
		{form: `"10000-01-01T00:00:00Z"`, wantErr: unreadable},
		{form: `"2026-06-30T23:59:60Z"`, wantErr: "second out of range"},
		{form: `"2026-09-01T24:00:00Z"`, wantErr: "hour out of range"},
		{form: `"2026-02-29T10:00:00Z"`, wantErr: "day out of range"},
		{form: `1788256800`, wantErr: "cannot unmarshal number"},
	} {
		t.Run(test.form, func(t *testing.T) {
			sandbox, err := decode(t, `"shutdownTime": `+test.form, "")
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Fatalf("error is %v, want one with %q", err, test.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if errs := validation.ValidateSandbox(sandbox); len(errs) > 0 {
				t.Errorf("refused: %v", errs)
			}
			got := "null"
			if sandbox.Spec.ShutdownTime != nil {
				got = sandbox.Spec.ShutdownTime.ToUnstructured().(string)
			}
			if got != test.want {
				t.Errorf("stored as %s, want %s", got, test.want)
			}
		})
	}
}

// TestQuantityForms is about quantities that are none (case V7): they are refused before there is an object, wherever in a Sandbox they
// stand, and so are never stored.
func TestQuantityForms(t *testing.T) {
	for form, wantErr := range map[string]string{
		`"1Gi"`:      "",
		`"1024Mi"`:   "",
		`1024`:       "",
		`"1e3"`:      "",
		`"4gb"`:      "quantities must match",
		`""`:         "quantities must match",
		`"1 Gi"`:     "quantities must match",
		`"1Gi1"`:     "unable to parse quantity's suffix",
		`"NaN"`:      "quantities must match",
		`"Infinity"`: "quantities must match",
		`"0x10"`:     "quantities must match",
		`true`:       "quantities must match",
		`{}`:         "quantities must match",
	} {
		t.Run(form, func(t *testing.T) {
			for where, err := range map[string]error{
				"container": decodeError(t, `"service": true`, `, "resources": {"limits": {"memory": `+form+`}}`),
				"claim":     decodeError(t, `"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": `+form+`}}}}]`, ""),
			} {
				if (err == nil) != (wantErr == "") || err != nil && !strings.Contains(err.Error(), wantErr) {
					t.Errorf("%s: error is %v, want one with %q", where, err, wantErr)
				}
			}
		})
	}
}

func decodeError(t *testing.T, spec, container string) error {
	t.Helper()
	_, err := decode(t, spec, container)
	return err
}
