// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned"
)

// goal is a state to wait for: a condition that comes true in an operating mode.
type goal struct {
	condition string
	mode      v1beta1.SandboxOperatingMode
}

var (
	ready     = goal{condition: v1beta1.SandboxConditionReady, mode: v1beta1.SandboxOperatingModeRunning}
	suspended = goal{condition: v1beta1.SandboxConditionSuspended, mode: v1beta1.SandboxOperatingModeSuspended}
)

// reached says whether the Sandbox has the goal's condition for its present spec; a condition that was observed of an earlier one
// does not count. The error says that the Sandbox is in the mode in which the goal is never reached.
func (g goal) reached(sandbox *v1beta1.Sandbox) (bool, error) {
	mode := sandbox.Spec.OperatingMode
	if mode == "" {
		mode = v1beta1.SandboxOperatingModeRunning
	}
	if mode != g.mode {
		verb := "resume"
		if g.mode == v1beta1.SandboxOperatingModeSuspended {
			verb = "suspend"
		}
		return false, fmt.Errorf("sandbox %q has operating mode %s and will not become %s; use \"kubectl sandbox %s %s\" first",
			sandbox.Name, mode, g.condition, verb, sandbox.Name)
	}
	condition := meta.FindStatusCondition(sandbox.Status.Conditions, g.condition)
	return condition != nil && condition.Status == metav1.ConditionTrue && condition.ObservedGeneration >= sandbox.Generation, nil
}

// waitFor blocks until the Sandbox has reached the goal. It takes no notice of states older than that given, which a server may
// still have in its cache. If ctx is done first, the error says how ready the Sandbox was when last seen.
func waitFor(ctx context.Context, client versioned.Interface, from *v1beta1.Sandbox, goal goal) error {
	last := from
	done, err := goal.reached(from)
	if done || err != nil {
		return err
	}
	gone := fmt.Errorf("sandbox %q was deleted", from.Name)
	check := func(event watch.Event) (bool, error) {
		sandbox, ok := event.Object.(*v1beta1.Sandbox)
		if !ok {
			return false, apierrors.FromObject(event.Object)
		}
		if event.Type == watch.Deleted || sandbox.UID != from.UID {
			return false, gone
		}
		if sandbox.Generation < from.Generation {
			return false, nil
		}
		last = sandbox
		return goal.reached(sandbox)
	}
	exists := func(store cache.Store) (bool, error) {
		if len(store.ListKeys()) == 0 {
			return false, gone
		}
		return false, nil
	}
	_, err = watchtools.UntilWithSync(ctx, singleSandbox(client, from), &v1beta1.Sandbox{}, exists, check)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("timed out waiting for sandbox %q to become %s; %s", from.Name, goal.condition, describeReady(last))
	}
	return err
}

// singleSandbox lists and watches the one Sandbox.
func singleSandbox(client versioned.Interface, sandbox *v1beta1.Sandbox) cache.ListerWatcher {
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, sandbox.Name).String()
	sandboxes := client.AgentsV1beta1().Sandboxes(sandbox.Namespace)
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = selector
			return sandboxes.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = selector
			return sandboxes.Watch(ctx, options)
		},
	}, client)
}

// describeReady says what the Ready condition of the Sandbox was.
func describeReady(sandbox *v1beta1.Sandbox) string {
	condition := meta.FindStatusCondition(sandbox.Status.Conditions, v1beta1.SandboxConditionReady)
	if condition == nil {
		return "it has not reported whether it is ready"
	}
	return fmt.Sprintf("last reported Ready=%s, reason %s: %s", condition.Status, condition.Reason, condition.Message)
}

// withTimeout returns a context that is done after timeout, or never if timeout is 0.
func withTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, timeout)
}
