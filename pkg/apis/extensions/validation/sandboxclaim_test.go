// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
)

type claimTweak = func(*extensions.SandboxClaim)

func validClaim(tweaks ...claimTweak) *extensions.SandboxClaim {
	claim := &extensions.SandboxClaim{
		ObjectMeta: validMeta(),
		Spec:       extensions.SandboxClaimSpec{WarmPoolRef: extensions.SandboxWarmPoolRef{Name: "pool"}},
	}
	for _, tweak := range tweaks {
		tweak(claim)
	}
	return claim
}

func fromPool(name string) claimTweak {
	return func(c *extensions.SandboxClaim) { c.Spec.WarmPoolRef.Name = name }
}

func env(env ...extensions.EnvVar) claimTweak {
	return func(c *extensions.SandboxClaim) { c.Spec.Env = env }
}

func claimVolumes(names ...string) claimTweak {
	return func(c *extensions.SandboxClaim) {
		for _, name := range names {
			c.Spec.VolumeClaimTemplates = append(c.Spec.VolumeClaimTemplates, volume(name))
		}
	}
}

// ending gives the claim a lifecycle as defaulting leaves it.
func ending(change func(*extensions.Lifecycle)) claimTweak {
	return func(c *extensions.SandboxClaim) {
		c.Spec.Lifecycle = &extensions.Lifecycle{ShutdownPolicy: extensions.ClaimShutdownPolicyRetain}
		change(c.Spec.Lifecycle)
	}
}

func shutdownPolicy(policy extensions.ClaimShutdownPolicy) claimTweak {
	return ending(func(l *extensions.Lifecycle) { l.ShutdownPolicy = policy })
}

func ttl(seconds int32) claimTweak {
	return ending(func(l *extensions.Lifecycle) { l.TTLSecondsAfterFinished = &seconds })
}

func shutdownTime(at *metav1.Time) claimTweak {
	return ending(func(l *extensions.Lifecycle) { l.ShutdownTime = at })
}

// faultyClaims is a fault of each kind, by what it is, with what is said of it.
var faultyClaims = map[string]struct {
	fault claimTweak
	want  []string
}{
	"no pool":                      {fromPool(""), []string{"FieldValueRequired spec.warmPoolRef.name"}},
	"pool in a path":               {fromPool("pools/pool"), []string{"FieldValueInvalid spec.warmPoolRef.name"}},
	"pool above":                   {fromPool(".."), []string{"FieldValueInvalid spec.warmPoolRef.name"}},
	"pool of a name in upper case": {fromPool("Pool"), []string{"FieldValueInvalid spec.warmPoolRef.name"}},
	"unreadable shutdown time":     {shutdownTime(lateInUTC()), []string{"FieldValueInvalid spec.lifecycle.shutdownTime"}},
	"time to live that is over":    {ttl(-1), []string{"FieldValueInvalid spec.lifecycle.ttlSecondsAfterFinished"}},
	"unknown shutdown policy":      {shutdownPolicy("delete"), []string{"FieldValueNotSupported spec.lifecycle.shutdownPolicy"}},
	"variable without a name":      {env(extensions.EnvVar{Value: "a"}), []string{"FieldValueRequired spec.env[0].name"}},
	"variable with = in the name":  {env(extensions.EnvVar{Name: "A=B"}), []string{"FieldValueInvalid spec.env[0].name"}},
	"variable twice":               {env(extensions.EnvVar{Name: "A", Value: "a"}, extensions.EnvVar{Name: "A", Value: "b"}), []string{"FieldValueDuplicate spec.env[1].name"}},
	"variable twice in one container": {env(extensions.EnvVar{Name: "A", ContainerName: "a"}, extensions.EnvVar{Name: "A", ContainerName: "a"}),
		[]string{"FieldValueDuplicate spec.env[1].name"}},
	"volume twice":                          {claimVolumes("data", "data"), []string{"FieldValueDuplicate spec.volumeClaimTemplates[1].metadata.name"}},
	"volume without a name":                 {claimVolumes(""), []string{"FieldValueRequired spec.volumeClaimTemplates[0].metadata.name"}},
	"unreadable time of an owner of fields": {func(c *extensions.SandboxClaim) { c.ManagedFields = ownedSince(lateInUTC()) }, []string{"FieldValueInvalid metadata.managedFields[0].time"}},
}

func TestValidateSandboxClaim(t *testing.T) {
	for name, claim := range map[string]*extensions.SandboxClaim{
		"minimal":                     validClaim(),
		"pool of a subdomain":         validClaim(fromPool("a.b")),
		"shutdown time":               validClaim(shutdownTime(&metav1.Time{Time: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)})),
		"shutdown time long past":     validClaim(shutdownTime(&metav1.Time{Time: time.Unix(0, 0)})),
		"no time to live":             validClaim(ttl(0)),
		"deleted":                     validClaim(shutdownPolicy(extensions.ClaimShutdownPolicyDelete)),
		"deleted in the foreground":   validClaim(shutdownPolicy(extensions.ClaimShutdownPolicyDeleteForeground)),
		"variables":                   validClaim(env(extensions.EnvVar{Name: "A"}, extensions.EnvVar{Name: "B", Value: "b"})),
		"variable in two containers":  validClaim(env(extensions.EnvVar{Name: "A"}, extensions.EnvVar{Name: "A", ContainerName: "side"})),
		"variable of an unusual name": validClaim(env(extensions.EnvVar{Name: "1 a.b-c/"})),
		"volumes":                     validClaim(claimVolumes("data", "cache")),
		"metadata that a template asks": validClaim(func(c *extensions.SandboxClaim) {
			c.Spec.AdditionalPodMetadata = agents.PodMetadata{Labels: map[string]string{"a": "b"}}
		}),
	} {
		t.Run(name, func(t *testing.T) {
			if errs := ValidateSandboxClaim(claim); len(errs) > 0 {
				t.Errorf("refused: %v", errs)
			}
		})
	}
	for name, test := range faultyClaims {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, problems(ValidateSandboxClaim(validClaim(test.fault)))); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("volume whose name is too long with the claim's", func(t *testing.T) {
		claim := validClaim(claimVolumes(strings.Repeat("b", 63)))
		claim.Name = strings.Repeat("a", 200)
		if diff := cmp.Diff([]string{"FieldValueTooLong spec.volumeClaimTemplates[0].metadata.name"}, problems(ValidateSandboxClaim(claim))); diff != "" {
			t.Errorf("errors (-want +got):\n%s", diff)
		}
	})
}

// TestUnchangedFaultsOfAClaimBlockNothing stores what each rule forbids, as an older release may have, and then writes something else.
func TestUnchangedFaultsOfAClaimBlockNothing(t *testing.T) {
	label := func(c *extensions.SandboxClaim) { c.Labels = map[string]string{"a": "b"} }
	for name, test := range faultyClaims {
		t.Run(name, func(t *testing.T) {
			stored := validClaim(test.fault)
			if diff := cmp.Diff(test.want, problems(ValidateSandboxClaimUpdate(stored, validClaim()))); diff != "" {
				t.Errorf("introducing it: errors (-want +got):\n%s", diff)
			}
			if errs := ValidateSandboxClaimUpdate(validClaim(test.fault, label), stored); len(errs) > 0 {
				t.Errorf("then changing something else: %v", errs)
			}
			if errs := ValidateSandboxClaimStatusUpdate(stored, stored); len(errs) > 0 {
				t.Errorf("then writing the status: %v", errs)
			}
		})
	}
}

func TestValidateSandboxClaimUpdate(t *testing.T) {
	bound := func(c *extensions.SandboxClaim) { c.Status.Sandbox.Name = "sandbox" }
	started := func(c *extensions.SandboxClaim) {
		c.Status.Conditions = []metav1.Condition{{Type: v1beta1.ClaimConditionReady, Reason: v1beta1.ClaimReasonSandboxCreatePending}}
	}
	for _, test := range []struct {
		name     string
		old, new *extensions.SandboxClaim
		want     []string
	}{
		{"other pool", validClaim(), validClaim(fromPool("other")), nil},
		{"other pool once there is a Sandbox", validClaim(bound), validClaim(bound, fromPool("other")), []string{"FieldValueInvalid spec.warmPoolRef"}},
		{"other pool while a Sandbox is made", validClaim(started), validClaim(started, fromPool("other")), []string{"FieldValueInvalid spec.warmPoolRef"}},
		{"variables once there is a Sandbox", validClaim(bound), validClaim(bound, env(extensions.EnvVar{Name: "A"})), nil},
		{"volumes once there is a Sandbox", validClaim(bound), validClaim(bound, claimVolumes("data")), nil},
		{"lifecycle once there is a Sandbox", validClaim(bound), validClaim(bound, ttl(0)), nil},
		{"lifecycle taken away", validClaim(ttl(0)), validClaim(), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, problems(ValidateSandboxClaimUpdate(test.new, test.old))); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestValidateSandboxClaimStatusUpdate(t *testing.T) {
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "DependenciesReady", LastTransitionTime: metav1.Now()}
	bad := ready
	bad.Reason = "not a reason"
	conditions := func(conditions ...metav1.Condition) *extensions.SandboxClaim {
		return validClaim(func(c *extensions.SandboxClaim) { c.Status.Conditions = conditions })
	}
	for _, test := range []struct {
		name     string
		old, new *extensions.SandboxClaim
		want     []string
	}{
		{"condition", validClaim(), conditions(ready), nil},
		{"malformed condition", validClaim(), conditions(bad), []string{"FieldValueInvalid status.conditions[0].reason"}},
		{"malformed condition that was there before", conditions(bad), conditions(bad), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.new.Status.Sandbox.PodIPs = []string{"10.0.0.1"}
			if diff := cmp.Diff(test.want, problems(ValidateSandboxClaimStatusUpdate(test.new, test.old))); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}
