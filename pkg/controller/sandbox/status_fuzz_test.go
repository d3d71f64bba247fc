// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
)

// FuzzObservedStatus checks, for Pods and errors of any content, that there is a status, that its conditions are ones that the API
// server accepts, and that the next pass finds nothing to change in it: else the controller would write forever.
func FuzzObservedStatus(f *testing.F) {
	const (
		seedSuspended = 1 << iota
		seedService
		seedServiceFound
		seedServiceUnknown
		seedExpired
	)
	f.Add(`{}`, "", "", uint8(0))
	f.Add(`{"status":{"phase":"Running","podIPs":[{"ip":"10.0.0.7"}],"conditions":[{"type":"Ready","status":"True"}]}}`, "", "", uint8(seedService|seedServiceFound))
	f.Add(`{"status":{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/1 nodes"}]}}`, "", "", uint8(seedServiceUnknown))
	f.Add(`{"metadata":{"deletionTimestamp":"2026-01-02T03:04:05Z"},"status":{"phase":"Failed"}}`, "", "", uint8(seedSuspended))
	f.Add(`{"status":{"conditions":[{"type":"PodScheduled","status":"","reason":"not a reason"}]}}`, "", "", uint8(0))
	f.Add(`{"status":{"phase":"Pending","initContainerStatuses":[{"name":"a","state":{"running":{}},"lastState":{"terminated":{"exitCode":1}}}],"containerStatuses":[{"name":"b","state":{"waiting":{"reason":"ErrImagePull","message":"not found"}}}]}}`, "", "", uint8(seedService))
	f.Add(`{"status":{"phase":"Failed","reason":"Evicted","message":"low on memory"}}`, "", "", uint8(0))
	f.Add("", "no luck", "nor here", uint8(seedSuspended|seedService))
	f.Add("", "", "", uint8(seedExpired))

	f.Fuzz(func(t *testing.T, podJSON, podErr, otherErr string, bits uint8) {
		sandbox := testSandbox()
		if bits&seedSuspended != 0 {
			suspend(sandbox)
		}
		if bits&seedService != 0 {
			wantService(true)(sandbox)
		}
		observed := &observation{pod: fuzzedPod(sandbox, podJSON), serviceUnknown: bits&seedServiceUnknown != 0}
		if bits&seedServiceFound != 0 {
			observed.service = desiredService(sandbox)
		}
		if podErr != "" {
			observed.podErr = errors.New(asReceived(podErr))
		}
		if otherErr != "" {
			observed.err = errors.Join(observed.podErr, errors.New(asReceived(otherErr)))
		}
		compute := func(now time.Time) *agentsv1beta1.SandboxStatus {
			if bits&seedExpired != 0 {
				return expiredStatus(sandbox, now)
			}
			return observedStatus(sandbox, observed, "cluster.local", now)
		}
		checkComputedStatus(t, sandbox, compute)
	})
}

func checkComputedStatus(t *testing.T, sandbox *agentsv1beta1.Sandbox, compute func(time.Time) *agentsv1beta1.SandboxStatus) {
	t.Helper()
	before := sandbox.DeepCopy()
	status := compute(testTime())
	if diff := cmp.Diff(before, sandbox); diff != "" {
		t.Errorf("computing the status changed the Sandbox:\n%s", diff)
	}
	if errs := metav1validation.ValidateConditions(status.Conditions, field.NewPath("status", "conditions")); len(errs) > 0 {
		t.Errorf("the API server would refuse the status: %v", errs)
	}
	written, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	sandbox.Status = agentsv1beta1.SandboxStatus{}
	if err := json.Unmarshal(written, &sandbox.Status); err != nil {
		t.Fatal(err)
	}
	if got := urgency(&sandbox.Status, compute(testTime().Add(time.Minute))); got != statusUnchanged {
		t.Errorf("the next pass would write again, with urgency %d:\n%s", got, cmp.Diff(&sandbox.Status, compute(testTime().Add(time.Minute))))
	}
}

// fuzzedPod returns the Pod of the Sandbox with what the text says of it, or nil if it is no text of a Pod.
func fuzzedPod(sandbox *agentsv1beta1.Sandbox, text string) *corev1.Pod {
	said := &corev1.Pod{}
	if json.Unmarshal([]byte(text), said) != nil {
		return nil
	}
	return testPod(sandbox, func(pod *corev1.Pod) {
		pod.DeletionTimestamp, pod.Spec.NodeName, pod.Status = said.DeletionTimestamp, said.Spec.NodeName, said.Status
		if metav1.GetControllerOfNoCopy(said) != nil {
			pod.OwnerReferences = said.OwnerReferences
		}
	})
}

// asReceived returns the text as it is in an error that came from a server: JSON has no other characters.
func asReceived(text string) string {
	return strings.ToValidUTF8(text, "")
}
