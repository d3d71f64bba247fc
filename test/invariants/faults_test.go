// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// saboteur spoils things, one after the other.
type saboteur struct {
	*fleet
	random *rand.Rand
	// progress is told what is done.
	progress func(format string, args ...any)
	// done counts the faults by their kind.
	done map[string]int
}

// fault is a way to spoil something. It repairs what it did before it returns, unless it fails.
type fault struct {
	name string
	do   func(*saboteur, context.Context) error
}

// faults are what is done, and how often compared to each other.
var faults = []choice[fault]{
	{4, fault{"kill a replica", (*saboteur).killAnyReplica}},
	{2, fault{"kill the controller", (*saboteur).killTheController}},
	{1, fault{"kill both", (*saboteur).killBoth}},
	{2, fault{"route elsewhere", (*saboteur).routeElsewhere}},
	{3, fault{"delay etcd", (*saboteur).delay}},
	{3, fault{"hold etcd", (*saboteur).hold}},
	{5, fault{"cut etcd", (*saboteur).cut}},
	{8, fault{"lose answers of etcd", (*saboteur).loseAnswers}},
}

// run spoils something every now and then until ctx ends, and leaves everything whole.
func (s *saboteur) run(ctx context.Context) error {
	for ctx.Err() == nil {
		fault := choose(s.random, faults)
		s.done[fault.name]++
		// What was begun is repaired.
		if err := fault.do(s, context.WithoutCancel(ctx)); err != nil {
			return fmt.Errorf("%s: %w", fault.name, err)
		}
		pause(ctx, s.upTo(1500*time.Millisecond))
	}
	return s.fleet.route(context.WithoutCancel(ctx), 0)
}

func (s *saboteur) upTo(longest time.Duration) time.Duration {
	return time.Duration(s.random.Int64N(int64(longest)))
}

func (s *saboteur) killAnyReplica(ctx context.Context) error {
	i := s.random.IntN(replicas)
	s.progress("kill %s", replica(i))
	if err := s.killReplica(ctx, i); err != nil {
		return err
	}
	// Half of the time its clients find another one.
	if other := s.random.IntN(2 * replicas); other < replicas && other != i {
		if err := s.route(ctx, other); err != nil {
			return err
		}
	}
	pause(ctx, s.upTo(time.Second))
	_, err := s.startReplica(ctx, i)
	return err
}

func (s *saboteur) killTheController(ctx context.Context) error {
	s.progress("kill the controller")
	if err := s.killController(ctx); err != nil {
		return err
	}
	pause(ctx, s.upTo(time.Second))
	return s.startController(ctx)
}

func (s *saboteur) killBoth(ctx context.Context) error {
	s.progress("kill the controller and what it is talking to")
	if err := s.killController(ctx); err != nil {
		return err
	}
	if err := s.killAnyReplica(ctx); err != nil {
		return err
	}
	return s.startController(ctx)
}

func (s *saboteur) routeElsewhere(ctx context.Context) error {
	i := s.random.IntN(replicas)
	s.progress("route to %s", replica(i))
	return s.route(ctx, i)
}

func (s *saboteur) delay(ctx context.Context) error {
	i, delay := s.random.IntN(replicas), s.upTo(200*time.Millisecond)
	s.progress("delay etcd by %v for %s", delay, replica(i))
	s.proxies[i].Delay(delay)
	pause(ctx, s.upTo(3*time.Second))
	s.proxies[i].Pass()
	return nil
}

func (s *saboteur) hold(ctx context.Context) error {
	i := s.random.IntN(replicas)
	s.progress("hold etcd for %s", replica(i))
	s.proxies[i].Hold()
	pause(ctx, s.upTo(2*time.Second))
	if s.random.IntN(2) == 0 {
		s.proxies[i].Cut()
	}
	s.proxies[i].Pass()
	return nil
}

func (s *saboteur) cut(context.Context) error {
	i := s.random.IntN(replicas)
	s.progress("cut etcd for %s", replica(i))
	s.proxies[i].Cut()
	return nil
}

func (s *saboteur) loseAnswers(ctx context.Context) error {
	i := s.random.IntN(replicas)
	s.progress("lose answers of etcd to %s", replica(i))
	s.proxies[i].LoseAnswers()
	// Long enough for requests to arrive, and short enough for clients that wait.
	pause(ctx, s.upTo(300*time.Millisecond))
	s.proxies[i].Pass()
	return nil
}
