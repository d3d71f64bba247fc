// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/informers/externalversions"
	listers "github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/listers/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

const (
	namespaceName  = "scale"
	apiServiceName = "v1beta1.agents.x-k8s.io"
	pollInterval   = 250 * time.Millisecond
	// settlingInterval is how long nothing must be written before the rest begins: longer than any write is held back.
	settlingInterval = 5 * time.Second
	startTimeout     = time.Minute
)

// stage is what was found at the end of a part of the measurement.
type stage struct {
	name string
	took time.Duration
	// server and controller are the totals of the two programs since they started.
	server, controller *program
	// traffic is all that they have asked of kube-apiserver.
	traffic *traffic
	// serverRevision and clusterRevision count the writes to the etcd of Sandboxes and to that of the cluster.
	serverRevision, clusterRevision uint64
	// changed says that a Sandbox was written to in the stage. Known of the rest only.
	changed bool
}

// measurement is one run on one cluster.
type measurement struct {
	cluster  *cluster
	settings settings

	kube       kubernetes.Interface
	agents     versioned.Interface
	server     *http.Client
	serverURL  string
	aggregator aggregator.Interface
	config     *rest.Config

	sandboxes listers.SandboxNamespaceLister
}

func newMeasurement(c *cluster, s settings) (*measurement, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig())
	if err != nil {
		return nil, err
	}
	// A limit of the client's own would be measured too.
	config.QPS = -1
	m := &measurement{cluster: c, settings: s, config: config}
	var errs [3]error
	m.kube, errs[0] = kubernetes.NewForConfig(config)
	m.agents, errs[1] = versioned.NewForConfig(config)
	m.aggregator, errs[2] = aggregator.NewForConfig(config)
	return m, errors.Join(errs[:]...)
}

// run does everything, and returns the stages that it came to the end of.
func (m *measurement) run(ctx context.Context) ([]stage, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := m.prepare(ctx); err != nil {
		return nil, err
	}
	var stages []stage
	for _, part := range []struct {
		name string
		do   func(context.Context) (changed bool, err error)
	}{
		{"start", func(context.Context) (bool, error) { return false, nil }},
		{stageReady, m.createAll},
		{stageSettled, m.settle},
		{stageRest, m.rest},
		{stageGone, m.deleteAll},
	} {
		begin := time.Now()
		changed, err := part.do(ctx)
		if err != nil {
			return stages, fmt.Errorf("%s: %w", part.name, err)
		}
		end := stage{name: part.name, took: time.Since(begin), changed: changed}
		if err := m.fill(ctx, &end); err != nil {
			return stages, fmt.Errorf("measuring after %s: %w", part.name, err)
		}
		stages = append(stages, end)
	}
	return stages, nil
}

// prepare makes the namespace, finds the server of Sandboxes, and starts the watch by which all the rest is observed.
func (m *measurement) prepare(ctx context.Context) error {
	service, err := m.aggregator.ApiregistrationV1().APIServices().Get(ctx, apiServiceName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	m.serverURL = fmt.Sprintf("https://localhost:%d/metrics", *service.Spec.Service.Port)
	if m.server, err = rest.HTTPClientFor(m.config); err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceName}}
	if _, err := m.kube.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return err
	}
	err = poll(ctx, startTimeout, func(ctx context.Context) (bool, error) {
		_, err := m.kube.CoreV1().ServiceAccounts(namespaceName).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the default ServiceAccount: %w", err)
	}
	factory := externalversions.NewSharedInformerFactoryWithOptions(m.agents, 0, externalversions.WithNamespace(namespaceName))
	sandboxes := factory.Agents().V1beta1().Sandboxes()
	m.sandboxes = sandboxes.Lister().Sandboxes(namespaceName)
	synced := sandboxes.Informer().HasSynced
	factory.StartWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), synced) {
		return ctx.Err()
	}
	return nil
}

func (m *measurement) createAll(ctx context.Context) (bool, error) {
	client := m.agents.AgentsV1beta1().Sandboxes(namespaceName)
	err := m.forAll(ctx, func(ctx context.Context, name string) error {
		_, err := client.Create(ctx, framework.NewSandbox(name), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return false, err
	}
	return false, poll(ctx, m.settings.createTimeout, func(context.Context) (bool, error) {
		sandboxes, err := m.sandboxes.List(labels.Everything())
		ready := 0
		for _, sandbox := range sandboxes {
			if meta.IsStatusConditionTrue(sandbox.Status.Conditions, v1beta1.SandboxConditionReady) {
				ready++
			}
		}
		return ready == m.settings.sandboxes, err
	})
}

// settle waits until the controller has written what it has to: events come after the status.
func (m *measurement) settle(ctx context.Context) (bool, error) {
	before := -1
	return false, wait.PollUntilContextTimeout(ctx, settlingInterval, m.settings.createTimeout, true, func(context.Context) (bool, error) {
		traffic, err := m.traffic()
		if err != nil {
			return false, err
		}
		writes := traffic.writes(sandboxController)
		settled := writes == before
		before = writes
		return settled, nil
	})
}

// rest watches for the time of the rest, and says whether a Sandbox was changed in it.
func (m *measurement) rest(ctx context.Context) (bool, error) {
	before, err := m.versions()
	if err != nil {
		return false, err
	}
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case <-time.After(m.settings.rest):
	}
	after, err := m.versions()
	return !maps.Equal(before, after), err
}

func (m *measurement) versions() (map[string]string, error) {
	sandboxes, err := m.sandboxes.List(labels.Everything())
	versions := map[string]string{}
	for _, sandbox := range sandboxes {
		versions[sandbox.Name] = sandbox.ResourceVersion
	}
	return versions, err
}

// deleteAll deletes all Sandboxes and waits until nothing is left of them.
func (m *measurement) deleteAll(ctx context.Context) (bool, error) {
	client := m.agents.AgentsV1beta1().Sandboxes(namespaceName)
	err := m.forAll(ctx, func(ctx context.Context, name string) error {
		return client.Delete(ctx, name, metav1.DeleteOptions{})
	})
	if err != nil {
		return false, err
	}
	var left error
	err = poll(ctx, m.settings.deletionTimeout, func(ctx context.Context) (bool, error) {
		left = m.leftovers(ctx)
		return left == nil, nil
	})
	return false, errors.Join(err, left)
}

// leftovers returns an error if there is anything in the namespace that belongs, or has belonged, to a Sandbox.
func (m *measurement) leftovers(ctx context.Context) error {
	sandboxes, err := m.sandboxes.List(labels.Everything())
	if err != nil || len(sandboxes) > 0 {
		return errors.Join(err, fmt.Errorf("%d sandboxes are left", len(sandboxes)))
	}
	core := m.kube.CoreV1()
	owned := metav1.ListOptions{LabelSelector: v1beta1.SandboxNameHashLabel, ResourceVersion: "0"}
	pods, err := core.Pods(namespaceName).List(ctx, owned)
	if err != nil || len(pods.Items) > 0 {
		return errors.Join(err, errors.New("pods are left"))
	}
	services, err := core.Services(namespaceName).List(ctx, owned)
	if err != nil || len(services.Items) > 0 {
		return errors.Join(err, errors.New("services are left"))
	}
	claims, err := core.PersistentVolumeClaims(namespaceName).List(ctx, owned)
	if err != nil || len(claims.Items) > 0 {
		return errors.Join(err, errors.New("claims for volumes are left"))
	}
	return nil
}

// forAll calls do for the name of each Sandbox, for several at the same time.
func (m *measurement) forAll(ctx context.Context, do func(ctx context.Context, name string) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	names := make(chan string)
	var workers sync.WaitGroup
	for range m.settings.concurrency {
		workers.Go(func() {
			for name := range names {
				if err := do(ctx, name); err != nil {
					cancel(fmt.Errorf("sandbox %s: %w", name, err))
				}
			}
		})
	}
	for i := range m.settings.sandboxes {
		if ctx.Err() != nil {
			break
		}
		names <- fmt.Sprintf("box-%d", i)
	}
	close(names)
	workers.Wait()
	return context.Cause(ctx)
}

// fill takes all figures.
func (m *measurement) fill(ctx context.Context, s *stage) (err error) {
	var errs [5]error
	s.server, errs[0] = scrape(ctx, m.server, m.serverURL)
	s.controller, errs[1] = scrape(ctx, http.DefaultClient, "http://"+m.cluster.metricsAddress+"/metrics")
	s.traffic, errs[2] = m.traffic()
	// A list that is not from a cache has the revision of the etcd as its version.
	sandboxes, err := m.agents.AgentsV1beta1().Sandboxes(metav1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: 1})
	if errs[3] = err; err == nil {
		s.serverRevision, errs[3] = strconv.ParseUint(sandboxes.ResourceVersion, 10, 64)
	}
	namespaces, err := m.kube.CoreV1().Namespaces().List(ctx, metav1.ListOptions{Limit: 1})
	if errs[4] = err; err == nil {
		s.clusterRevision, errs[4] = strconv.ParseUint(namespaces.ResourceVersion, 10, 64)
	}
	return errors.Join(errs[:]...)
}

func (m *measurement) traffic() (*traffic, error) { return readTraffic(m.cluster.light) }

// poll waits until done says so.
func poll(ctx context.Context, timeout time.Duration, done wait.ConditionWithContextFunc) error {
	return wait.PollUntilContextTimeout(ctx, pollInterval, timeout, true, func(ctx context.Context) (bool, error) {
		ok, err := done(ctx)
		if apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) {
			return false, nil
		}
		return ok, err
	})
}
