// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

// Conditions that many states share.
var (
	notSuspended  = condition{v1beta1.SandboxConditionSuspended, metav1.ConditionFalse, v1beta1.SandboxReasonNotSuspended, "Sandbox is not suspended"}
	notFinished   = condition{kind: v1beta1.SandboxConditionFinished, status: absent}
	notMirrored   = condition{kind: v1beta1.SandboxConditionPodScheduled, status: absent}
	scheduled     = condition{v1beta1.SandboxConditionPodScheduled, metav1.ConditionTrue, v1beta1.SandboxReasonPodScheduled, ""}
	isSuspended   = condition{v1beta1.SandboxConditionSuspended, metav1.ConditionTrue, v1beta1.SandboxReasonPodTerminated, "Pod has been terminated. Sandbox is suspended"}
	whileStarting = func(message string) condition {
		return condition{v1beta1.SandboxConditionReady, metav1.ConditionFalse, v1beta1.SandboxReasonDependenciesNotReady, message}
	}
)

// addresses returns a check of what the status says of where the Pod is.
func addresses(ips ...string) func(*v1beta1.Sandbox) error {
	return func(sandbox *v1beta1.Sandbox) error {
		if !slices.Equal(ips, sandbox.Status.PodIPs) {
			return fmt.Errorf("podIPs are %v, want %v", sandbox.Status.PodIPs, ips)
		}
		if len(ips) == 0 && sandbox.Status.NodeName != "" {
			return fmt.Errorf("nodeName is %s without a Pod", sandbox.Status.NodeName)
		}
		return nil
	}
}

// TestStates has a row for each state of a Sandbox: what its conditions and its status say.
func TestStates(t *testing.T) {
	var rows []row
	for _, test := range []struct {
		id, pod string // what the Pod's status is
		options []func(*v1beta1.Sandbox)
		want    []condition
		ips     []string
	}{
		{id: "just-created", pod: `{}`, want: []condition{notSuspended, notFinished, whileStarting("Pod exists with phase: Pending"),
			{v1beta1.SandboxConditionPodScheduled, metav1.ConditionUnknown, v1beta1.SandboxReasonPodSchedulingUnknown, "Pod has not reported a PodScheduled condition yet"}}},
		{id: "unschedulable", pod: podUnschedulable, want: []condition{notSuspended, notFinished, whileStarting("Pod exists with phase: Pending"),
			{v1beta1.SandboxConditionPodScheduled, metav1.ConditionFalse, "Unschedulable", "0/1 nodes are available"}}},
		{id: "running-not-ready", pod: podNotReady, want: []condition{notSuspended, notFinished, scheduled, whileStarting("Pod is Running but not Ready")}, ips: []string{"192.0.2.7"}},
		{id: "ready-without-address", pod: podReadyWithoutIP, want: []condition{notSuspended, notFinished, scheduled, whileStarting("Pod is Ready but has no podIPs yet")}},
		{id: "ready", pod: podReady, want: []condition{notSuspended, notFinished, scheduled, {v1beta1.SandboxConditionReady, metav1.ConditionTrue, v1beta1.SandboxReasonDependenciesReady, "Pod is Ready"}},
			ips: []string{"192.0.2.7", "2001:db8::7"}},
		{id: "ready-with-service", pod: podReady, options: []func(*v1beta1.Sandbox){framework.WithService},
			want: []condition{notSuspended, {v1beta1.SandboxConditionReady, metav1.ConditionTrue, v1beta1.SandboxReasonDependenciesReady, "Pod is Ready; Service Exists"}}, ips: []string{"192.0.2.7", "2001:db8::7"}},
		{id: "not-ready-with-service", pod: `{}`, options: []func(*v1beta1.Sandbox){framework.WithService}, want: []condition{notSuspended, whileStarting("Pod exists with phase: Pending; Service Exists")}},
		{id: "succeeded", pod: podSucceeded, want: []condition{notSuspended, scheduled,
			{v1beta1.SandboxConditionFinished, metav1.ConditionTrue, v1beta1.SandboxReasonPodSucceeded, "Pod completed successfully"},
			{v1beta1.SandboxConditionReady, metav1.ConditionFalse, v1beta1.SandboxReasonPodSucceeded, "Pod completed successfully"}}},
		{id: "failed", pod: podFailed, want: []condition{notSuspended, scheduled,
			{v1beta1.SandboxConditionFinished, metav1.ConditionTrue, v1beta1.SandboxReasonPodFailed, "Pod failed"},
			{v1beta1.SandboxConditionReady, metav1.ConditionFalse, v1beta1.SandboxReasonPodFailed, "Pod failed"}}},
	} {
		rows = append(rows, row{id: test.id, rule: "the conditions and addresses of this state", run: func(t *tester) {
			namespace := newNamespace(t)
			createWithPod(t, namespace, "my-sandbox", test.pod, test.options...)
			status := await(t, namespace, "my-sandbox", all(conditions(test.want...), addresses(test.ips...))).Status
			if want := v1beta1.SandboxNameHashLabel + "=" + hashOfMySandbox; status.Selector != want {
				t.Errorf("selector is %q, want %q", status.Selector, want)
			}
		}})
	}
	rows = append(rows,
		row{id: "node", rule: "nodeName and podIPs are those of the Pod", run: func(t *tester) {
			namespace := newNamespace(t)
			create(t, namespace, "box")
			status := await(t, namespace, "box", ready()).Status
			pod := awaitPod(t, namespace, "box")
			if status.NodeName == "" || status.NodeName != pod.Spec.NodeName || len(status.PodIPs) == 0 || status.PodIPs[0] != pod.Status.PodIP {
				t.Errorf("status %+v, Pod on %s with %v", status, pod.Spec.NodeName, pod.Status.PodIPs)
			}
		}},
		row{id: "two-pods", rule: "two Pods that the Sandbox controls are MultiplePods: no address, no deletion, the Service untouched", run: func(t *tester) {
			namespace := newNamespace(t)
			sandbox := create(t, namespace, "box", unscheduled, framework.WithService)
			patchPod(t, namespace, awaitPod(t, namespace, "box").Name, podReady, "status")
			await(t, namespace, "box", ready())
			before := service(t, namespace, "box")
			existing(t, namespace, "twin", map[string]string{v1beta1.SandboxNameHashLabel: awaitPod(t, namespace, "box").Labels[v1beta1.SandboxNameHashLabel]}, controllerOf(sandbox))
			await(t, namespace, "box", all(notReady(v1beta1.SandboxReasonMultiplePods, "multiple Pods (2) are controlled by this Sandbox"), addresses(), conditions(notSuspended, notFinished,
				condition{v1beta1.SandboxConditionPodScheduled, metav1.ConditionUnknown, v1beta1.SandboxReasonPodSchedulingUnknown, ""})))
			if got := len(pods(t, namespace)); got != 2 {
				t.Errorf("there are %d Pods", got)
			}
			if diff := cmp.Diff(before, service(t, namespace, "box")); diff != "" {
				t.Errorf("the Service changed (-before +after):\n%s", diff)
			}
		}},
		row{id: "suspending", rule: "while the Pod terminates: Ready False/SandboxSuspended, Suspended False/PodTerminating, addresses still there", run: func(t *tester) {
			namespace := newNamespace(t)
			createWithPod(t, namespace, "box", podReady)
			await(t, namespace, "box", ready())
			release := holdPod(t, namespace, "box")
			suspend(t, namespace, "box")
			await(t, namespace, "box", all(notReady(v1beta1.SandboxReasonSuspended, "Sandbox is suspending"), addresses("192.0.2.7", "2001:db8::7"), conditions(scheduled, notFinished,
				condition{v1beta1.SandboxConditionSuspended, metav1.ConditionFalse, v1beta1.SandboxReasonPodTerminating, "Pod is terminating. Sandbox is suspending"})))
			release()
			await(t, namespace, "box", all(notReady(v1beta1.SandboxReasonSuspended, "Sandbox is suspended"), addresses(), conditions(isSuspended, notMirrored, notFinished)))
		}},
		row{id: "suspended-from-the-start", rule: "a Sandbox that is created suspended never has a Pod", run: func(t *tester) {
			namespace := newNamespace(t)
			watcher, err := env.kube.CoreV1().Pods(namespace).Watch(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer watcher.Stop()
			create(t, namespace, "box", framework.Suspended)
			await(t, namespace, "box", all(notReady(v1beta1.SandboxReasonSuspended, "Sandbox is suspended"), addresses(), conditions(isSuspended, notMirrored, notFinished)))
			select {
			case event := <-watcher.ResultChan():
				t.Errorf("there was a Pod: %+v", event)
			default:
			}
		}},
		row{id: "suspended-beside-a-strangers-pod", rule: "suspension does not delete the Pod of somebody else: Suspended False/PodNotOwned, no addresses", run: func(t *tester) {
			namespace := newNamespace(t)
			existing(t, namespace, "box", nil, stranger(t, namespace))
			patchPod(t, namespace, "box", podReady, "status")
			create(t, namespace, "box", framework.Suspended)
			await(t, namespace, "box", all(notReady(v1beta1.SandboxReasonSuspended, "Sandbox is suspending"), addresses(), conditions(notMirrored, notFinished,
				condition{v1beta1.SandboxConditionSuspended, metav1.ConditionFalse, v1beta1.SandboxReasonPodNotOwned, "Refused to delete pod because it is not owned by this sandbox"})))
			if pod := awaitPod(t, namespace, "box"); pod.DeletionTimestamp != nil {
				t.Error("the Pod is being deleted")
			}
		}},
		row{id: "resumed", rule: "resume makes a new Pod of the same name", run: func(t *tester) {
			namespace := newNamespace(t)
			before := createWithPod(t, namespace, "box", podReady)
			suspend(t, namespace, "box")
			await(t, namespace, "box", suspended())
			resume(t, namespace, "box")
			after := awaitPod(t, namespace, "box")
			patchPod(t, namespace, "box", podReady, "status")
			await(t, namespace, "box", all(ready(), conditions(notSuspended)))
			if after.UID == before.UID {
				t.Error("it is the same Pod")
			}
		}},
		row{id: "order", rule: "the conditions of a first status come in the order Suspended, PodScheduled, Ready", run: func(t *tester) {
			namespace := newNamespace(t)
			create(t, namespace, "box", unscheduled)
			var got []string
			for _, c := range await(t, namespace, "box", conditions(notSuspended)).Status.Conditions {
				got = append(got, c.Type)
			}
			if diff := cmp.Diff([]string{"Suspended", "PodScheduled", "Ready"}, got); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
		}},
		row{id: "transition-time", rule: "lastTransitionTime moves with the status of a condition, not with its reason or message", run: func(t *tester) {
			namespace := newNamespace(t)
			createWithPod(t, namespace, "box", podUnschedulable)
			before := meta.FindStatusCondition(await(t, namespace, "box", conditions(whileStarting("Pending"))).Status.Conditions, v1beta1.SandboxConditionReady)
			// Times are kept to the second, so that a move within one is not to be seen.
			eventually(t, "another second", func(context.Context) error {
				if time.Since(before.LastTransitionTime.Time) < 2*time.Second {
					return errors.New("not yet")
				}
				return nil
			})
			patchPod(t, namespace, "box", podNotReady, "status")
			after := meta.FindStatusCondition(await(t, namespace, "box", conditions(whileStarting("not Ready"))).Status.Conditions, v1beta1.SandboxConditionReady)
			if !after.LastTransitionTime.Equal(&before.LastTransitionTime) {
				t.Errorf("it moved from %v to %v", before.LastTransitionTime, after.LastTransitionTime)
			}
			patchPod(t, namespace, "box", podReady, "status")
			after = meta.FindStatusCondition(await(t, namespace, "box", ready()).Status.Conditions, v1beta1.SandboxConditionReady)
			if !after.LastTransitionTime.After(before.LastTransitionTime.Time) {
				t.Errorf("it did not move from %v", before.LastTransitionTime)
			}
		}},
		row{id: "refused-pod", rule: "a Pod that cannot be made for now is ReconcilerError, and is made when it can be", run: func(t *tester) {
			namespace := newNamespace(t)
			quota(t, namespace, "pods", "0")
			create(t, namespace, "box", unscheduled)
			await(t, namespace, "box", all(notReady(v1beta1.SandboxReasonReconcilerError, "exceeded quota"), addresses(), conditions(notSuspended, notFinished,
				condition{v1beta1.SandboxConditionPodScheduled, metav1.ConditionUnknown, v1beta1.SandboxReasonPodSchedulingUnknown, "Pod state is unknown. Pod scheduling cannot be determined"})))
			if err := env.kube.CoreV1().ResourceQuotas(namespace).Delete(t.Context(), "quota", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			awaitPod(t, namespace, "box")
			await(t, namespace, "box", conditions(whileStarting("Pod exists with phase: Pending")))
		}},
		row{id: "owner-of-another-version", rule: "owner references count by group and kind, not by version", run: func(t *tester) {
			namespace := newNamespace(t)
			sandbox := create(t, namespace, "box", framework.Suspended)
			await(t, namespace, "box", suspended())
			refs := controllerOf(sandbox)
			refs[0].APIVersion = "agents.x-k8s.io/v1alpha1"
			resumed := existing(t, namespace, "box", nil, refs)
			resume(t, namespace, "box")
			patchPod(t, namespace, "box", podReady, "status")
			await(t, namespace, "box", ready())
			if now := awaitPod(t, namespace, "box"); now.UID != resumed.UID {
				t.Error("the Pod was replaced")
			}
		}},
	)
	runRows(t, rows...)
}

// quota makes a ResourceQuota, and returns when it is in force.
func quota(t *tester, namespace, resource, hard string) {
	t.Helper()
	quotas := env.kube.CoreV1().ResourceQuotas(namespace)
	limits := corev1.ResourceList{corev1.ResourceName(resource): parseQuantity(t, hard)}
	if _, err := quotas.Create(t.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "quota"}, Spec: corev1.ResourceQuotaSpec{Hard: limits}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "quota on "+resource, func(ctx context.Context) error {
		quota, err := quotas.Get(ctx, "quota", metav1.GetOptions{})
		if err == nil && len(quota.Status.Hard) == 0 {
			err = errors.New("its status is empty")
		}
		return err
	})
}

// TestExpiry has the rules of shutdownTime and shutdownPolicy.
func TestExpiry(t *testing.T) {
	runRows(t,
		row{id: "past-retain", rule: "a shutdownTime in the past is legal: no Pod is ever made, and the Sandbox is SandboxExpired", run: func(t *tester) {
			namespace := newNamespace(t)
			watcher, err := env.kube.CoreV1().Pods(namespace).Watch(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer watcher.Stop()
			create(t, namespace, "box", expiring(-time.Hour, v1beta1.ShutdownPolicyRetain), framework.WithService)
			await(t, namespace, "box", all(notReady(v1beta1.SandboxReasonExpired, "Sandbox has expired"), conditions(notMirrored)))
			if service(t, namespace, "box") != nil {
				t.Error("there is a Service")
			}
			select {
			case event := <-watcher.ResultChan():
				t.Errorf("there was a Pod: %+v", event)
			default:
			}
		}},
		row{id: "past-delete", rule: "with the policy Delete it is deleted", run: func(t *tester) {
			namespace := newNamespace(t)
			create(t, namespace, "box", expiring(-time.Hour, v1beta1.ShutdownPolicyDelete))
			awaitGone(t, "Sandbox", sandboxes(namespace).Get, "box")
			if got := pods(t, namespace); len(got) != 0 {
				t.Errorf("there are Pods: %+v", got)
			}
		}},
		row{id: "retain", rule: "with the policy Retain the Pod and the Service go, the claims stay, and the status keeps its conditions alone", run: func(t *tester) {
			namespace := newNamespace(t)
			createWithPod(t, namespace, "box", podSucceeded, framework.WithService, framework.WithVolume("data"))
			await(t, namespace, "box", conditions(condition{v1beta1.SandboxConditionFinished, metav1.ConditionTrue, "", ""}))
			patch(t, namespace, "box", `{"spec":{"shutdownTime":"2020-01-01T00:00:00Z"}}`)
			awaitGone(t, "Pod", env.kube.CoreV1().Pods(namespace).Get, "box")
			awaitGone(t, "Service", env.kube.CoreV1().Services(namespace).Get, "box")
			await(t, namespace, "box", all(notReady(v1beta1.SandboxReasonExpired, "Sandbox has expired"), func(s *v1beta1.Sandbox) error {
				if diff := cmp.Diff(v1beta1.SandboxStatus{Conditions: s.Status.Conditions}, s.Status); diff != "" {
					return fmt.Errorf("status (-want +got):\n%s", diff)
				}
				for kind, want := range map[string]metav1.ConditionStatus{v1beta1.SandboxConditionFinished: metav1.ConditionTrue, v1beta1.SandboxConditionSuspended: metav1.ConditionFalse} {
					if !meta.IsStatusConditionPresentAndEqual(s.Status.Conditions, kind, want) {
						return fmt.Errorf("%s is not %s any more: %+v", kind, want, s.Status.Conditions)
					}
				}
				return nil
			}))
			if claim(t, namespace, "data-box") == nil {
				t.Error("the claim is gone")
			}
		}},
		row{id: "revived", rule: "moving shutdownTime ahead, or removing it, brings an expired Sandbox back with its claims", run: func(t *tester) {
			namespace := newNamespace(t)
			createWithPod(t, namespace, "box", podReady, framework.WithVolume("data"))
			before := claim(t, namespace, "data-box")
			for _, revival := range []string{`"2100-01-01T00:00:00Z"`, `null`} {
				patch(t, namespace, "box", `{"spec":{"shutdownTime":"2020-01-01T00:00:00Z"}}`)
				await(t, namespace, "box", all(notReady(v1beta1.SandboxReasonExpired, ""), addresses()))
				awaitGone(t, "Pod", env.kube.CoreV1().Pods(namespace).Get, "box")
				patch(t, namespace, "box", `{"spec":{"shutdownTime":`+revival+`}}`)
				awaitPod(t, namespace, "box")
				patchPod(t, namespace, "box", podReady, "status")
				await(t, namespace, "box", ready())
			}
			if after := claim(t, namespace, "data-box"); after == nil || after.UID != before.UID {
				t.Errorf("before %+v, after %+v", before, after)
			}
		}},
		row{id: "before-suspension", rule: "expiry goes before suspension", run: func(t *tester) {
			namespace := newNamespace(t)
			create(t, namespace, "box", framework.Suspended)
			await(t, namespace, "box", suspended())
			patch(t, namespace, "box", `{"spec":{"shutdownTime":"2020-01-01T00:00:00Z"}}`)
			sandbox := await(t, namespace, "box", notReady(v1beta1.SandboxReasonExpired, ""))
			if !meta.IsStatusConditionTrue(sandbox.Status.Conditions, v1beta1.SandboxConditionSuspended) {
				t.Errorf("Suspended was changed: %+v", sandbox.Status.Conditions)
			}
		}},
		row{id: "announced", rule: "with the policy Delete a watch sees SandboxExpired before the deletion", run: func(t *tester) {
			namespace := newNamespace(t)
			createWithPod(t, namespace, "box", podReady, with(func(s *v1beta1.SandboxSpec) { s.ShutdownPolicy = new(v1beta1.ShutdownPolicyDelete) }))
			settled := await(t, namespace, "box", ready())
			watcher, err := sandboxes(namespace).Watch(t.Context(), metav1.ListOptions{ResourceVersion: settled.ResourceVersion})
			if err != nil {
				t.Fatal(err)
			}
			defer watcher.Stop()
			patch(t, namespace, "box", `{"spec":{"shutdownTime":"2020-01-01T00:00:00Z"}}`)
			announced := false
			for {
				event := next(t, watcher)
				sandbox, ok := event.Object.(*v1beta1.Sandbox)
				if !ok {
					t.Fatalf("got %s %+v", event.Type, event.Object)
				}
				if event.Type == "DELETED" {
					break
				}
				announced = announced || notReady(v1beta1.SandboxReasonExpired, "")(sandbox) == nil
			}
			if !announced {
				t.Error("it was deleted without a word")
			}
		}},
		row{id: "strangers-survive", rule: "expiry leaves a Pod and a Service of somebody else alone", run: func(t *tester) {
			namespace := newNamespace(t)
			pod, svc := existing(t, namespace, "box", nil, stranger(t, namespace)), existingService(t, namespace, "box", corev1.ClusterIPNone, nil, nil)
			create(t, namespace, "box", expiring(-time.Hour, v1beta1.ShutdownPolicyRetain))
			await(t, namespace, "box", notReady(v1beta1.SandboxReasonExpired, ""))
			if diff := cmp.Diff(pod, awaitPod(t, namespace, "box")); diff != "" {
				t.Errorf("the Pod changed (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(svc, service(t, namespace, "box")); diff != "" {
				t.Errorf("the Service changed (-before +after):\n%s", diff)
			}
		}},
	)
}

// TestEvents has the rules of what is told in events.
func TestEvents(t *testing.T) {
	sinceV104 := "since v1.0.4"
	// told waits for an event, and returns it.
	told := func(t *tester, namespace, reason, kind string) {
		t.Helper()
		eventually(t, "event "+reason, func(context.Context) error {
			events := recorded(t, namespace, "Sandbox", "box", reason)
			if len(events) == 0 {
				return errors.New("there is none")
			}
			if event := events[0]; event.Type != kind || event.ReportingController != "sandbox-controller" {
				return fmt.Errorf("it is %s of %s", event.Type, event.ReportingController)
			}
			return nil
		})
	}
	runRows(t,
		row{id: "multiple-pods", rule: "MultiplePods is told once", run: func(t *tester) {
			namespace := newNamespace(t)
			sandbox := create(t, namespace, "box", unscheduled)
			first := awaitPod(t, namespace, "box")
			existing(t, namespace, "twin", first.Labels, controllerOf(sandbox))
			told(t, namespace, v1beta1.SandboxReasonMultiplePods, corev1.EventTypeWarning)
			existing(t, namespace, "third", first.Labels, controllerOf(sandbox))
			await(t, namespace, "box", notReady(v1beta1.SandboxReasonMultiplePods, "(3)"))
			if got := recorded(t, namespace, "Sandbox", "box", v1beta1.SandboxReasonMultiplePods); len(got) != 1 || got[0].Series != nil {
				t.Errorf("got %+v", got)
			}
		}},
		row{id: "life", rule: "creation of the Pod, readiness, suspension and expiry are told", beyond: sinceV104, run: func(t *tester) {
			namespace := newNamespace(t)
			createWithPod(t, namespace, "box", podReady)
			told(t, namespace, "SandboxPodCreated", corev1.EventTypeNormal)
			told(t, namespace, "SandboxReady", corev1.EventTypeNormal)
			suspend(t, namespace, "box")
			told(t, namespace, "SandboxSuspended", corev1.EventTypeNormal)
			patch(t, namespace, "box", `{"spec":{"shutdownTime":"2020-01-01T00:00:00Z"}}`)
			told(t, namespace, "SandboxExpired", corev1.EventTypeNormal)
		}},
		row{id: "succeeded", rule: "the end of a Pod is told as PodSucceeded", beyond: sinceV104, run: func(t *tester) {
			namespace := newNamespace(t)
			createWithPod(t, namespace, "box", podSucceeded)
			told(t, namespace, "PodSucceeded", corev1.EventTypeNormal)
		}},
		row{id: "failed", rule: "and as PodFailed, a warning", beyond: sinceV104, run: func(t *tester) {
			namespace := newNamespace(t)
			createWithPod(t, namespace, "box", podFailed)
			told(t, namespace, "PodFailed", corev1.EventTypeWarning)
		}},
		row{id: "refused", rule: "a Pod that could not be made is told as SandboxPodCreateFailed, a warning", beyond: sinceV104, run: func(t *tester) {
			namespace := newNamespace(t)
			quota(t, namespace, "pods", "0")
			create(t, namespace, "box", unscheduled)
			told(t, namespace, "SandboxPodCreateFailed", corev1.EventTypeWarning)
		}},
	)
}
