// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package binder_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/claimtest"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/registrytest"
)

// errLost is how an answer does not come.
var errLost = errors.New("the connection was lost")

// before does something before a transaction, as often as is said.
func before(times int, do func()) interception {
	var done atomic.Int32
	return func(_ context.Context, ask commit) (*clientv3.TxnResponse, error) {
		if int(done.Add(1)) <= times {
			do()
		}
		return ask()
	}
}

// touch changes whatever member of the pool was picked: all of them.
func touch(s *claimtest.Server, pool string, n int) {
	for i := range n {
		sandbox := s.Sandbox(claimtest.MemberName(pool, i))
		sandbox.Annotations = map[string]string{"example.com/touched": sandbox.ResourceVersion}
		s.UpdateSandbox(sandbox)
	}
}

func TestLostRaceTakesTheNextCandidate(t *testing.T) {
	s := claimtest.Start(t, registrytest.StartEtcd(t))
	pool := s.AddPoolOf("pool", 1)
	requests := intercept(s)
	requests.set(before(1, func() {
		s.Delete(s.Sandboxes, "pool-00000")
		s.AddMember(claimtest.Member(pool, 1), claimtest.ReadyStatus())
		s.AwaitCandidates("pool", 1)
	}), nil)
	if got := s.MustCreate(claimtest.Claim("claim", "pool")).Status.Sandbox.Name; got != "pool-00001" {
		t.Errorf("the claim got %q, want pool-00001", got)
	}
	if writes, _ := requests.counts(); writes != 2 {
		t.Errorf("%d transactions were made, want 2", writes)
	}
}

func TestLostRacesAreNotRunForEver(t *testing.T) {
	s := claimtest.Start(t, registrytest.StartEtcd(t))
	s.AddPoolOf("pool", 3)
	requests := intercept(s)
	requests.set(before(100, func() { touch(s, "pool", 3) }), nil)
	if got := s.MustCreate(claimtest.Claim("claim", "pool")).Status.Sandbox.Name; got != "" {
		t.Errorf("the claim got %q, want none", got)
	}
	if writes, _ := requests.counts(); writes == 0 || writes > 8 {
		t.Errorf("%d transactions were made, want 1 to 8", writes)
	}
	requests.set(nil, nil)
	s.AwaitCandidates("pool", 3)
	if got := s.MustCreate(claimtest.Claim("other", "pool")).Status.Sandbox.Name; got == "" {
		t.Error("another claim got none although nobody was faster any more")
	}
}

func TestPoolThatGoesMeanwhileGivesNothing(t *testing.T) {
	for name, replace := range map[string]bool{"deleted": false, "replaced by another of the name": true} {
		t.Run(name, func(t *testing.T) {
			s := claimtest.Start(t, registrytest.StartEtcd(t))
			s.AddPoolOf("pool", 1)
			member := s.Sandbox("pool-00000")
			intercept(s).set(before(1, func() {
				s.Delete(s.Pools, "pool")
				if replace {
					s.AddPool(claimtest.Pool("pool", "pool"))
				}
			}), nil)
			if got := s.MustCreate(claimtest.Claim("claim", "pool")).Status.Sandbox.Name; got != "" {
				t.Errorf("the claim got %q, want none", got)
			}
			if diff := cmp.Diff(member, s.Sandbox("pool-00000")); diff != "" {
				t.Errorf("the member changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestLostAnswerOfATransactionThatWasMade(t *testing.T) {
	s := claimtest.Start(t, registrytest.StartEtcd(t))
	s.AddPoolOf("pool", 2)
	requests := intercept(s)
	requests.set(func(_ context.Context, ask commit) (*clientv3.TxnResponse, error) {
		_, err := ask()
		return nil, errors.Join(errLost, err)
	}, nil)
	got := s.MustCreate(claimtest.Claim("claim", "pool"))
	if diff := cmp.Diff(s.Claim("claim"), got); diff != "" || got.Status.Sandbox.Name == "" {
		t.Errorf("the response is not the bound claim that was stored (-stored +response):\n%s", diff)
	}
	requests.set(nil, nil)
	s.AwaitCandidates("pool", 1)
}

// TestLostAnswerIsThatOfTheCreation has the claim changed before it is found out that it was created. A watch from the answer on must show
// the change.
func TestLostAnswerIsThatOfTheCreation(t *testing.T) {
	s := claimtest.Start(t, registrytest.StartEtcd(t))
	s.AddPoolOf("pool", 1)
	var created *extensions.SandboxClaim
	intercept(s).set(func(_ context.Context, ask commit) (*clientv3.TxnResponse, error) {
		_, err := ask()
		created = s.Claim("claim")
		changed := created.DeepCopy()
		changed.Annotations["example.com/changed"] = "yes"
		s.UpdateClaim(changed)
		return nil, errors.Join(errLost, err)
	}, nil)
	got := s.MustCreate(claimtest.Claim("claim", "pool"))
	if diff := cmp.Diff(created, got); diff != "" || got.Status.Sandbox.Name == "" {
		t.Errorf("the response is not the claim as it was created (-created +response):\n%s", diff)
	}
}

func TestLostAnswerOfATransactionThatWasNotMade(t *testing.T) {
	s := claimtest.Start(t, registrytest.StartEtcd(t))
	s.AddPoolOf("pool", 1)
	requests := intercept(s)
	requests.set(func(context.Context, commit) (*clientv3.TxnResponse, error) { return nil, errLost }, nil)
	if _, err := s.Create(t.Context(), claimtest.Claim("claim", "pool"), &metav1.CreateOptions{}); !errors.Is(err, errLost) {
		t.Errorf("error is %v, want that of the transaction", err)
	}
	requests.set(nil, nil)
	if got := s.Candidates("pool"); got != 1 {
		t.Errorf("%d candidates are left, want 1", got)
	}
	if got := s.MustCreate(claimtest.Claim("claim", "pool")).Status.Sandbox.Name; got != "pool-00000" {
		t.Errorf("the claim got %q, want pool-00000", got)
	}
}

// TestUnknownOutcomeKeepsTheCandidate lets nobody know for a while what became of a transaction: until then no claim gets the candidate.
func TestUnknownOutcomeKeepsTheCandidate(t *testing.T) {
	for name, made := range map[string]bool{"it was made": true, "it was not made": false} {
		t.Run(name, func(t *testing.T) {
			s := claimtest.Start(t, registrytest.StartEtcd(t))
			s.AddPoolOf("pool", 1)
			requests := intercept(s)
			var reads atomic.Int32
			requests.set(func(_ context.Context, ask commit) (*clientv3.TxnResponse, error) {
				if made {
					if _, err := ask(); err != nil {
						return nil, err
					}
				}
				return nil, errLost
			}, func(context.Context, commit) (*clientv3.TxnResponse, error) {
				reads.Add(1)
				return nil, errLost
			})
			if _, err := s.Create(t.Context(), claimtest.Claim("claim", "pool"), &metav1.CreateOptions{}); !errors.Is(err, errLost) {
				t.Errorf("error is %v, want that of the transaction", err)
			}
			s.Eventually("it was tried again to find out", func() bool { return reads.Load() > 2 })
			if got := s.Candidates("pool"); got != 0 {
				t.Errorf("%d candidates are known while the outcome is not, want none", got)
			}
			requests.set(nil, nil)
			if made {
				if got := s.Claim("claim").Status.Sandbox.Name; got != "pool-00000" {
					t.Errorf("the claim has %q, want pool-00000", got)
				}
				return
			}
			s.AwaitCandidates("pool", 1)
		})
	}
}

func TestCancelledRequest(t *testing.T) {
	s := claimtest.Start(t, registrytest.StartEtcd(t))
	s.AddPoolOf("pool", 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	requests := intercept(s)
	if _, err := s.Create(ctx, claimtest.Claim("before", "pool"), &metav1.CreateOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want that of the context", err)
	}
	if writes, _ := requests.counts(); writes != 0 {
		t.Errorf("%d transactions were made for a client that had gone", writes)
	}
	if got := s.Candidates("pool"); got != 1 {
		t.Errorf("%d candidates are left, want 1", got)
	}

	ctx, cancel = context.WithCancel(t.Context())
	requests.set(func(ctx context.Context, _ commit) (*clientv3.TxnResponse, error) {
		cancel()
		return nil, ctx.Err()
	}, nil)
	if _, err := s.Create(ctx, claimtest.Claim("during", "pool"), &metav1.CreateOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want that of the context", err)
	}
	requests.set(nil, nil)
	s.AwaitCandidates("pool", 1)
}

// TestC3ServersInCompetition lets two servers give away the same members to more claims than there are members, as fast as they can, while
// some answers of etcd get lost. At the end each member belongs to one claim, and each claim that has one to one member.
func TestC3ServersInCompetition(t *testing.T) {
	const members, claims, workers = 1000, 1100, 16
	etcd := registrytest.StartEtcd(t)
	servers := []*claimtest.Server{claimtest.Start(t, etcd), claimtest.Start(t, etcd)}
	servers[0].AddTemplate(claimtest.Template("pool"))
	pool := servers[0].AddPool(claimtest.Pool("pool", "pool"))
	inParallel(workers, members, func(_, i int) {
		servers[0].AddMember(claimtest.Member(pool, i), claimtest.ReadyStatus())
	})
	for _, s := range servers {
		s.AwaitCandidates("pool", members)
		var count atomic.Int32
		intercept(s).set(func(_ context.Context, ask commit) (*clientv3.TxnResponse, error) {
			switch count.Add(1) % 50 {
			case 0:
				return nil, errLost
			case 25:
				_, err := ask()
				return nil, errors.Join(errLost, err)
			default:
				return ask()
			}
		}, nil)
	}

	var waiting, failed atomic.Int32
	inParallel(workers, claims, func(worker, i int) {
		claim, err := servers[worker%2].Create(t.Context(), claimtest.Claim(fmt.Sprintf("claim-%05d", i), "pool"), &metav1.CreateOptions{})
		switch {
		case errors.Is(err, errLost):
			failed.Add(1)
		case err != nil:
			t.Error(err)
		case claim.Status.Sandbox.Name == "":
			waiting.Add(1)
		}
	})
	t.Logf("%d claims wait, %d failed", waiting.Load(), failed.Load())
	checkBindings(t, servers[0], members-int(failed.Load()))
}

// checkBindings fails unless claims and Sandboxes that are bound agree, one to one, and there are at least so many.
func checkBindings(t *testing.T, s *claimtest.Server, atLeast int) {
	t.Helper()
	owners := map[string]string{}
	for _, sandbox := range list[*agents.SandboxList](t, s.Sandboxes).Items {
		if owner := metav1.GetControllerOf(&sandbox); owner.Kind == "SandboxClaim" {
			owners[sandbox.Name] = string(owner.UID)
		}
	}
	claims := map[string]string{}
	for _, claim := range list[*extensions.SandboxClaimList](t, s.Claims).Items {
		name := claim.Status.Sandbox.Name
		if name == "" {
			continue
		}
		if other, given := claims[name]; given {
			t.Errorf("%s is given to %s and to %s", name, other, claim.UID)
		}
		claims[name] = string(claim.UID)
	}
	if diff := cmp.Diff(claims, owners); diff != "" {
		t.Errorf("claims and owners differ (-what claims say +what Sandboxes say):\n%s", diff)
	}
	if len(claims) < atLeast {
		t.Errorf("%d claims are bound, want at least %d", len(claims), atLeast)
	}
}

func list[L any](t *testing.T, endpoint rest.Lister) L {
	t.Helper()
	obj, err := endpoint.List(claimtest.Context(t.Context()), nil)
	if err != nil {
		t.Fatal(err)
	}
	return obj.(L)
}

// inParallel does something n times, by the given number of workers.
func inParallel(workers, n int, do func(worker, i int)) {
	var next atomic.Int32
	var working sync.WaitGroup
	for worker := range workers {
		working.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(worker, i)
			}
		})
	}
	working.Wait()
}
