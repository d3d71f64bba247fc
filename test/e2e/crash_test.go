// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

// Deployments of the product. The container of a Pod has the name of its Deployment.
const (
	apiServer  = "sandbox-apiserver"
	controller = "agent-sandbox-controller"
)

// TestKill ends the product with SIGKILL while Sandboxes are created, suspended and resumed. Whatever was acknowledged stays, and
// everything becomes as it was asked to be, with never more than one Pod to a Sandbox.
func TestKill(t *testing.T) {
	for name, programs := range map[string][]string{
		"APIServer":  {apiServer},
		"Controller": {controller},
		"Both":       {apiServer, controller},
	} {
		t.Run(name, func(t *testing.T) {
			sh := newShell(t)
			awake, asleep := []string{"awake-0", "awake-1"}, []string{"asleep-0", "asleep-1"}
			for i := range awake {
				sh.apply(t, framework.NewSandbox(awake[i], framework.WithVolume("home")), framework.NewSandbox(asleep[i], framework.Suspended))
			}
			uids := map[string]types.UID{}
			for i := range awake {
				sh.await(t, "Ready", awake[i])
				sh.await(t, "Suspended", asleep[i])
				uids[awake[i]], uids[asleep[i]] = sh.get(t, awake[i]).UID, sh.get(t, asleep[i]).UID
			}
			pods := framework.WatchPods(t, env.kube, sh.namespace)
			created := []string{"new-0", "new-1"}
			var calls []call
			for i := range awake {
				calls = append(calls, func(ctx context.Context) error {
					_, err := sh.sandboxes().Create(ctx, framework.NewSandbox(created[i]), metav1.CreateOptions{})
					return ignoreAlreadyExists(err)
				}, func(ctx context.Context) error {
					_, err := sh.sandboxes().Suspend(ctx, awake[i], &v1beta1.SandboxSuspend{}, metav1.CreateOptions{})
					return err
				}, func(ctx context.Context) error {
					_, err := sh.sandboxes().Resume(ctx, asleep[i], &v1beta1.SandboxResume{}, metav1.CreateOptions{})
					return err
				})
			}
			killDuring(t, programs, calls...)

			for i := range awake {
				sh.await(t, "Suspended", awake[i])
				sh.await(t, "Ready", asleep[i])
				sh.await(t, "Ready", created[i])
			}
			for name, uid := range uids {
				if got := sh.get(t, name).UID; got != uid {
					t.Errorf("sandbox %s has UID %s, had %s", name, got, uid)
				}
			}
			if err := pods.Stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// call is a request that may be repeated.
type call func(ctx context.Context) error

// ignoreAlreadyExists takes it for success that there is an object of the name: an earlier attempt made it, whose answer was lost.
func ignoreAlreadyExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// killDuring ends programs of the product with SIGKILL while the calls are made, and returns when each of them has succeeded.
func killDuring(t *testing.T, programs []string, calls ...call) {
	t.Helper()
	var victims []int
	for _, program := range programs {
		victims = append(victims, processOf(t, program))
		// A new Pod starts without the delay that a container has after a crash, so that crashes do not add up.
		t.Cleanup(func() { restart(t, program) })
	}
	var pending sync.WaitGroup
	errs := make(chan error, len(calls))
	for _, call := range calls {
		pending.Go(func() { errs <- insist(t.Context(), call) })
	}
	for _, pid := range victims {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Errorf("killing process %d: %v", pid, err)
		}
	}
	pending.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
}

// insist repeats a call until the server has answered it with success.
func insist(ctx context.Context, call call) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, framework.PollInterval, patience, true, func(ctx context.Context) (bool, error) {
		last = call(ctx)
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

// system returns the prompt of an administrator in the namespace of the product.
func system() shell { return shell{env.kubectl, systemNamespace} }

// processOf returns the process in the container of a Deployment of the product.
func processOf(t *testing.T, deployment string) int {
	t.Helper()
	pod := strings.TrimSpace(system().kubectl(t, "get", "pods", "-l", "app.kubernetes.io/name="+deployment, "-o", "jsonpath={.items[0].metadata.name}"))
	out, err := exec.CommandContext(t.Context(), env.kubectl.Programs.File(localcluster), "container-pid",
		"--namespace", systemNamespace, "--pod", pod, "--container", deployment).Output()
	if err != nil {
		t.Fatalf("finding the process of %s: %v", pod, err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// restart replaces the Pod of a Deployment of the product and waits until the API is served again.
func restart(t *testing.T, deployment string) {
	t.Helper()
	system().kubectl(t, "delete", "pods", "-l", "app.kubernetes.io/name="+deployment)
	system().kubectl(t, "rollout", "status", "deployment/"+deployment, "--timeout="+patience.String())
	for _, group := range []string{"agents.x-k8s.io", "extensions.agents.x-k8s.io"} {
		system().insist(t, "get", "--raw", "/apis/"+group+"/v1beta1")
	}
}
