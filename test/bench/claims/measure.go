// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

const (
	// peerLabel is on the Pods that claims are compared with.
	peerLabel = "bench-peer"
	// warmUpClaims are made, and as many Pods, before anything is measured: connections are open and caches filled then.
	warmUpClaims = 5
)

var started = time.Now()

// progress prints a line about what is done now.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "[%6.1fs] %s\n", time.Since(started).Seconds(), fmt.Sprintf(format, args...))
}

// measurement is a run of scenarios on one target.
type measurement struct {
	*environment
	target   *target
	settings settings
	observer *observer
	// known is what was wrong with who has got what at the end of a scenario before.
	known map[string]bool
}

// measure runs scenarios, and returns what it has found also if it could not go on.
func measure(ctx context.Context, t *target, s settings, chosen []scenario) (results []*result, err error) {
	e, err := newEnvironment(ctx, t.admin, s.image)
	if err != nil {
		return nil, err
	}
	if t.local == nil {
		defer func() { err = errors.Join(err, e.remove(ctx)) }()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	o, err := startObserver(ctx, e.user.Agents.ExtensionsV1beta1().SandboxClaims(e.namespace))
	if err != nil {
		return nil, err
	}
	m := &measurement{environment: e, target: t, settings: s, observer: o, known: map[string]bool{}}
	if err := m.warmUp(ctx); err != nil {
		return nil, fmt.Errorf("warming up: %w", err)
	}
	for _, s := range chosen {
		r := newResult(s)
		err := m.measure(ctx, s, r)
		results = append(results, r)
		if err != nil {
			return results, fmt.Errorf("%s: %w", s.name, err)
		}
		progress("%s: %s", s.name, r.summary())
	}
	return results, nil
}

func (m *measurement) warmUp(ctx context.Context) error {
	progress("warming up")
	s := scenario{name: "warm-up", load: load{count: warmUpClaims, inFlight: 1}, pool: warmUpClaims, untilReady: true}
	if err := m.fill(ctx, s.pool); err != nil {
		return err
	}
	for _, attempt := range m.claimAll(ctx, s, 0) {
		if attempt.err != nil {
			return attempt.err
		}
	}
	_, err := m.createPods(ctx, s)
	return err
}

// fill makes the pool as large as it must be, and waits until it is full.
func (m *measurement) fill(ctx context.Context, members int) error {
	if err := m.setPool(ctx, members); err != nil {
		return err
	}
	return m.awaitPool(ctx, members, m.settings.fillTimeout)
}

// measure runs one scenario, and writes to r what it finds.
func (m *measurement) measure(ctx context.Context, s scenario, r *result) error {
	progress("%s: filling a pool of %d", s.name, s.pool)
	if err := m.fill(ctx, s.pool); err != nil {
		return err
	}
	progress("%s: creating Pods to compare with", s.name)
	pods, err := m.createPods(ctx, s)
	if err != nil {
		return err
	}
	r.pods = pods
	for round := range s.rounds {
		progress("%s: %d claims", s.name, s.count)
		if err := m.round(ctx, s, round, r); err != nil {
			return err
		}
	}
	if err := m.verify(ctx, r); err != nil {
		return err
	}
	r.summarize()
	return nil
}

// createPods creates Pods in the way of a scenario and removes them, and returns how long each creation took. Nothing is done with the
// Pods, so that the time is that of the cluster alone.
func (m *measurement) createPods(ctx context.Context, s scenario) ([]time.Duration, error) {
	l := s.peers()
	took, errs := make([]time.Duration, l.count), make([]error, l.count)
	client := m.user.Kube.CoreV1().Pods(m.namespace)
	l.run(ctx, func(i int, begin time.Time) {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", s.name, i), Labels: map[string]string{peerLabel: s.name}},
			Spec:       framework.PodSpec(m.settings.image),
		}
		pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: peerLabel}}
		_, errs[i] = client.Create(ctx, pod, metav1.CreateOptions{})
		took[i] = time.Since(begin)
	})
	err := m.admin.Kube.CoreV1().Pods(m.namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: peerLabel})
	return took, errors.Join(append(errs, err)...)
}

// attempt is what became of one claim.
type attempt struct {
	name  string
	begin time.Time
	// answered is when the claim was created, and zero if it was not.
	answered time.Time
	// ready is when the client could first know that the claim is: from the answer, or else from the watch.
	ready time.Time
	// watched is when the watch told that the claim was ready.
	watched time.Time
	// inResponse says that the answer to the creation had all that is needed to use the Sandbox. sandbox is the name in that answer.
	inResponse bool
	sandbox    string
	err        error
}

// claimAll creates the claims of a round, and waits until the watch has told of each that it is ready.
func (m *measurement) claimAll(ctx context.Context, s scenario, round int) []attempt {
	attempts := make([]attempt, s.count)
	s.run(ctx, func(i int, begin time.Time) {
		a := &attempts[i]
		a.name, a.begin = fmt.Sprintf("%s-%d-%d", s.name, round, i), begin
		m.claim(ctx, a)
		if s.untilReady && a.err == nil && a.ready.IsZero() {
			m.await(ctx, m.settings.readyTimeout, a)
		}
	})
	deadline := time.Now().Add(m.settings.readyTimeout)
	for i := range attempts {
		switch a := &attempts[i]; {
		case a.begin.IsZero():
			a.err = context.Cause(ctx)
		case a.err == nil && a.watched.IsZero():
			m.await(ctx, time.Until(deadline), a)
		}
	}
	return attempts
}

// claim creates the claim of an attempt.
func (m *measurement) claim(ctx context.Context, a *attempt) {
	var claim *extensionsv1beta1.SandboxClaim
	claim, a.err = m.user.Agents.ExtensionsV1beta1().SandboxClaims(m.namespace).Create(ctx, framework.NewClaim(a.name, objectName), metav1.CreateOptions{})
	if a.err != nil {
		return
	}
	a.answered = time.Now()
	a.sandbox = claim.Status.Sandbox.Name
	if ready(claim) {
		a.ready = a.answered
		a.inResponse = len(claim.Status.Sandbox.PodIPs) > 0
	}
}

// await waits until the watch tells that the claim of an attempt is ready.
func (m *measurement) await(ctx context.Context, timeout time.Duration, a *attempt) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if a.watched, a.err = m.observer.await(ctx, a.name); a.ready.IsZero() {
		a.ready = a.watched
	}
}

// round creates the claims of a round, waits until the pool is full again, and adds to r what both took.
func (m *measurement) round(ctx context.Context, s scenario, round int, r *result) error {
	before, err := m.target.snapshot(ctx)
	if err != nil {
		return err
	}
	attempts := m.claimAll(ctx, s, round)
	after, err := m.target.snapshot(ctx)
	if err != nil {
		return err
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	r.add(attempts)
	r.addUsage(before, after)
	if err := m.awaitPool(ctx, s.pool, m.settings.fillTimeout); err != nil {
		return err
	}
	r.Refill = append(r.Refill, time.Since(after.at).Seconds())
	if m.target.local == nil {
		return nil
	}
	return m.addCosts(ctx, before, after, attempts, r)
}

// addCosts adds to r what only the programs of the project, or the light cluster, tell.
func (m *measurement) addCosts(ctx context.Context, before, after *snapshot, attempts []attempt, r *result) error {
	traffic, err := m.target.local.traffic(m.namespace, before.at, after.at)
	if err != nil {
		return err
	}
	transactions, err := framework.Transactions(ctx, m.target.local.etcd, before.revision)
	if err != nil {
		return err
	}
	claims, err := m.claims(ctx)
	if err != nil {
		return err
	}
	ours := map[string]string{}
	for i := range attempts {
		ours[attempts[i].name] = ""
	}
	for i := range claims {
		if _, found := ours[claims[i].Name]; found {
			ours[claims[i].Name] = claims[i].Status.Sandbox.Name
		}
	}
	r.addServer(before, after, traffic, claimWrites(transactions, m.namespace, ours))
	return nil
}

// verify compares all that claims and Sandboxes say about each other, and adds to r what is wrong, and how many were started cold.
func (m *measurement) verify(ctx context.Context, r *result) error {
	claims, err := m.claims(ctx)
	if err != nil {
		return err
	}
	sandboxes, err := m.sandboxes(ctx, "")
	if err != nil {
		return err
	}
	var ours []extensionsv1beta1.SandboxClaim
	for i := range claims {
		if strings.HasPrefix(claims[i].Name, r.Scenario+"-") {
			ours = append(ours, claims[i])
		}
	}
	for _, wrong := range append(wrongBindings(claims, sandboxes), r.changedBindings(ours)...) {
		if !m.known[wrong] {
			m.known[wrong] = true
			r.addWrong(wrong)
		}
	}
	r.cold = coldStarts(ours, sandboxes)
	return nil
}
