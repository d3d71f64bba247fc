// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package strategy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/agents/sandbox"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/extensions/sandboxclaim"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/extensions/sandboxtemplate"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/extensions/sandboxwarmpool"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/strategy"
)

type (
	// change is made to an object of any kind.
	change func(runtime.Object)

	// kind is one of ours, with a change to the spec of an object and one to its status.
	kind struct {
		main          strategy.Main
		status        strategy.Status
		empty         runtime.Object
		respec, state change
	}
)

// kinds are all of ours. A template has no status.
func kinds() map[string]kind {
	scheme := runtime.NewScheme()
	return map[string]kind{
		"Sandbox": {sandbox.NewStrategy(scheme), sandbox.NewStatusStrategy(scheme), &agents.Sandbox{},
			func(o runtime.Object) { o.(*agents.Sandbox).Spec.OperatingMode = agents.SandboxOperatingModeSuspended },
			func(o runtime.Object) { o.(*agents.Sandbox).Status.NodeName = "node" }},
		"SandboxClaim": {sandboxclaim.NewStrategy(scheme, nil), sandboxclaim.NewStatusStrategy(scheme), &extensions.SandboxClaim{},
			func(o runtime.Object) { o.(*extensions.SandboxClaim).Spec.WarmPoolRef.Name = "pool" },
			func(o runtime.Object) { o.(*extensions.SandboxClaim).Status.Sandbox.Name = "sandbox" }},
		"SandboxTemplate": {sandboxtemplate.NewStrategy(scheme), nil, &extensions.SandboxTemplate{},
			func(o runtime.Object) { o.(*extensions.SandboxTemplate).Spec.EnvVarsInjectionPolicy = "Allowed" },
			func(runtime.Object) {}},
		"SandboxWarmPool": {sandboxwarmpool.NewStrategy(scheme), sandboxwarmpool.NewStatusStrategy(scheme), &extensions.SandboxWarmPool{},
			func(o runtime.Object) { o.(*extensions.SandboxWarmPool).Spec.SandboxTemplateRef.Name = "template" },
			func(o runtime.Object) { o.(*extensions.SandboxWarmPool).Status.ReadyReplicas = 1 }},
	}
}

func (k kind) object(changes ...change) runtime.Object {
	object := k.empty.DeepCopyObject()
	for _, change := range append([]change{generation(1)}, changes...) {
		change(object)
	}
	return object
}

func label(o runtime.Object) { o.(metav1.Object).SetLabels(map[string]string{"a": "b"}) }

func generation(n int64) change {
	return func(o runtime.Object) { o.(metav1.Object).SetGeneration(n) }
}

func TestPrepareForCreate(t *testing.T) {
	for name, k := range kinds() {
		t.Run(name, func(t *testing.T) {
			got := k.object(generation(7), label, k.respec, k.state)
			k.main.PrepareForCreate(t.Context(), got)
			if diff := cmp.Diff(k.object(label, k.respec), got); diff != "" {
				t.Errorf("prepared (-want +got):\n%s", diff)
			}
		})
	}
}

// update is a change to an object, and what is left of it.
type update struct {
	name          string
	changes, want []change
}

func TestPrepareForUpdate(t *testing.T) {
	for name, k := range kinds() {
		for _, test := range []update{
			{"nothing", nil, nil},
			{"spec", []change{k.respec}, []change{k.respec, generation(2)}},
			{"metadata", []change{label}, []change{label}},
			{"status", []change{k.state}, nil},
		} {
			t.Run(name+" "+test.name, func(t *testing.T) { k.testUpdate(t, k.main, test) })
		}
	}
}

func TestPrepareForUpdateOfStatus(t *testing.T) {
	for name, k := range kinds() {
		if k.status == nil {
			continue
		}
		for _, test := range []update{
			{"status", []change{k.state}, []change{k.state}},
			{"spec", []change{k.respec, k.state}, []change{k.state}},
			{"metadata", []change{label, k.state}, []change{k.state}},
		} {
			t.Run(name+" "+test.name, func(t *testing.T) { k.testUpdate(t, k.status, test) })
		}
	}
}

func (k kind) testUpdate(t *testing.T, strategy rest.RESTUpdateStrategy, test update) {
	t.Helper()
	got := k.object(test.changes...)
	strategy.PrepareForUpdate(t.Context(), got, k.object())
	if diff := cmp.Diff(k.object(test.want...), got); diff != "" {
		t.Errorf("prepared (-want +got):\n%s", diff)
	}
}

// TestResetFields says for each endpoint whether server-side apply gives an owner to fields that the endpoint ignores.
func TestResetFields(t *testing.T) {
	for name, k := range kinds() {
		if k.status == nil {
			if got := k.main.GetResetFields(); len(got) > 0 {
				t.Errorf("%s: %v are ignored, want none: there is no status", name, got)
			}
			continue
		}
		for endpoint, test := range map[string]struct {
			strategy rest.ResetFieldsStrategy
			want     []string
		}{
			"main":   {k.main, []string{"status"}},
			"status": {k.status, []string{"metadata", "spec"}},
		} {
			var got []string
			for _, fields := range test.strategy.GetResetFields() {
				fields.Iterate(func(path fieldpath.Path) { got = append(got, strings.TrimPrefix(path.String(), ".")) })
			}
			slices.Sort(got)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s: fields that %s ignores (-want +got):\n%s", name, endpoint, diff)
			}
		}
	}
}
