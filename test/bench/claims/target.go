// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/rest"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

// target is the cluster that is measured.
type target struct {
	description string
	admin       *framework.Clients
	// processes are those of this machine whose usage is reported, by name.
	processes map[string]int
	// local is the light cluster, if that is what is measured.
	local *local
}

// local is a light cluster with both programs of the project, and what they tell about themselves.
type local struct {
	cluster *framework.LightCluster
	server  *framework.Process
	// client is that of an administrator for the metrics of the server.
	client *http.Client
	// etcd is that in the server.
	etcd *clientv3.Client
}

// target returns the cluster that the settings name, or starts one.
func (s settings) target(ctx context.Context) (*target, error) {
	if s.kubeconfig != "" {
		admin, err := framework.LoadClients(s.kubeconfig)
		return &target{description: s.kubeconfig, admin: admin, processes: map[string]int{}}, err
	}
	progress("starting a light cluster of %d nodes", s.nodes)
	binDir, err := filepath.Abs(s.binDir)
	if err != nil {
		return nil, err
	}
	cluster, err := framework.StartLightCluster(ctx, framework.LightClusterOptions{
		Programs: framework.Programs(binDir), Dir: s.dir, Port: s.port, Nodes: s.nodes,
	})
	if err != nil {
		return nil, err
	}
	t := &target{description: fmt.Sprintf("light, %d nodes", s.nodes), local: &local{cluster: cluster}}
	if err := t.start(ctx); err != nil {
		cluster.WriteLogs(os.Stderr, framework.SandboxAPIServer, framework.SandboxController)
		return nil, errors.Join(err, t.remove())
	}
	return t, nil
}

// start starts the programs of the project, and looks for what they tell.
func (t *target) start(ctx context.Context) (err error) {
	l := t.local
	if l.server, err = l.cluster.Start(ctx, framework.SandboxAPIServer, 1); err != nil {
		return err
	}
	if _, err = l.cluster.Start(ctx, framework.SandboxController, 1); err != nil {
		return err
	}
	if t.processes, err = l.cluster.PIDs(); err != nil {
		return err
	}
	if t.admin, err = framework.LoadClients(l.cluster.Kubeconfig()); err != nil {
		return err
	}
	if l.client, err = rest.HTTPClientFor(t.admin.Config); err != nil {
		return err
	}
	l.etcd, err = framework.NewEtcd(l.cluster.EmbeddedEtcd())
	return err
}

// remove removes what start started.
func (t *target) remove() error {
	if t.local == nil {
		return nil
	}
	progress("removing the light cluster")
	var err error
	if t.local.etcd != nil {
		err = t.local.etcd.Close()
	}
	return errors.Join(err, t.local.cluster.Remove())
}

// snapshot is what can be told at one moment of all that was used until then.
type snapshot struct {
	at        time.Time
	processes map[string]usage
	// server are the metrics of the server, revision is that of its etcd. Of a light cluster only.
	server   framework.Metrics
	revision int64
}

func (t *target) snapshot(ctx context.Context) (*snapshot, error) {
	s := &snapshot{at: time.Now(), processes: map[string]usage{}}
	for name, pid := range t.processes {
		usage, err := readUsage(pid)
		if err != nil {
			return nil, err
		}
		s.processes[name] = usage
	}
	if t.local == nil {
		return s, nil
	}
	var errs [2]error
	s.server, errs[0] = framework.Scrape(ctx, t.local.client, t.local.server.URL+"/metrics")
	s.revision, errs[1] = framework.Revision(ctx, t.local.etcd)
	return s, errors.Join(errs[:]...)
}

// traffic is what kube-apiserver recorded in a while.
type traffic struct {
	// claims is how long it took to answer each creation of a claim.
	claims []time.Duration
	// serverRequests counts what the server has asked of kube-apiserver.
	serverRequests int
}

// traffic reads what was recorded of the requests that were received between two moments.
func (l *local) traffic(namespace string, from, to time.Time) (*traffic, error) {
	t := &traffic{}
	within := func(event *auditv1.Event) bool {
		received := event.RequestReceivedTimestamp.Time
		return !received.Before(from) && received.Before(to)
	}
	err := l.cluster.EachAuditEvent(`"userAgent":"`+framework.SandboxAPIServer+`/`, func(event *auditv1.Event) {
		if within(event) {
			t.serverRequests++
		}
	})
	if err != nil {
		return nil, err
	}
	return t, l.cluster.EachAuditEvent(`"resource":"sandboxclaims","namespace":"`+namespace, func(event *auditv1.Event) {
		if within(event) && event.Verb == "create" && event.ObjectRef.Subresource == "" {
			t.claims = append(t.claims, event.StageTimestamp.Sub(event.RequestReceivedTimestamp.Time))
		}
	})
}
