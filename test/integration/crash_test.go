// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

// TestCrash kills programs while sandboxes are created, suspended and resumed. The tests are not parallel: everybody else would
// notice.
func TestCrash(t *testing.T) {
	for name, programs := range map[string][]string{
		"API server": {sandboxAPIServer},
		"controller": {sandboxController},
		"both":       {sandboxAPIServer, sandboxController},
	} {
		t.Run(name, func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			crashLoop(t, rand.New(rand.NewPCG(seed, 0)), programs)
		})
	}
}

const (
	crashWorkers = 4
	// crashRounds is how often the programs are killed.
	crashRounds = 5
	// operationsPerRound bounds how many operations are done between two crashes.
	operationsPerRound = 12
)

// crashLoop has workers change sandboxes, kills the programs after random numbers of changes, and checks what is left.
func crashLoop(t *testing.T, random *rand.Rand, programs []string) {
	namespace := newNamespace(t)
	pods := watchPods(t, namespace)
	// Workers end between two operations: one that is abandoned half-way could still take effect during the checks.
	stop := make(chan struct{})
	var operations atomic.Int64
	workers := make([]*crashWorker, crashWorkers)
	var working sync.WaitGroup
	for i := range workers {
		workers[i] = &crashWorker{
			namespace: namespace, prefix: fmt.Sprintf("box-%d", i), random: rand.New(rand.NewPCG(random.Uint64(), 0)), done: &operations,
		}
		working.Go(func() { workers[i].work(t.Context(), stop) })
	}
	for range crashRounds {
		target := operations.Load() + 1 + random.Int64N(operationsPerRound)
		eventually(t, "operations between crashes", func(context.Context) error {
			if done := operations.Load(); done < target {
				return fmt.Errorf("%d of %d done", done, target)
			}
			return nil
		})
		for _, program := range programs {
			if err := env.killProgram(t.Context(), program); err != nil {
				t.Error(err)
			}
		}
		for _, program := range programs {
			if err := env.startProgram(t.Context(), program); err != nil {
				t.Error(err)
			}
		}
	}
	close(stop)
	working.Wait()
	for _, worker := range workers {
		worker.check(t)
	}
	pods.check(t)
}

// crashWorker creates sandboxes and changes them, and remembers what it was told.
type crashWorker struct {
	namespace, prefix string
	random            *rand.Rand
	done              *atomic.Int64
	// sandboxes are those whose creation was acknowledged.
	sandboxes []acknowledged
}

// acknowledged is what a Sandbox must be in the end.
type acknowledged struct {
	name string
	uid  types.UID
	// mode is empty while a change was sent but not answered: then either mode is right.
	mode v1beta1.SandboxOperatingMode
}

// work does one operation after the other. A failed one is not repeated: what the server did with it is left open.
func (w *crashWorker) work(ctx context.Context, stop <-chan struct{}) {
	for next := 0; ; {
		select {
		case <-stop:
			return
		case <-ctx.Done():
			return
		default:
		}
		if len(w.sandboxes) == 0 || w.random.IntN(4) == 0 {
			w.create(ctx, fmt.Sprintf("%s-%d", w.prefix, next))
			next++
		} else {
			w.change(ctx, &w.sandboxes[w.random.IntN(len(w.sandboxes))])
		}
	}
}

func (w *crashWorker) create(ctx context.Context, name string) {
	sandbox, err := sandboxes(w.namespace).Create(ctx, framework.NewSandbox(name), metav1.CreateOptions{})
	if err != nil {
		w.awaitService(ctx)
		return
	}
	w.sandboxes = append(w.sandboxes, acknowledged{name, sandbox.UID, sandbox.Spec.OperatingMode})
	w.done.Add(1)
}

func (w *crashWorker) change(ctx context.Context, target *acknowledged) {
	target.mode = ""
	var sandbox *v1beta1.Sandbox
	var err error
	if w.random.IntN(2) == 0 {
		sandbox, err = sandboxes(w.namespace).Suspend(ctx, target.name, &v1beta1.SandboxSuspend{}, metav1.CreateOptions{})
	} else {
		sandbox, err = sandboxes(w.namespace).Resume(ctx, target.name, &v1beta1.SandboxResume{}, metav1.CreateOptions{})
	}
	if err != nil {
		w.awaitService(ctx)
		return
	}
	target.mode = sandbox.Spec.OperatingMode
	w.done.Add(1)
}

// awaitService waits until the API answers again.
func (w *crashWorker) awaitService(ctx context.Context) {
	//nolint:errcheck // It ends when the work does.
	wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		_, err := sandboxes(w.namespace).List(ctx, metav1.ListOptions{Limit: 1})
		return err == nil, nil
	})
}

// check waits until each Sandbox is what was acknowledged.
func (w *crashWorker) check(t *testing.T) {
	t.Helper()
	if len(w.sandboxes) == 0 {
		t.Error("a worker could not create anything")
	}
	for _, want := range w.sandboxes {
		got := get(t, w.namespace, want.name)
		if got.UID != want.uid || (want.mode != "" && got.Spec.OperatingMode != want.mode) {
			t.Errorf("Sandbox %s has UID %s and mode %s; acknowledged were %s and %q", want.name, got.UID, got.Spec.OperatingMode, want.uid, want.mode)
		}
		if got.Spec.OperatingMode == v1beta1.SandboxOperatingModeSuspended {
			awaitCondition(t, w.namespace, want.name, v1beta1.SandboxConditionSuspended)
			if _, err := env.kube.CoreV1().Pods(w.namespace).Get(t.Context(), want.name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("Pod of suspended Sandbox %s: %v", want.name, err)
			}
			continue
		}
		awaitCondition(t, w.namespace, want.name, v1beta1.SandboxConditionReady)
		if owner := metav1.GetControllerOf(pod(t, w.namespace, want.name)); owner == nil || owner.UID != want.uid {
			t.Errorf("Pod of Sandbox %s is controlled by %+v", want.name, owner)
		}
	}
}

// podWatch counts, for every moment of a test, the Pods of each Sandbox.
type podWatch struct {
	watcher watch.Interface
	// stopping is closed when the watch is about to be stopped: an error is to be expected then.
	stopping, ended chan struct{}
	// live has the Pods of each Sandbox, by UID. It belongs to the watching goroutine until ended is closed.
	live map[types.UID]map[types.UID]bool
	errs []error
}

// watchPods begins to watch the Pods of an empty namespace.
func watchPods(t *testing.T, namespace string) *podWatch {
	t.Helper()
	pods := env.kube.CoreV1().Pods(namespace)
	list, err := pods.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// kube-apiserver may end a watch at any time; this one then goes on where it was.
	watcher, err := watchtools.NewRetryWatcherWithContext(t.Context(), list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: pods.Watch,
	})
	if err != nil {
		t.Fatal(err)
	}
	w := &podWatch{watcher: watcher, stopping: make(chan struct{}), ended: make(chan struct{}), live: map[types.UID]map[types.UID]bool{}}
	go w.run()
	return w
}

func (w *podWatch) run() {
	defer close(w.ended)
	for event := range w.watcher.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			select {
			case <-w.stopping:
			default:
				w.errs = append(w.errs, fmt.Errorf("watching Pods: %s %+v", event.Type, event.Object))
			}
			continue
		}
		owner := metav1.GetControllerOf(pod)
		if owner == nil {
			w.errs = append(w.errs, fmt.Errorf("Pod %s has no controller", pod.Name))
			continue
		}
		if w.live[owner.UID] == nil {
			w.live[owner.UID] = map[types.UID]bool{}
		}
		if event.Type == watch.Deleted {
			delete(w.live[owner.UID], pod.UID)
			continue
		}
		w.live[owner.UID][pod.UID] = true
		if n := len(w.live[owner.UID]); n > 1 {
			w.errs = append(w.errs, fmt.Errorf("Sandbox %s has %d Pods at once", owner.Name, n))
		}
	}
}

// check ends the watch and reports what it saw.
func (w *podWatch) check(t *testing.T) {
	t.Helper()
	select {
	case <-w.ended:
		t.Error("the watch of Pods ended before the test")
	default:
	}
	close(w.stopping)
	w.watcher.Stop()
	<-w.ended
	for _, err := range w.errs {
		t.Error(err)
	}
	if len(w.live) == 0 {
		t.Error("the watch saw no Pod")
	}
}
