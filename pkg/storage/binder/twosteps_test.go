// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package binder_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/claimtest"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/registrytest"
)

// inTwoEtcds makes a server keep Sandboxes in another etcd than claims.
func inTwoEtcds(other string) func(*genericoptions.EtcdOptions) {
	return func(options *genericoptions.EtcdOptions) {
		options.EtcdServersOverrides = []string{"agents.x-k8s.io/sandboxes#" + other}
	}
}

// startTwoEtcds starts a server that cannot write a claim and a Sandbox in one transaction.
func startTwoEtcds(t *testing.T) *claimtest.Server {
	t.Helper()
	return claimtest.Start(t, registrytest.StartEtcd(t), inTwoEtcds(registrytest.StartEtcd(t)))
}

// TestTwoStepsDoWhatATransactionDoes compares claim and Sandbox after binding in one transaction and in two steps.
func TestTwoStepsDoWhatATransactionDoes(t *testing.T) {
	type result struct {
		Claim   extensions.SandboxClaimStatus
		Sandbox metav1.ObjectMeta
		Spec    agents.SandboxSpec
	}
	bind := func(s *claimtest.Server) result {
		s.AddPoolOf("pool", 1)
		claim := claimtest.Claim("claim", "pool")
		claim.Spec.AdditionalPodMetadata.Labels = map[string]string{"sandbox.users.io/a": "b"}
		got := s.MustCreate(claim)
		if diff := cmp.Diff(s.Claim("claim"), got); diff != "" {
			t.Errorf("the response is not what was stored (-stored +response):\n%s", diff)
		}
		sandbox := s.Sandbox("pool-00000")
		// What is the claim's by UID differs from run to run.
		uid := string(got.UID)
		for _, labels := range []map[string]string{sandbox.Labels, sandbox.Spec.PodTemplate.Metadata.Labels} {
			for key, value := range labels {
				if value == uid {
					labels[key] = "the claim's UID"
				}
			}
		}
		if owner := sandbox.OwnerReferences[0]; string(owner.UID) != uid {
			t.Errorf("the Sandbox is owned by %+v, want the claim", owner)
		}
		sandbox.ObjectMeta = metav1.ObjectMeta{Name: sandbox.Name, Labels: sandbox.Labels, Annotations: sandbox.Annotations}
		return result{got.Status, sandbox.ObjectMeta, sandbox.Spec}
	}
	want := bind(claimtest.Start(t, registrytest.StartEtcd(t)))
	if got := bind(startTwoEtcds(t)); !cmp.Equal(want, got, cmp.Transformer("empty", emptyMap)) {
		t.Errorf("in two steps (-transaction +two steps):\n%s", cmp.Diff(want, got, cmp.Transformer("empty", emptyMap)))
	}
}

func emptyMap(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	return m
}

func TestRefusedTransactionIsNotTriedAgain(t *testing.T) {
	s := claimtest.Start(t, registrytest.StartEtcd(t))
	s.AddPoolOf("pool", 2)
	requests := intercept(s)
	requests.set(func(context.Context, commit) (*clientv3.TxnResponse, error) {
		return nil, status.Error(codes.InvalidArgument, "etcdserver: unsupported operations in txn request")
	}, nil)
	for _, name := range []string{"first", "second"} {
		if got := s.MustCreate(claimtest.Claim(name, "pool")).Status.Sandbox.Name; got == "" {
			t.Errorf("the %s claim got nothing", name)
		}
	}
	if writes, _ := requests.counts(); writes != 1 {
		t.Errorf("%d transactions were tried, want 1", writes)
	}
	checkBindings(t, s, 2)
}

// TestTransactionThatIsTooLarge binds a Sandbox that fits into etcd alone, and not together with the claim.
func TestTransactionThatIsTooLarge(t *testing.T) {
	s := claimtest.Start(t, registrytest.StartEtcd(t))
	pool := s.AddPoolOf("pool", 0)
	big := claimtest.Member(pool, 0)
	big.Spec.PodTemplate.Spec.Containers[0].Args = []string{strings.Repeat("x", 1300<<10)}
	s.AddMember(big, claimtest.ReadyStatus())
	s.AwaitCandidates("pool", 1)
	claim := claimtest.Claim("claim", "pool")
	claim.Annotations = map[string]string{"example.com/big": strings.Repeat("x", 200<<10)}
	requests := intercept(s)
	if got := s.MustCreate(claim).Status.Sandbox.Name; got != "pool-00000" {
		t.Errorf("the claim got %q, want pool-00000", got)
	}
	s.AddMember(claimtest.Member(pool, 1), claimtest.ReadyStatus())
	s.AwaitCandidates("pool", 1)
	s.MustCreate(claimtest.Claim("other", "pool"))
	if writes, _ := requests.counts(); writes != 1 {
		t.Errorf("%d transactions were made, want 1, for the claim after the large one", writes)
	}
	checkBindings(t, s, 2)
}

// faultyStorage lets tests have their way with writes of a storage.
type faultyStorage struct {
	storage.Interface
	create, update func(write func() error) error
}

func (f *faultyStorage) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	write := func() error { return f.Interface.Create(ctx, key, obj, out, ttl) }
	if f.create == nil {
		return write()
	}
	return f.create(write)
}

func (f *faultyStorage) GuaranteedUpdate(ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, cached runtime.Object) error {
	write := func() error {
		return f.Interface.GuaranteedUpdate(ctx, key, destination, ignoreNotFound, preconditions, tryUpdate, cached)
	}
	if f.update == nil {
		return write()
	}
	return f.update(write)
}

// faults puts something between the binder and the storages of claims and Sandboxes.
func faults(s *claimtest.Server) (claims, sandboxes *faultyStorage) {
	claims, sandboxes = &faultyStorage{}, &faultyStorage{}
	s.Binder.WrapStorage(extensions.Resource("sandboxclaims"), func(real storage.Interface) storage.Interface {
		claims.Interface = real
		return claims
	})
	s.Binder.WrapStorage(agents.Resource("sandboxes"), func(real storage.Interface) storage.Interface {
		sandboxes.Interface = real
		return sandboxes
	})
	return claims, sandboxes
}

func TestDuplicateTakesItsReservationBack(t *testing.T) {
	s := startTwoEtcds(t)
	s.AddPoolOf("pool", 2)
	s.MustCreate(claimtest.Claim("claim", "pool"))
	if _, err := s.Create(t.Context(), claimtest.Claim("claim", "pool"), &metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("error is %v, want AlreadyExists", err)
	}
	s.AwaitCandidates("pool", 1)
	checkBindings(t, s, 1)
}

// TestReservationOfAnUnknownClaimStays loses the answer to the second step: nobody can tell whether the claim was stored.
func TestReservationOfAnUnknownClaimStays(t *testing.T) {
	s := startTwoEtcds(t)
	s.AddPoolOf("pool", 1)
	claims, _ := faults(s)
	claims.create = func(func() error) error { return errLost }
	started := time.Now().UTC().Truncate(time.Second)
	if _, err := s.Create(t.Context(), claimtest.Claim("claim", "pool"), &metav1.CreateOptions{}); !errors.Is(err, errLost) {
		t.Errorf("error is %v, want that of the storage", err)
	}
	claims.create = nil
	if got := s.MustCreate(claimtest.Claim("other", "pool")).Status.Sandbox.Name; got != "" {
		t.Errorf("another claim got %q, want nothing", got)
	}
	annotations := s.Sandbox("pool-00000").Annotations
	at, err := time.Parse(time.RFC3339, annotations[extensionsv1beta1.ReservedAtAnnotation])
	if err != nil || at.Before(started) || annotations[extensionsv1beta1.ReservedForClaimAnnotation] == "" {
		t.Errorf("annotations of the member are %v, want a reservation from now", annotations)
	}
}

// TestServerEndsBetweenTwoSteps loses the third step, as a crash would. The controller finds a claim that has a Sandbox which is not its,
// and asks for it to be bound.
func TestServerEndsBetweenTwoSteps(t *testing.T) {
	etcd, apart := registrytest.StartEtcd(t), inTwoEtcds(registrytest.StartEtcd(t))
	s := claimtest.Start(t, etcd, apart)
	s.AddPoolOf("pool", 1)
	_, sandboxes := faults(s)
	var steps atomic.Int32
	sandboxes.update = func(write func() error) error {
		if steps.Add(1) > 1 {
			return errLost
		}
		return write()
	}
	claim := s.MustCreate(claimtest.Claim("claim", "pool"))
	if claim.Status.Sandbox.Name != "pool-00000" {
		t.Errorf("the claim got %q, want pool-00000", claim.Status.Sandbox.Name)
	}
	if owner := metav1.GetControllerOf(s.Sandbox("pool-00000")); owner.Kind != "SandboxWarmPool" {
		t.Fatalf("the member is owned by %+v, want it not handed over", owner)
	}
	s.Eventually("it was tried again to hand over", func() bool { return steps.Load() > 2 })

	other := claimtest.Start(t, etcd, apart)
	got, err := other.Binder.Bind(t.Context(), claim)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(claim, got); diff != "" {
		t.Errorf("the claim changed (-before +after):\n%s", diff)
	}
	checkBindings(t, other, 1)
	annotations := other.Sandbox("pool-00000").Annotations
	if len(annotations) != 0 {
		t.Errorf("annotations of the Sandbox are %v, want none", annotations)
	}
}

func TestLostAnswerToAReservation(t *testing.T) {
	for name, made := range map[string]bool{"it was made": true, "it was not made": false} {
		t.Run(name, func(t *testing.T) {
			s := startTwoEtcds(t)
			s.AddPoolOf("pool", 1)
			_, sandboxes := faults(s)
			var steps atomic.Int32
			sandboxes.update = func(write func() error) error {
				if steps.Add(1) > 1 {
					return write()
				}
				if made {
					if err := write(); err != nil {
						return err
					}
				}
				return errLost
			}
			if _, err := s.Create(t.Context(), claimtest.Claim("claim", "pool"), &metav1.CreateOptions{}); !errors.Is(err, errLost) {
				t.Errorf("error is %v, want that of the storage", err)
			}
			s.AwaitCandidates("pool", 1)
			if got := s.MustCreate(claimtest.Claim("claim", "pool")).Status.Sandbox.Name; got != "pool-00000" {
				t.Errorf("the claim got %q, want pool-00000", got)
			}
		})
	}
}

func TestLostRaceForAReservation(t *testing.T) {
	s := startTwoEtcds(t)
	pool := s.AddPoolOf("pool", 1)
	_, sandboxes := faults(s)
	var steps atomic.Int32
	sandboxes.update = func(write func() error) error {
		if steps.Add(1) == 1 {
			touch(s, "pool", 1)
			s.AddMember(claimtest.Member(pool, 1), claimtest.ReadyStatus())
			s.Eventually("there is another candidate", func() bool { return s.Candidates("pool") > 0 })
		}
		return write()
	}
	if got := s.MustCreate(claimtest.Claim("claim", "pool")).Status.Sandbox.Name; got == "" {
		t.Error("the claim got nothing")
	}
	checkBindings(t, s, 1)
}

func TestBindInTwoSteps(t *testing.T) {
	s := startTwoEtcds(t)
	pool := s.AddPoolOf("pool", 0)
	waiting := s.MustCreate(claimtest.Claim("claim", "pool"))
	s.AddMember(claimtest.Member(pool, 0), claimtest.ReadyStatus())
	s.AwaitCandidates("pool", 1)
	got, err := s.Binder.Bind(t.Context(), waiting)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s.Claim("claim"), got); diff != "" || got.Status.Sandbox.Name != "pool-00000" {
		t.Errorf("the claim is not the bound one that was stored (-stored +got):\n%s", diff)
	}
	checkBindings(t, s, 1)
}

// goneStorage says that there is nothing.
type goneStorage struct{ storage.Interface }

func (goneStorage) Get(_ context.Context, key string, _ storage.GetOptions, _ runtime.Object) error {
	return storage.NewKeyNotFoundError(key, 0)
}

func TestPoolThatHasGoneGivesNothingInTwoSteps(t *testing.T) {
	s := startTwoEtcds(t)
	s.AddPoolOf("pool", 1)
	s.Binder.WrapStorage(extensions.Resource("sandboxwarmpools"), func(real storage.Interface) storage.Interface { return goneStorage{real} })
	before := s.Sandbox("pool-00000")
	if got := s.MustCreate(claimtest.Claim("claim", "pool")).Status.Sandbox.Name; got != "" {
		t.Errorf("the claim got %q, want nothing", got)
	}
	if diff := cmp.Diff(before, s.Sandbox("pool-00000")); diff != "" {
		t.Errorf("the member changed (-before +after):\n%s", diff)
	}
}
