// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
)

// run starts the informers and the workers, and stops them with the test.
func (f *fixture) run() { f.T.Cleanup(f.Start(f.Controller.Run, 4)) }

func TestRunFollowsASandboxThroughItsLife(t *testing.T) {
	f := newFixtureWithClock(t, clock.RealClock{})
	f.run()
	f.AwaitCaches(f.HasSynced)
	ctx := t.Context()
	sandboxes := f.Server.AgentsV1beta1().Sandboxes(testNamespace)
	pods := f.Kube.CoreV1().Pods(testNamespace)

	sandbox, err := sandboxes.Create(ctx, testSandbox(), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var pod *corev1.Pod
	f.Eventually("the Pod is created", func() bool {
		pod, err = pods.Get(ctx, testName, metav1.GetOptions{})
		return err == nil
	})
	ready(pod)
	pod.ResourceVersion = "61"
	if _, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.Eventually("the Sandbox is ready", func() bool {
		sandbox, err = sandboxes.Get(ctx, testName, metav1.GetOptions{})
		return err == nil && isReady(&sandbox.Status)
	})

	suspend(sandbox)
	sandbox.Generation++
	if _, err := sandboxes.Update(ctx, sandbox, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.Eventually("the Sandbox is suspended", func() bool {
		sandbox, err = sandboxes.Get(ctx, testName, metav1.GetOptions{})
		return err == nil && hasCondition(&sandbox.Status, conditionSuspended, metav1.ConditionTrue, "PodTerminated")
	})
	if _, err := pods.Get(ctx, testName, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Pod of the suspended Sandbox: %v", err)
	}
}

func TestWorkIsNotReadyBeforeTheSandboxAPIAnswers(t *testing.T) {
	f := newFixture(t)
	f.Refuse("list", "sandboxes", unavailable())
	f.run()
	core := f.config.ChildInformers.Core().V1()
	f.Eventually("the caches of the cluster are filled", func() bool {
		return core.Pods().Informer().HasSynced() && core.Services().Informer().HasSynced() && core.PersistentVolumeClaims().Informer().HasSynced()
	})
	if f.HasSynced() {
		t.Error("synced without a word from the server of Sandboxes")
	}
}

func TestDeletedSandboxIsForgotten(t *testing.T) {
	f := newFixture(t)
	f.progress.hold(testUID, f.clock.Now(), time.Second)
	f.sandboxWrites.Created(testSandbox())
	f.sandboxHandler().OnDelete(testSandbox())
	if _, remembered := f.sandboxWrites.Latest(cache.MetaObjectToName(testSandbox()), nil, false); remembered || len(f.progress.heldSince) != 0 {
		t.Error("memory of a deleted Sandbox remains")
	}
}

func TestChildTakenAwayConcernsTheSandboxThatLostIt(t *testing.T) {
	f := newFixture(t)
	before := testPod(testSandbox(func(s *agentsv1beta1.Sandbox) { s.Name = "loser" }), func(p *corev1.Pod) { p.Name = "pod" })
	after := before.DeepCopy()
	disown(after)
	childHandler(f.Controller, f.podWrites).OnUpdate(before, after)
	got := map[string]bool{}
	for f.loop.Queue.Len() > 0 {
		name, _ := f.loop.Queue.Get()
		got[name.Name] = true
		f.loop.Queue.Done(name)
	}
	if !got["loser"] {
		t.Errorf("queued are %v", got)
	}
}
