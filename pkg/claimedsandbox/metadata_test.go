// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package claimedsandbox

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/labeldomains"
)

// TestCheckMetadata is cases C7 and C8 where no template is needed to tell.
func TestCheckMetadata(t *testing.T) {
	const safeToEvict = agentsv1beta1.SafeToEvictAnnotation
	for name, test := range map[string]struct {
		labels, annotations pairs
		allowed             labeldomains.List
		// want are the errors, each as type, path and what its text must contain.
		want []string
	}{
		"nothing":            {},
		"allowed by default": {labels: pairs{"sandbox.users.io/a": "b", "deep.sandbox.users.io/a": ""}},
		"no prefix": {
			labels: pairs{"team": "a"},
			want:   []string{`Forbidden m.labels[team] label "team" must have a domain prefix (one of: sandbox.users.io`},
		},
		"foreign domain": {
			labels: pairs{"evil.io/a": "b"},
			want:   []string{`Forbidden m.labels[evil.io/a] label domain "evil.io" is not in the allowlist: sandbox.users.io`},
		},
		"a list replaces the default": {
			labels: pairs{"sandbox.users.io/a": "b", "evil.io/a": "b"}, allowed: labeldomains.List{"evil.io"},
			want: []string{`Forbidden m.labels[sandbox.users.io/a] evil.io`},
		},
		"router": {
			labels: pairs{"app": "sandbox-router"}, want: []string{"Forbidden m.labels[app] restricted system label value: sandbox-router"},
		},
		"router in capitals": {
			labels: pairs{"App": "Sandbox-Router"}, want: []string{"Forbidden m.labels[App] restricted system label value: Sandbox-Router"},
		},
		"system label, whatever the list": {
			labels: pairs{agentsv1beta1.ClaimUIDLabel: "x", "extensions.agents.x-k8s.io/a": "b"}, allowed: labeldomains.List{"x-k8s.io"},
			want: []string{"Forbidden m.labels[" + agentsv1beta1.ClaimUIDLabel + "] agents.x-k8s.io", "Forbidden m.labels[extensions.agents.x-k8s.io/a] allowlist"},
		},
		"value too long": {
			labels: pairs{"sandbox.users.io/a": strings.Repeat("a", 64)}, want: []string{"Invalid m.labels[sandbox.users.io/a] 63"},
		},
		"value of bad pattern": {
			labels: pairs{"sandbox.users.io/a": "b c"}, want: []string{"Invalid m.labels[sandbox.users.io/a] alphanumeric"},
		},
		"label that is no key": {labels: pairs{"a b": "c"}, want: []string{"Invalid m.labels[a b] name part"}},
		"annotations": {
			annotations: pairs{"plain": strings.Repeat("a", 64), "example.com/a": "b c", "Capitals.io/A": "", safeToEvict: "false"},
		},
		"system annotations": {
			annotations: pairs{"kubernetes.io/a": "", "a.k8s.io/b": "", "agents.x-k8s.io/a": "", "x.agents.x-k8s.io/a": ""},
			want: []string{
				"Forbidden m.annotations[a.k8s.io/b] reserved", "Forbidden m.annotations[agents.x-k8s.io/a] reserved",
				"Forbidden m.annotations[kubernetes.io/a] reserved", "Forbidden m.annotations[x.agents.x-k8s.io/a] reserved",
			},
		},
		"near misses of system annotations": {annotations: pairs{"mykubernetes.io/a": "", "kubernetes.io.example.com/a": ""}},
		"safe to evict, almost": {
			annotations: pairs{safeToEvict + "-too": "true"}, want: []string{"Forbidden m.annotations[" + safeToEvict + "-too] reserved"},
		},
		"annotation that is no key": {annotations: pairs{"a/b/c": ""}, want: []string{"Invalid m.annotations[a/b/c] a valid label key"}},
		"all, in order": {
			labels: pairs{"z": "", "a": ""}, annotations: pairs{"k8s.io/b": "", "k8s.io/a": ""},
			want: []string{"Forbidden m.labels[a] ", "Forbidden m.labels[z] ", "Forbidden m.annotations[k8s.io/a] ", "Forbidden m.annotations[k8s.io/b] "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			allowed := test.allowed
			if allowed == nil {
				allowed = labeldomains.Default
			}
			got := CheckMetadata(&agentsv1beta1.PodMetadata{Labels: test.labels, Annotations: test.annotations}, allowed, field.NewPath("m"))
			wantErrors(t, test.want, got)
		})
	}
}

// wantErrors compares errors with what is wanted of them: type, path and a part of the text.
func wantErrors(t *testing.T, want []string, got field.ErrorList) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("errors are %v, want %q", got.ToAggregate(), want)
	}
	for i, err := range got {
		start, part := strings.TrimPrefix(string(err.Type), "FieldValue")+" "+err.Field+" ", ""
		if rest, ok := strings.CutPrefix(want[i], start); ok {
			part = rest
		} else {
			t.Errorf("error %d is %s%s, want %s", i, start, err.Detail, want[i])
		}
		if !strings.Contains(err.Detail, part) {
			t.Errorf("error %d says %q, want %q in it", i, err.Detail, part)
		}
	}
}

func TestRejectMetadata(t *testing.T) {
	if got := RejectMetadata(nil); got != nil {
		t.Errorf("rejected for nothing: %v", got)
	}
	got := RejectMetadata(field.ErrorList{field.Forbidden(field.NewPath("a"), "b")})
	if got.Reason != extensionsv1beta1.ClaimReasonInvalidMetadata || got.Error() != "invalid additionalPodMetadata: a: Forbidden: b" {
		t.Errorf("rejection is %s: %v", got.Reason, got)
	}
}
