// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxclaim

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/labeldomains"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/strategy"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func testStrategy() strategy.Main {
	return newStrategy(runtime.NewScheme(), func() labeldomains.List { return labeldomains.Default }, clocktesting.NewFakePassiveClock(now))
}

func validClaim() *extensions.SandboxClaim {
	claim := &extensions.SandboxClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim", Namespace: "test", ResourceVersion: "1"}}
	claim.Spec.WarmPoolRef.Name = "pool"
	return claim
}

func boundStatus() extensions.SandboxClaimStatus {
	return extensions.SandboxClaimStatus{Sandbox: extensions.ClaimedSandboxStatus{Name: "sandbox"}}
}

func TestPrepareForCreate(t *testing.T) {
	claim := validClaim()
	claim.Status = boundStatus()
	claim.Annotations = map[string]string{
		v1beta1.SandboxNameAnnotation:               "victim",
		v1beta1.ControllerFirstObservedAtAnnotation: "2026-01-01T00:00:00Z",
		v1beta1.ClaimFirstReadyAtAnnotation:         "2026-01-01T00:00:00Z",
		v1beta1.ClientFirstRequestedAtAnnotation:    "2026-01-01T00:00:00Z",
		"example.com/mine":                          "kept",
	}
	testStrategy().PrepareForCreate(t.Context(), claim)
	want := validClaim()
	want.Generation = 1
	want.Annotations = map[string]string{v1beta1.ClientFirstRequestedAtAnnotation: "2026-01-01T00:00:00Z", "example.com/mine": "kept"}
	if diff := cmp.Diff(want, claim); diff != "" {
		t.Errorf("claim (-want +got):\n%s", diff)
	}
}

func TestPrepareForUpdate(t *testing.T) {
	record := func(name string) map[string]string { return map[string]string{v1beta1.SandboxNameAnnotation: name} }
	for name, test := range map[string]struct {
		old, change, want func(*extensions.SandboxClaim)
	}{
		"status is another endpoint's": {
			change: func(c *extensions.SandboxClaim) { c.Status = boundStatus() },
		},
		"a change of spec is a new generation": {
			change: func(c *extensions.SandboxClaim) { c.Spec.WarmPoolRef.Name = "other" },
			want:   func(c *extensions.SandboxClaim) { c.Spec.WarmPoolRef.Name, c.Generation = "other", 2 },
		},
		"a change of metadata is not": {
			change: func(c *extensions.SandboxClaim) { c.Annotations = map[string]string{"a": "b"} },
			want:   func(c *extensions.SandboxClaim) { c.Annotations = map[string]string{"a": "b"} },
		},
		"nobody names a Sandbox": {
			change: func(c *extensions.SandboxClaim) { c.Annotations = record("victim") },
			want:   func(c *extensions.SandboxClaim) { c.Annotations = map[string]string{} },
		},
		"nobody names another Sandbox": {
			old:    func(c *extensions.SandboxClaim) { c.Annotations = record("sandbox") },
			change: func(c *extensions.SandboxClaim) { c.Annotations = record("victim") },
			want:   func(c *extensions.SandboxClaim) { c.Annotations = record("sandbox") },
		},
		"nobody forgets the Sandbox": {
			old:    func(c *extensions.SandboxClaim) { c.Annotations = record("sandbox") },
			change: func(c *extensions.SandboxClaim) { c.Annotations = nil },
			want:   func(c *extensions.SandboxClaim) { c.Annotations = record("sandbox") },
		},
		"the controller's annotations may be written": {
			change: func(c *extensions.SandboxClaim) {
				c.Annotations = map[string]string{v1beta1.ControllerFirstObservedAtAnnotation: "t"}
			},
			want: func(c *extensions.SandboxClaim) {
				c.Annotations = map[string]string{v1beta1.ControllerFirstObservedAtAnnotation: "t"}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			old := validClaim()
			old.Generation = 1
			if test.old != nil {
				test.old(old)
			}
			claim, want := old.DeepCopy(), old.DeepCopy()
			test.change(claim)
			if test.want != nil {
				test.want(want)
			}
			testStrategy().PrepareForUpdate(t.Context(), claim, old)
			if diff := cmp.Diff(want, claim); diff != "" {
				t.Errorf("claim (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStatusStrategyOwnsTheStatusAlone(t *testing.T) {
	old := validClaim()
	claim := old.DeepCopy()
	claim.Status = boundStatus()
	claim.Spec.WarmPoolRef.Name = "other"
	claim.Labels = map[string]string{"a": "b"}
	claim.Annotations = map[string]string{v1beta1.SandboxNameAnnotation: "victim"}
	NewStatusStrategy(runtime.NewScheme()).PrepareForUpdate(t.Context(), claim, old)
	want := old.DeepCopy()
	want.Status = boundStatus()
	if diff := cmp.Diff(want, claim); diff != "" {
		t.Errorf("claim (-want +got):\n%s", diff)
	}
}

// TestRecordOfTheSandboxGoesWhenTheClaimHasExpired: as long as it is there the claim is given no other.
func TestRecordOfTheSandboxGoesWhenTheClaimHasExpired(t *testing.T) {
	for name, test := range map[string]struct {
		reason, sandbox string
		goes            bool
	}{
		"expired, the Sandbox is deleted":     {v1beta1.ClaimReasonExpired, "sandbox", false},
		"expired, the Sandbox is gone":        {v1beta1.ClaimReasonExpired, "", true},
		"the Sandbox is gone for some reason": {v1beta1.ClaimReasonSandboxMissing, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			old := validClaim()
			old.Annotations = map[string]string{v1beta1.SandboxNameAnnotation: "sandbox", "a": "b"}
			before := old.DeepCopy()
			claim := old.DeepCopy()
			claim.Status.Sandbox.Name = test.sandbox
			claim.Status.Conditions = []metav1.Condition{{Type: v1beta1.ClaimConditionReady, Status: metav1.ConditionFalse, Reason: test.reason}}
			want := claim.DeepCopy()
			if test.goes {
				delete(want.Annotations, v1beta1.SandboxNameAnnotation)
			}
			NewStatusStrategy(runtime.NewScheme()).PrepareForUpdate(t.Context(), claim, old)
			if diff := cmp.Diff(want, claim); diff != "" {
				t.Errorf("claim (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, old); diff != "" {
				t.Errorf("the stored claim was changed (-before +after):\n%s", diff)
			}
		})
	}
}

// TestC7MetadataForThePod has what is refused of labels and annotations for the Pod, at create and when it is changed.
func TestC7MetadataForThePod(t *testing.T) {
	const path = "spec.additionalPodMetadata."
	for name, test := range map[string]struct {
		metadata agents.PodMetadata
		want     string
	}{
		"a label without a prefix":  {agents.PodMetadata{Labels: map[string]string{"team": "a"}}, path + "labels[team]"},
		"a label of another domain": {agents.PodMetadata{Labels: map[string]string{"evil.io/a": "b"}}, path + "labels[evil.io/a]"},
		"an allowed label":          {agents.PodMetadata{Labels: map[string]string{"sandbox.users.io/a": "b"}}, ""},
		"C8 a system annotation": {
			agents.PodMetadata{Annotations: map[string]string{"agents.x-k8s.io/pod-name": "b"}}, path + "annotations[agents.x-k8s.io/pod-name]",
		},
		"C8 an annotation": {agents.PodMetadata{Annotations: map[string]string{"note": "b"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			old := validClaim()
			claim := old.DeepCopy()
			claim.Spec.AdditionalPodMetadata = test.metadata
			for when, errs := range map[string][]string{
				"create": fieldsOf(testStrategy().Validate(t.Context(), claim)),
				"update": fieldsOf(testStrategy().ValidateUpdate(t.Context(), claim, old)),
			} {
				var want []string
				if test.want != "" {
					want = []string{test.want}
				}
				if diff := cmp.Diff(want, errs); diff != "" {
					t.Errorf("fields that %s refuses (-want +got):\n%s", when, diff)
				}
			}
			// What was stored before the rule became stricter can still be changed otherwise.
			if errs := testStrategy().ValidateUpdate(t.Context(), claim, claim.DeepCopy()); len(errs) != 0 {
				t.Errorf("an update that leaves it as it is fails: %v", errs.ToAggregate())
			}
		})
	}
}

// fieldsOf returns the paths of what is refused.
func fieldsOf(errs field.ErrorList) []string {
	var paths []string
	for _, err := range errs {
		paths = append(paths, err.Field)
	}
	return paths
}

func TestC13PoolOfABoundClaimStays(t *testing.T) {
	old := validClaim()
	claim := old.DeepCopy()
	claim.Spec.WarmPoolRef.Name = "other"
	if errs := testStrategy().ValidateUpdate(t.Context(), claim, old); len(errs) != 0 {
		t.Errorf("a claim without Sandbox cannot change its pool: %v", errs.ToAggregate())
	}
	claim.Status, old.Status = boundStatus(), boundStatus()
	if diff := cmp.Diff([]string{"spec.warmPoolRef"}, fieldsOf(testStrategy().ValidateUpdate(t.Context(), claim, old))); diff != "" {
		t.Errorf("fields that are refused (-want +got):\n%s", diff)
	}
}

func TestWarnings(t *testing.T) {
	at := func(d time.Duration) *extensions.Lifecycle {
		shutdown := metav1.NewTime(now.Add(d))
		return &extensions.Lifecycle{ShutdownTime: &shutdown}
	}
	for name, test := range map[string]struct {
		old, claim func(*extensions.SandboxClaim)
		want       []string
	}{
		"nothing":     {},
		"a past time": {claim: func(c *extensions.SandboxClaim) { c.Spec.Lifecycle = at(0) }, want: []string{"spec.lifecycle.shutdownTime: has passed already, so the claim expires at once"}},
		"a past time that was there": {
			old: func(c *extensions.SandboxClaim) { c.Spec.Lifecycle = at(-1) }, claim: func(c *extensions.SandboxClaim) { c.Spec.Lifecycle = at(-1) },
		},
		"a time to come": {claim: func(c *extensions.SandboxClaim) { c.Spec.Lifecycle = at(time.Second) }},
		"env of a bound claim": {
			old:   func(c *extensions.SandboxClaim) { c.Status = boundStatus() },
			claim: func(c *extensions.SandboxClaim) { c.Spec.Env = []extensions.EnvVar{{Name: "A"}} },
			want:  []string{"spec.env: no effect, the claim has its Sandbox already"},
		},
		"volumes of a bound claim": {
			old: func(c *extensions.SandboxClaim) { c.Status = boundStatus() },
			claim: func(c *extensions.SandboxClaim) {
				c.Spec.VolumeClaimTemplates = make([]agents.PersistentVolumeClaimTemplate, 1)
			},
			want: []string{"spec.volumeClaimTemplates: no effect, the claim has its Sandbox already"},
		},
		"env of a claim that waits": {claim: func(c *extensions.SandboxClaim) { c.Spec.Env = []extensions.EnvVar{{Name: "A"}} }},
	} {
		t.Run(name, func(t *testing.T) {
			old, claim := validClaim(), validClaim()
			if test.old != nil {
				test.old(old)
			}
			if test.claim != nil {
				test.claim(claim)
			}
			if diff := cmp.Diff(test.want, testStrategy().WarningsOnUpdate(t.Context(), claim, old)); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSelectors(t *testing.T) {
	claim := validClaim()
	claim.Labels = map[string]string{"a": "b"}
	claim.Status = boundStatus()
	for selector, want := range map[string]bool{
		"metadata.name=claim":          true,
		"metadata.namespace=other":     false,
		"spec.warmPoolRef.name=pool":   true,
		"spec.warmPoolRef.name=other":  false,
		"status.sandbox.name=sandbox":  true,
		"status.sandbox.name!=sandbox": false,
		"status.sandbox.name=":         false,
	} {
		predicate := MatchSandboxClaim(labels.Everything(), fields.ParseSelectorOrDie(selector))
		got, err := predicate.Matches(claim)
		if err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%s matches: %v, want %v", selector, got, want)
		}
	}
	if _, _, err := GetAttrs(&extensions.SandboxWarmPool{}); err == nil {
		t.Error("a pool has the attributes of a claim")
	}
}

func TestTable(t *testing.T) {
	claim := validClaim()
	claim.CreationTimestamp = metav1.NewTime(now.Add(-5 * time.Minute))
	convertor := NewTableConvertor(clocktesting.NewFakePassiveClock(now))
	for name, test := range map[string]struct {
		status extensions.SandboxClaimStatus
		want   []any
	}{
		"new": {want: []any{"claim", "", "", "", "5m", "pool"}},
		"bound": {
			status: extensions.SandboxClaimStatus{
				Sandbox:    extensions.ClaimedSandboxStatus{Name: "sandbox"},
				Conditions: []metav1.Condition{{Type: "Finished", Status: "True", Reason: "PodSucceeded"}, {Type: "Ready", Status: "False", Reason: "PodSucceeded"}},
			},
			want: []any{"claim", "False", "sandbox", "PodSucceeded", "5m", "pool"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			claim.Status = test.status
			table, err := convertor.ConvertToTable(t.Context(), claim, &metav1.TableOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, table.Rows[0].Cells); diff != "" {
				t.Errorf("cells (-want +got):\n%s", diff)
			}
		})
	}
	table, err := convertor.ConvertToTable(t.Context(), &extensions.SandboxClaimList{Items: []extensions.SandboxClaim{*claim}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, column := range table.ColumnDefinitions {
		if column.Priority == 0 {
			names = append(names, column.Name)
		}
	}
	if diff := cmp.Diff([]string{"Name", "Ready", "Sandbox", "Reason", "Age"}, names); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
}
