// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
)

type poolTweak = func(*extensions.SandboxWarmPool)

func validPool(tweaks ...poolTweak) *extensions.SandboxWarmPool {
	pool := &extensions.SandboxWarmPool{
		ObjectMeta: validMeta(),
		Spec: extensions.SandboxWarmPoolSpec{
			Replicas:           ptr.To[int32](1),
			SandboxTemplateRef: extensions.SandboxTemplateRef{Name: "template"},
		},
	}
	for _, tweak := range tweaks {
		tweak(pool)
	}
	return pool
}

func replicas(n int32) poolTweak {
	return func(p *extensions.SandboxWarmPool) { p.Spec.Replicas = &n }
}

func ofTemplate(name string) poolTweak {
	return func(p *extensions.SandboxWarmPool) { p.Spec.SandboxTemplateRef.Name = name }
}

func updated(how extensions.SandboxWarmPoolUpdateStrategyType) poolTweak {
	return func(p *extensions.SandboxWarmPool) {
		p.Spec.UpdateStrategy = &extensions.SandboxWarmPoolUpdateStrategy{Type: how}
	}
}

// faultyPools is a fault of each kind, by what it is, with what is said of it.
var faultyPools = map[string]struct {
	fault poolTweak
	want  []string
}{
	"fewer than none":                         {replicas(-1), []string{"FieldValueInvalid spec.replicas"}},
	"no template":                             {ofTemplate(""), []string{"FieldValueRequired spec.sandboxTemplateRef.name"}},
	"template that can be no one":             {ofTemplate("a/b"), []string{"FieldValueInvalid spec.sandboxTemplateRef.name"}},
	"unknown strategy":                        {updated("RollingUpdate"), []string{"FieldValueNotSupported spec.updateStrategy.type"}},
	"unreadable time of an owner of fields":   {func(p *extensions.SandboxWarmPool) { p.ManagedFields = ownedSince(lateInUTC()) }, []string{"FieldValueInvalid metadata.managedFields[0].time"}},
	"template of a name longer than any name": {ofTemplate(strings.Repeat("a", 254)), []string{"FieldValueInvalid spec.sandboxTemplateRef.name"}},
}

func TestValidateSandboxWarmPool(t *testing.T) {
	for name, pool := range map[string]*extensions.SandboxWarmPool{
		"minimal":        validPool(),
		"none":           validPool(replicas(0)),
		"many":           validPool(replicas(1_000_000)),
		"not said":       validPool(func(p *extensions.SandboxWarmPool) { p.Spec.Replicas = nil }),
		"recreated":      validPool(updated(extensions.RecreateSandboxWarmPoolUpdateStrategyType)),
		"on replenish":   validPool(updated(extensions.OnReplenishSandboxWarmPoolUpdateStrategyType)),
		"of a subdomain": validPool(ofTemplate("a.b")),
	} {
		t.Run(name, func(t *testing.T) {
			if errs := ValidateSandboxWarmPool(pool); len(errs) > 0 {
				t.Errorf("refused: %v", errs)
			}
		})
	}
	for name, test := range faultyPools {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, problems(ValidateSandboxWarmPool(validPool(test.fault)))); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUnchangedFaultsOfAPoolBlockNothing stores what each rule forbids, as an older release may have, and then writes something else.
func TestUnchangedFaultsOfAPoolBlockNothing(t *testing.T) {
	label := func(p *extensions.SandboxWarmPool) { p.Labels = map[string]string{"a": "b"} }
	for name, test := range faultyPools {
		t.Run(name, func(t *testing.T) {
			stored := validPool(test.fault)
			if diff := cmp.Diff(test.want, problems(ValidateSandboxWarmPoolUpdate(stored, validPool()))); diff != "" {
				t.Errorf("introducing it: errors (-want +got):\n%s", diff)
			}
			if errs := ValidateSandboxWarmPoolUpdate(validPool(test.fault, label), stored); len(errs) > 0 {
				t.Errorf("then changing something else: %v", errs)
			}
			if errs := ValidateSandboxWarmPoolStatusUpdate(stored, stored); len(errs) > 0 {
				t.Errorf("then writing the status: %v", errs)
			}
		})
	}
}

func TestTemplateOfAPoolMayChange(t *testing.T) {
	if errs := ValidateSandboxWarmPoolUpdate(validPool(ofTemplate("other")), validPool()); len(errs) > 0 {
		t.Errorf("refused: %v", errs)
	}
}

func TestValidateSandboxWarmPoolStatusUpdate(t *testing.T) {
	condition := metav1.Condition{Type: "Progressing", Status: metav1.ConditionTrue, Reason: "Progressing", LastTransitionTime: metav1.Now()}
	status := func(change func(*extensions.SandboxWarmPoolStatus)) *extensions.SandboxWarmPool {
		return validPool(func(p *extensions.SandboxWarmPool) { change(&p.Status) })
	}
	for _, test := range []struct {
		name string
		pool *extensions.SandboxWarmPool
		want []string
	}{
		{"empty", validPool(), nil},
		{"full", status(func(s *extensions.SandboxWarmPoolStatus) {
			*s = extensions.SandboxWarmPoolStatus{Replicas: 2, ReadyReplicas: 1, Selector: "a=b", ObservedGeneration: 1, Conditions: []metav1.Condition{condition}}
		}), nil},
		{"negative numbers", status(func(s *extensions.SandboxWarmPoolStatus) {
			s.Replicas, s.ReadyReplicas, s.ObservedGeneration = -1, -1, -1
		}),
			[]string{"FieldValueInvalid status.replicas", "FieldValueInvalid status.readyReplicas", "FieldValueInvalid status.observedGeneration"}},
		{"condition twice", status(func(s *extensions.SandboxWarmPoolStatus) { s.Conditions = []metav1.Condition{condition, condition} }),
			[]string{"FieldValueDuplicate status.conditions[1].type"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, problems(ValidateSandboxWarmPoolStatusUpdate(test.pool, validPool()))); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestValidateScale(t *testing.T) {
	for n, want := range map[int32][]string{0: nil, 1: nil, -1: {"FieldValueInvalid spec.replicas"}} {
		if diff := cmp.Diff(want, problems(ValidateScale(&autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: n}}))); diff != "" {
			t.Errorf("%d: errors (-want +got):\n%s", n, diff)
		}
	}
}
