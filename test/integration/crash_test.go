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

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
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
	pods := framework.WatchPods(t, env.kube, namespace)
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
	if err := pods.Stop(); err != nil {
		t.Error(err)
	}
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

// awaitClaims waits until a namespace has so many claims and all of them are ready, and returns them. It asks for all at once: one after the
// other they would take longer, on a busy machine, than to become ready.
func awaitClaims(t *testing.T, namespace string, count int) []extensionsv1beta1.SandboxClaim {
	t.Helper()
	var ready []extensionsv1beta1.SandboxClaim
	eventually(t, fmt.Sprintf("%d claims in %s", count, namespace), func(ctx context.Context) error {
		list, err := claims(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(list.Items) != count {
			return fmt.Errorf("there are %d", len(list.Items))
		}
		for _, claim := range list.Items {
			if err := claimReady(&claim); err != nil {
				return err
			}
		}
		ready = list.Items
		return nil
	})
	return ready
}

// checkPairs fails the test unless each of the claims has one Sandbox, which is the one that it names, and no Sandbox has two claims.
func checkPairs(t *testing.T, namespace string, claims []extensionsv1beta1.SandboxClaim) {
	t.Helper()
	list, err := sandboxes(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	owned := map[types.UID][]string{}
	for _, sandbox := range list.Items {
		if owner := metav1.GetControllerOf(&sandbox); owner != nil && sandbox.DeletionTimestamp == nil {
			owned[owner.UID] = append(owned[owner.UID], sandbox.Name)
		}
	}
	claimOf := map[string]string{}
	for _, claim := range claims {
		name := claim.Status.Sandbox.Name
		if other, taken := claimOf[name]; taken {
			t.Errorf("claims %s and %s have Sandbox %s", other, claim.Name, name)
		}
		claimOf[name] = claim.Name
		if diff := cmp.Diff([]string{name}, owned[claim.UID]); diff != "" {
			t.Errorf("Sandboxes of claim %s (-named +controlled):\n%s", claim.Name, diff)
		}
	}
}
