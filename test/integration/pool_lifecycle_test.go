// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

// The tests of this file are not parallel: they stop the controller, or run it otherwise.

// manyPatience is how long hundreds of members may take.
const manyPatience = 3 * time.Minute

// TestPoolSizeAcrossCrashes kills the controller while it fills a pool: what it did before counts.
func TestPoolSizeAcrossCrashes(t *testing.T) {
	namespace := newNamespace(t)
	seen := watchSandboxes(t, namespace)
	createTemplate(t, namespace)
	const replicas = 60
	pool := createPool(t, namespace, replicas)
	for _, some := range []int{replicas / 4, replicas / 2} {
		eventually(t, "a part of the members", func(ctx context.Context) error {
			if members, err := ownedBy(ctx, namespace, pool.UID); err != nil || len(members) < some {
				return errors.Join(err, fmt.Errorf("there are %d", len(members)))
			}
			return nil
		})
		restart(t, sandboxController)
	}
	awaitPool(t, namespace, replicas)
	seen.check(t, pool.UID, replicas)
}

// TestPoolSizeWhileWatchesLag scales a large pool up, down and up again while the controller learns of everything two seconds late, and kills
// the controller on the way. Neither may make it make, or delete, a member too many.
func TestPoolSizeWhileWatchesLag(t *testing.T) {
	const (
		lag         = 2 * time.Second
		large, some = 500, 100
		claimed     = 20
	)
	server := newWatchLag(t, lag)
	late := "--sandbox-kubeconfig=" + server.kubeconfig
	runWith(t, sandboxController, late)
	namespace := newNamespace(t)
	seen := watchSandboxes(t, namespace)
	createTemplate(t, namespace)
	pool := createPool(t, namespace, large)
	made, begin := 0, time.Now()
	for _, step := range []struct {
		what     string
		replicas int
		// makes is how many members are made for it, none of them twice.
		makes int
		// killed says of how many members there are, and ever were, whether the controller is killed now.
		killed func(live, ever int) bool
	}{
		{"up", large, large, func(_, ever int) bool { return ever >= large/4 }},
		{"down", some, 0, func(live, _ int) bool { return live <= large-50 }},
		{"up again", large, large - some, func(_, ever int) bool { return ever >= large+50 }},
	} {
		scalePool(t, namespace, step.replicas)
		eventuallyWithin(t, manyPatience, step.what+" in part", func(context.Context) error {
			if live, ever := seen.count(pool.UID); !step.killed(live, ever) {
				return fmt.Errorf("there are %d members of %d", live, ever)
			}
			return nil
		})
		startWith(t, sandboxController, late)
		made += step.makes
		awaitMembers(t, pool, seen, step.replicas, made)
		t.Logf("%s: after %v", step.what, time.Since(begin).Round(time.Second))
	}
	for i := range claimed {
		createBound(t, namespace, fmt.Sprintf("c%d", i))
	}
	awaitMembers(t, pool, seen, large, made+claimed)
	framework.Consistently(t, lag+time.Second, "members", func(context.Context) error {
		if live, ever := seen.count(pool.UID); live != large || ever != made+claimed {
			return fmt.Errorf("there are %d of %d that were made", live, ever)
		}
		return nil
	})
	seen.check(t, pool.UID, large)
	if server.delayed.Load() == 0 {
		t.Error("no watch was delayed")
	}
}

// awaitMembers waits until a pool has so many members, all of them ready, and says so, and ever had so many.
func awaitMembers(t *testing.T, pool *extensionsv1beta1.SandboxWarmPool, seen *sandboxWatch, live, ever int) {
	t.Helper()
	eventuallyWithin(t, manyPatience, fmt.Sprintf("%d members of %d that were made", live, ever), func(ctx context.Context) error {
		gotLive, gotEver := seen.count(pool.UID)
		if gotEver > ever {
			t.Fatalf("%d members were made, want %d", gotEver, ever)
		}
		got, err := pools(pool.Namespace).Get(ctx, pool.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if s := got.Status; gotLive != live || gotEver != ever || int(s.Replicas) != live || int(s.ReadyReplicas) != live || s.ObservedGeneration != got.Generation {
			return fmt.Errorf("there are %d of %d; generation %d has status %+v", gotLive, gotEver, got.Generation, s)
		}
		return nil
	})
}

// scalePool sets the number of replicas of the pool.
func scalePool(t *testing.T, namespace string, replicas int) {
	t.Helper()
	if _, err := patchPool(t.Context(), namespace, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)); err != nil {
		t.Fatal(err)
	}
}

// TestPoolGracePeriod proves that members which never become ready are replaced after a while.
func TestPoolGracePeriod(t *testing.T) {
	runWith(t, sandboxController, "--sandbox-warm-pool-readiness-grace-period=3s")
	namespace := newNamespace(t)
	createTemplate(t, namespace, framework.Blueprint(func(s *v1beta1.Sandbox) { s.Spec.PodTemplate.Spec.SchedulerName = "nobody" }))
	pool := createPool(t, namespace, 1)
	var first types.UID
	eventually(t, "a replacement", func(ctx context.Context) error {
		members, err := ownedBy(ctx, namespace, pool.UID)
		if err != nil || len(members) != 1 {
			return errors.Join(err, fmt.Errorf("there are %d members", len(members)))
		}
		if first == "" {
			first = members[0].UID
		}
		if members[0].UID == first {
			return errors.New("it is the first member")
		}
		return nil
	})
}

// TestPoolWithoutRoom proves that members for which the cluster has no room are made once and kept, beyond many grace periods and a
// restart; that the pool says why, once they had that time and no earlier; and that it goes on when there is room.
func TestPoolWithoutRoom(t *testing.T) {
	const (
		replicas = 3
		grace    = 3 * time.Second
	)
	impatient := []string{fmt.Sprintf("--sandbox-warm-pool-readiness-grace-period=%v", grace), "--sandbox-warm-pool-unschedulable-recheck-interval=1s"}
	runWith(t, sandboxController, impatient...)
	namespace := newNamespace(t)
	seen := watchSandboxes(t, namespace)
	createTemplate(t, namespace, framework.Blueprint(func(s *v1beta1.Sandbox) {
		s.Spec.PodTemplate.Spec.NodeSelector = map[string]string{"no": "such"}
	}))
	pool := createPool(t, namespace, replicas)
	no := awaitProgressing(t, pool, metav1.ConditionFalse, extensionsv1beta1.WarmPoolReasonUnschedulable,
		fmt.Sprintf("%d/%d sandboxes are unschedulable past the 3s readiness grace period", replicas, replicas))
	// Times in the API are whole seconds.
	if waited := no.LastTransitionTime.Sub(pool.CreationTimestamp.Time); waited < grace {
		t.Errorf("the pool said so after %v", waited)
	}
	awaitPoolEvent(t, pool, corev1.EventTypeWarning, "WarmPoolNotProgressing", no.Message)

	startWith(t, sandboxController, impatient...)
	framework.Consistently(t, 3*grace, "members", func(ctx context.Context) error {
		if live, ever := seen.count(pool.UID); live != replicas || ever != replicas {
			return fmt.Errorf("there are %d of %d that were made", live, ever)
		}
		got, err := pools(namespace).Get(ctx, poolName, metav1.GetOptions{})
		if err == nil && (got.Status.Replicas != replicas || got.Status.ReadyReplicas != 0) {
			err = fmt.Errorf("status is %+v", got.Status)
		}
		return err
	})
	if made := podsMade(t, namespace); made != replicas {
		t.Errorf("%d Pods were made, want %d", made, replicas)
	}

	_, err := templates(namespace).Patch(t.Context(), templateName, types.MergePatchType, []byte(`{"spec":{"podTemplate":{"spec":{"nodeSelector":null}}}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	awaitMembers(t, pool, seen, replicas, 2*replicas)
	yes := awaitProgressing(t, pool, metav1.ConditionTrue, extensionsv1beta1.WarmPoolReasonProgressing, "")
	awaitPoolEvent(t, pool, corev1.EventTypeNormal, "WarmPoolProgressing", "Warm pool is progressing again")
	if waited := yes.LastTransitionTime.Sub(no.LastTransitionTime.Time); waited < 3*grace {
		t.Errorf("the pool was said to progress after %v without room", waited)
	}
	if made := podsMade(t, namespace); made != 2*replicas {
		t.Errorf("%d Pods were made, want %d", made, 2*replicas)
	}
	seen.check(t, pool.UID, replicas)
}

// awaitProgressing waits until a pool says whether it is filled, and why, and returns the condition.
func awaitProgressing(t *testing.T, pool *extensionsv1beta1.SandboxWarmPool, status metav1.ConditionStatus, reason, message string) *metav1.Condition {
	t.Helper()
	var condition *metav1.Condition
	eventually(t, "the condition", func(ctx context.Context) error {
		got, err := pools(pool.Namespace).Get(ctx, pool.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		condition = meta.FindStatusCondition(got.Status.Conditions, extensionsv1beta1.WarmPoolConditionProgressing)
		if condition == nil || condition.Status != status || condition.Reason != reason || !strings.HasPrefix(condition.Message, message) {
			return fmt.Errorf("it is %+v", condition)
		}
		return nil
	})
	return condition
}

// awaitPoolEvent waits until there is an event about a pool.
func awaitPoolEvent(t *testing.T, pool *extensionsv1beta1.SandboxWarmPool, eventType, reason, note string) {
	t.Helper()
	eventually(t, "the event "+reason, func(ctx context.Context) error {
		events, err := env.kube.EventsV1().Events(pool.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, event := range events.Items {
			if event.Type == eventType && event.Reason == reason && event.Note == note && event.Regarding.UID == pool.UID {
				return nil
			}
		}
		return fmt.Errorf("there are %d others", len(events.Items))
	})
}

// podsMade returns how many Pods were ever created in a namespace.
func podsMade(t *testing.T, namespace string) int {
	t.Helper()
	events, err := auditEvents(namespace)
	if err != nil {
		t.Fatal(err)
	}
	made := 0
	for _, event := range events {
		// The server asks whether templates and Sandboxes could have a Pod.
		dry := strings.Contains(event.RequestURI, "dryRun=")
		if !dry && event.Verb == "create" && event.ObjectRef.Resource == "pods" && event.ObjectRef.Subresource == "" && event.ResponseStatus.Code == http.StatusCreated {
			made++
		}
	}
	return made
}
