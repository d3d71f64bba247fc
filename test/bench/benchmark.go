// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

const (
	// stepTimeout is when a single step is given up as failed.
	stepTimeout = 2 * time.Minute
	// cleanupTimeout bounds the removal of the namespace.
	cleanupTimeout = time.Minute
	// namePrefix begins the names of all that a run makes.
	namePrefix = "bench-"
)

// The metrics, in the order of the report.
const (
	podReady       = "Pod create to Ready"
	sandboxReady   = "Sandbox create to Ready"
	suspend        = "suspend to Suspended"
	resume         = "resume to Ready"
	podFirstByte   = "pods/exec first byte"
	execFirstByte  = "sandboxes/exec first byte"
	kubectlExec    = "kubectl exec"
	kubectlSandbox = "kubectl sandbox exec"
)

// metrics have a baseline where there is something without us to compare with.
var metrics = []metric{
	{name: podReady},
	{name: sandboxReady, baseline: podReady},
	{name: suspend},
	{name: resume, baseline: podReady},
	{name: podFirstByte},
	{name: execFirstByte, baseline: podFirstByte},
	{name: kubectlExec},
	{name: kubectlSandbox, baseline: kubectlExec},
}

// benchmark is one run on one cluster.
type benchmark struct {
	settings settings
	config   *rest.Config
	kube     kubernetes.Interface
	agents   versioned.Interface

	namespace string
	samples   map[string][]time.Duration
}

func newBenchmark(config *rest.Config, s settings) (*benchmark, error) {
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	agents, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &benchmark{settings: s, config: config, kube: kube, agents: agents, samples: map[string][]time.Duration{}}, nil
}

func (b *benchmark) run(ctx context.Context) (_ *report, err error) {
	if err := b.createNamespace(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.deleteNamespace(ctx)) }()
	for i := range b.settings.warmup + b.settings.iterations {
		if i == b.settings.warmup {
			clear(b.samples)
		}
		if err := b.iterate(ctx, i); err != nil {
			return nil, fmt.Errorf("iteration %d: %w", i, err)
		}
	}
	return newReport(metrics, b.samples), nil
}

// createNamespace makes a namespace in which Pods can be created.
func (b *benchmark) createNamespace(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: namePrefix}}
	namespace, err := b.kube.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	b.namespace = namespace.Name
	accounts := b.kube.CoreV1().ServiceAccounts(b.namespace)
	_, err = b.until(ctx, accounts.Watch, "default", func(event watch.Event) (bool, error) { return event.Type == watch.Added, nil }, nil)
	return err
}

// deleteNamespace is done also after an interrupt.
func (b *benchmark) deleteNamespace(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	return b.kube.CoreV1().Namespaces().Delete(ctx, b.namespace, metav1.DeleteOptions{})
}

// iterate takes one sample of each metric. Of two that are compared, each goes first every other time.
func (b *benchmark) iterate(ctx context.Context, i int) error {
	name := fmt.Sprintf("%s%d", namePrefix, i)
	creations := []func() error{
		func() error { return b.createPod(ctx, name+"-bare") },
		func() error { return b.createSandbox(ctx, name) },
	}
	execs := []func() error{
		func() error {
			return b.firstByte(ctx, podFirstByte, framework.PodExecURL(b.kube.CoreV1().RESTClient(), b.namespace, name, echo...))
		},
		func() error {
			return b.firstByte(ctx, execFirstByte, framework.SandboxExecURL(b.agents.AgentsV1beta1().RESTClient(), b.namespace, name, echo...))
		},
	}
	processes := []func() error{
		func() error { return b.process(ctx, kubectlExec, "exec", name) },
		func() error { return b.process(ctx, kubectlSandbox, "sandbox", "exec", name) },
	}
	for _, pair := range [][]func() error{creations, execs, processes} {
		if err := errors.Join(pair[i%2](), pair[1-i%2]()); err != nil {
			return err
		}
	}
	for _, step := range []func(context.Context, string) error{b.suspend, b.resume, b.remove} {
		if err := step(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (b *benchmark) createPod(ctx context.Context, name string) error {
	pods := b.kube.CoreV1().Pods(b.namespace)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: framework.PodSpec(b.settings.image)}
	return b.measure(ctx, podReady, pods.Watch, name, podIsReady, func() error {
		_, err := pods.Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
}

func (b *benchmark) createSandbox(ctx context.Context, name string) error {
	sandboxes := b.agents.AgentsV1beta1().Sandboxes(b.namespace)
	sandbox := framework.NewSandbox(name)
	sandbox.Spec.PodTemplate.Spec = framework.PodSpec(b.settings.image)
	return b.measure(ctx, sandboxReady, sandboxes.Watch, name, hasCondition(v1beta1.SandboxConditionReady), func() error {
		_, err := sandboxes.Create(ctx, sandbox, metav1.CreateOptions{})
		return err
	})
}

func (b *benchmark) suspend(ctx context.Context, name string) error {
	sandboxes := b.agents.AgentsV1beta1().Sandboxes(b.namespace)
	return b.measure(ctx, suspend, sandboxes.Watch, name, hasCondition(v1beta1.SandboxConditionSuspended), func() error {
		_, err := sandboxes.Suspend(ctx, name, &v1beta1.SandboxSuspend{}, metav1.CreateOptions{})
		return err
	})
}

func (b *benchmark) resume(ctx context.Context, name string) error {
	sandboxes := b.agents.AgentsV1beta1().Sandboxes(b.namespace)
	return b.measure(ctx, resume, sandboxes.Watch, name, hasCondition(v1beta1.SandboxConditionReady), func() error {
		_, err := sandboxes.Resume(ctx, name, &v1beta1.SandboxResume{}, metav1.CreateOptions{})
		return err
	})
}

// remove removes the objects of an iteration and waits until their Pods are gone, so that every iteration finds the node as the
// first one did.
func (b *benchmark) remove(ctx context.Context, name string) error {
	pods, sandboxes := b.kube.CoreV1().Pods(b.namespace), b.agents.AgentsV1beta1().Sandboxes(b.namespace)
	deleted := func(event watch.Event) (bool, error) { return event.Type == watch.Deleted, nil }
	_, err := b.until(ctx, pods.Watch, name+"-bare", deleted, func() error { return pods.Delete(ctx, name+"-bare", metav1.DeleteOptions{}) })
	if err != nil {
		return err
	}
	_, err = b.until(ctx, pods.Watch, name, deleted, func() error { return sandboxes.Delete(ctx, name, metav1.DeleteOptions{}) })
	return err
}

// echo is a command whose output is its first byte and little more.
var echo = []string{"echo", "x"}

// firstByte measures from the request to the first byte of output, on a new connection as every exec has.
func (b *benchmark) firstByte(ctx context.Context, metric string, url *url.URL) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	executor, err := framework.NewExecutor(b.config, framework.WebSocket, url)
	if err != nil {
		return err
	}
	var stdout firstWrite
	begin := time.Now()
	if err := executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &stdout, Stderr: io.Discard}); err != nil {
		return fmt.Errorf("%s: %w", metric, err)
	}
	if stdout.at.IsZero() {
		return fmt.Errorf("%s: the command printed nothing", metric)
	}
	b.record(metric, stdout.at.Sub(begin))
	return nil
}

// firstWrite remembers when something was first written to it.
type firstWrite struct{ at time.Time }

func (w *firstWrite) Write(p []byte) (int, error) {
	if w.at.IsZero() && len(p) > 0 {
		w.at = time.Now()
	}
	return len(p), nil
}

// process measures a whole run of kubectl, as a person at a terminal waits for it.
func (b *benchmark) process(ctx context.Context, metric string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	binDir, err := filepath.Abs(b.settings.binDir)
	if err != nil {
		return err
	}
	args = append(args, "--namespace="+b.namespace, "--kubeconfig="+b.settings.kubeconfig, "--")
	cmd := exec.CommandContext(ctx, filepath.Join(binDir, "kubectl"), append(args, echo...)...)
	// kubectl finds the plugin by the path.
	cmd.Env = append(os.Environ(), "PATH="+binDir+string(os.PathListSeparator)+os.Getenv("PATH"))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	begin := time.Now()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", metric, err, stderr.String())
	}
	b.record(metric, time.Since(begin))
	if stdout.String() != "x\n" {
		return fmt.Errorf("%s: got output %q", metric, stdout.String())
	}
	return nil
}

// watchFunc is the Watch method of a typed client.
type watchFunc func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)

// measure records how long it takes from the request that action makes until a watch tells that the condition holds.
func (b *benchmark) measure(ctx context.Context, metric string, open watchFunc, name string, condition watchtools.ConditionFunc, action func() error) error {
	elapsed, err := b.until(ctx, open, name, condition, action)
	if err != nil {
		return fmt.Errorf("%s of %s: %w", metric, name, err)
	}
	b.record(metric, elapsed)
	return nil
}

// until starts a watch of one object, then does action, which may be nil, and returns how long it took from there until the
// condition held. The watch is open before, as that of a client which cares.
func (b *benchmark) until(ctx context.Context, open watchFunc, name string, condition watchtools.ConditionFunc, action func() error) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	watcher, err := open(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()})
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	if action != nil {
		if err := action(); err != nil {
			watcher.Stop()
			return 0, err
		}
	}
	_, err = watchtools.UntilWithoutRetry(ctx, watcher, func(event watch.Event) (bool, error) {
		if err := eventError(event.Object); err != nil {
			return false, err
		}
		return condition(event)
	})
	return time.Since(begin), err
}

// eventError returns the error that an event reports, if it does.
func eventError(object runtime.Object) error {
	if status, ok := object.(*metav1.Status); ok {
		return apierrors.FromObject(status)
	}
	return nil
}

func (b *benchmark) record(metric string, sample time.Duration) {
	b.samples[metric] = append(b.samples[metric], sample)
}

// podIsReady says whether an event tells of a ready Pod.
func podIsReady(event watch.Event) (bool, error) {
	pod, ok := event.Object.(*corev1.Pod)
	if !ok || event.Type == watch.Deleted {
		return false, fmt.Errorf("unexpected event %s of a %T", event.Type, event.Object)
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue, nil
		}
	}
	return false, nil
}

// hasCondition says whether an event tells of a Sandbox with a condition that is true of its present spec.
func hasCondition(conditionType string) watchtools.ConditionFunc {
	return func(event watch.Event) (bool, error) {
		sandbox, ok := event.Object.(*v1beta1.Sandbox)
		if !ok || event.Type == watch.Deleted {
			return false, fmt.Errorf("unexpected event %s of a %T", event.Type, event.Object)
		}
		condition := meta.FindStatusCondition(sandbox.Status.Conditions, conditionType)
		return condition != nil && condition.Status == metav1.ConditionTrue && condition.ObservedGeneration == sandbox.Generation, nil
	}
}
