// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package claimedsandbox

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
)

func TestStatus(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	made := metav1.NewTime(at.Add(-time.Hour))
	condition := func(conditionType string, status metav1.ConditionStatus, reason, message string, generation int64) metav1.Condition {
		return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message, ObservedGeneration: generation, LastTransitionTime: at}
	}
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	for name, test := range map[string]struct {
		conditions []metav1.Condition
		podIPs     []string
		want       []metav1.Condition
	}{
		"ready": {
			conditions: []metav1.Condition{condition("Suspended", no, "NotSuspended", "", 9), condition("Ready", yes, "DependenciesReady", "Pod is Ready", 9)},
			podIPs:     []string{"10.0.0.7", "fd00::7"},
			want:       []metav1.Condition{condition("Ready", yes, "DependenciesReady", "Pod is Ready", 4)},
		},
		"not ready": {
			conditions: []metav1.Condition{condition("Ready", no, "DependenciesNotReady", "Pod exists with phase: Pending", 9)},
			want:       []metav1.Condition{condition("Ready", no, "DependenciesNotReady", "Pod exists with phase: Pending", 4)},
		},
		"suspended": {
			conditions: []metav1.Condition{condition("Ready", no, "SandboxSuspended", "Sandbox is suspended", 9)},
			want:       []metav1.Condition{condition("Ready", no, "SandboxSuspended", "Sandbox is suspended", 4)},
		},
		"finished, with the generation of the Sandbox": {
			conditions: []metav1.Condition{condition("Ready", no, "PodSucceeded", "Pod completed successfully", 9), condition("Finished", yes, "PodSucceeded", "Pod completed successfully", 9)},
			podIPs:     []string{"10.0.0.7"},
			want:       []metav1.Condition{condition("Finished", yes, "PodSucceeded", "Pod completed successfully", 9), condition("Ready", no, "PodSucceeded", "Pod completed successfully", 4)},
		},
		"expired by itself": {
			conditions: []metav1.Condition{condition("Ready", no, "SandboxExpired", "Sandbox has expired", 9)},
			want:       []metav1.Condition{condition("Ready", no, "SandboxExpired", "Underlying Sandbox resource has expired independently of the Claim.", 4)},
		},
		"says nothing yet": {
			want: []metav1.Condition{{Type: "Ready", Status: no, Reason: "SandboxNotReady", Message: "Sandbox is not ready", ObservedGeneration: 4, LastTransitionTime: made}},
		},
		"W11: ready without an address": {
			conditions: []metav1.Condition{condition("Ready", yes, "DependenciesReady", "Pod is Ready", 9)},
			want:       []metav1.Condition{condition("Ready", no, "DependenciesNotReady", "Pod is Ready but has no podIPs yet", 4)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := testMember()
			s.CreationTimestamp = made
			s.Status.Conditions, s.Status.PodIPs, s.Status.ServiceFQDN = test.conditions, test.podIPs, "p1-x.tenant.svc.cluster.local"
			want := extensionsv1beta1.SandboxClaimStatus{
				Conditions: test.want,
				Sandbox:    extensionsv1beta1.ClaimedSandboxStatus{Name: "p1-x", PodIPs: test.podIPs, ServiceFQDN: "p1-x.tenant.svc.cluster.local"},
			}
			wantDiff(t, "status", want, Status(testClaim(), s))
		})
	}
}
