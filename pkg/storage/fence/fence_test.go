// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/kubernetes/fake"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/storage/embedded"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/storage/etcdclient"
)

const patience = 30 * time.Second

// storage is an etcd with its data directory.
type storage struct {
	t      *testing.T
	dir    string
	server *embedded.Server
}

// startStorage starts an empty etcd.
func startStorage(t *testing.T) *storage {
	t.Helper()
	// The path of the socket in it must not exceed 108 bytes.
	parent, err := os.MkdirTemp("", "fence")
	if err != nil {
		t.Fatal(err)
	}
	s := &storage{t: t, dir: parent + "/etcd"}
	t.Cleanup(func() {
		s.stop()
		if err := os.RemoveAll(parent); err != nil {
			t.Error(err)
		}
	})
	s.start()
	return s
}

func (s *storage) start() {
	s.t.Helper()
	server, err := embedded.Start(context.Background(), embedded.Config{DataDir: s.dir, UnsafeNoFsync: true})
	if err != nil {
		s.t.Fatal(err)
	}
	s.server = server
}

func (s *storage) stop() {
	if s.server != nil {
		s.server.Stop()
		s.server = nil
	}
}

// wipe loses all data.
func (s *storage) wipe() {
	s.t.Helper()
	s.stop()
	s.remove()
	s.start()
}

func (s *storage) remove() {
	s.t.Helper()
	if err := os.RemoveAll(s.dir); err != nil {
		s.t.Fatal(err)
	}
}

// backUp copies the data and returns the function that puts the copy in the place of the data.
func (s *storage) backUp() (restore func()) {
	s.t.Helper()
	s.stop()
	backup, err := os.MkdirTemp("", "backup")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := os.RemoveAll(backup); err != nil {
			s.t.Error(err)
		}
	})
	s.copy(backup+"/etcd", s.dir)
	s.start()
	return func() {
		s.t.Helper()
		s.stop()
		s.remove()
		s.copy(s.dir, backup+"/etcd")
		s.start()
	}
}

// become continues with the data of another storage that has been in use.
func (s *storage) become(other *storage) {
	s.t.Helper()
	served(s.t, other, newMainCluster(s.t))
	other.stop()
	s.stop()
	s.remove()
	s.copy(s.dir, other.dir)
	s.start()
}

func (s *storage) copy(to, from string) {
	s.t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *storage) client() *clientv3.Client {
	s.t.Helper()
	client, err := etcdclient.New(storagebackend.TransportConfig{ServerList: []string{"unix://" + s.dir + "/client.sock"}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := client.Close(); err != nil {
			s.t.Error(err)
		}
	})
	return client
}

// grow writes what a server would: objects.
func (s *storage) grow(writes int) {
	s.t.Helper()
	client := s.client()
	for i := range writes {
		if _, err := client.Put(s.t.Context(), fmt.Sprintf("/registry/sandbox-apiserver/%d", i), "object"); err != nil {
			s.t.Fatal(err)
		}
	}
}

// mainCluster is the side of kube-apiserver.
type mainCluster struct {
	t           *testing.T
	kube        *fake.Clientset
	unreachable atomic.Bool
	readOnly    atomic.Bool
	writes      atomic.Int32
}

func newMainCluster(t *testing.T) *mainCluster {
	c := &mainCluster{t: t, kube: fake.NewClientset()}
	c.kube.PrependReactor("*", "configmaps", func(action clienttesting.Action) (bool, runtime.Object, error) {
		write := action.GetVerb() != "get"
		if c.unreachable.Load() || write && c.readOnly.Load() {
			return true, nil, errors.New("connection refused")
		}
		if write {
			c.writes.Add(1)
		}
		return false, nil, nil
	})
	return c
}

func (c *mainCluster) configMap() *corev1.ConfigMap {
	c.t.Helper()
	configMap, err := c.kube.CoreV1().ConfigMaps("system").Get(context.Background(), ConfigMapName, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return configMap
}

func (c *mainCluster) recorded() record {
	c.t.Helper()
	return parseRecord(c.configMap().Data, "")
}

func (c *mainCluster) annotate(value string) {
	c.t.Helper()
	configMap := c.configMap()
	if configMap.Annotations == nil {
		configMap.Annotations = map[string]string{}
	}
	configMap.Annotations[AcceptAnnotation] = value
	if _, err := c.kube.CoreV1().ConfigMaps("system").Update(context.Background(), configMap, metav1.UpdateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// newFence returns the Fence of a server that has just started, and stores everything in s but what it stores in the others, by name.
func newFence(t *testing.T, s *storage, c *mainCluster, others ...named) (*Fence, *testingclock.FakeClock) {
	t.Helper()
	clock := testingclock.NewFakeClock(time.Unix(0, 0))
	storages := []Storage{{Client: s.client()}}
	for _, other := range others {
		storages = append(storages, Storage{Name: other.name, Client: other.storage.client()})
	}
	f, err := New(storages, c.kube.CoreV1(), Config{
		ConfigMap: types.NamespacedName{Namespace: "system", Name: ConfigMapName},
		Period:    DefaultPeriod,
	}, clock, metrics.NewKubeRegistry().Register)
	if err != nil {
		t.Fatal(err)
	}
	return f, clock
}

// named is a storage for some resources alone.
type named struct {
	name    string
	storage *storage
}

func check(t *testing.T, f *Fence) {
	t.Helper()
	if err := f.check(t.Context()); err != nil {
		t.Fatalf("the process must end: %v", err)
	}
}

func expectOpen(t *testing.T, f *Fence) {
	t.Helper()
	if err := f.Check(nil); err != nil {
		t.Fatalf("the fence is closed: %v", err)
	}
}

func expectClosed(t *testing.T, f *Fence, because string) {
	t.Helper()
	if err := f.Check(nil); err == nil || !strings.Contains(err.Error(), because) {
		t.Fatalf("the state of the fence is %v, want closed because %q", err, because)
	}
}

// served returns the record after a server has come and gone.
func served(t *testing.T, s *storage, c *mainCluster, others ...named) record {
	t.Helper()
	f, _ := newFence(t, s, c, others...)
	check(t, f)
	expectOpen(t, f)
	s.grow(3)
	for _, other := range others {
		other.storage.grow(3)
	}
	if err := f.finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c.recorded()
}

func compareRecords(t *testing.T, want, got record) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(record{}, identity{})); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
}

func TestFirstStartRecordsTheStorage(t *testing.T) {
	t.Parallel()
	s, c := startStorage(t), newMainCluster(t)
	s.grow(3) // The record may be younger than the storage.
	f, _ := newFence(t, s, c)
	expectClosed(t, f, "not been verified yet")
	check(t, f)
	expectOpen(t, f)
	got := c.recorded()
	if got.identity != f.storages[0].seen.identity || got.identity.uuid == "" || got.identity.clusterID == 0 {
		t.Errorf("identity %s is recorded, want %s", got.identity, f.storages[0].seen.identity)
	}
	if got.revision < 4 {
		t.Errorf("revision %d is recorded, want one after the 3 writes", got.revision)
	}
}

func TestFirstStartStaysClosedWithoutARecord(t *testing.T) {
	t.Parallel()
	s, c := startStorage(t), newMainCluster(t)
	c.readOnly.Store(true)
	f, _ := newFence(t, s, c)
	check(t, f)
	expectClosed(t, f, "cannot be recorded")
	c.readOnly.Store(false)
	check(t, f)
	expectOpen(t, f)
}

func TestRestart(t *testing.T) {
	t.Parallel()
	s, c := startStorage(t), newMainCluster(t)
	recorded := served(t, s, c)
	s.stop()
	s.start()
	f, _ := newFence(t, s, c)
	check(t, f)
	expectOpen(t, f)
	compareRecords(t, recorded, c.recorded())
}

func TestReplicasShareOneRecord(t *testing.T) {
	t.Parallel()
	s, c := startStorage(t), newMainCluster(t)
	one, _ := newFence(t, s, c)
	other, clock := newFence(t, s, c)
	check(t, one)
	check(t, other)
	expectOpen(t, one)
	expectOpen(t, other)
	s.grow(1)
	if err := one.finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := c.writes.Load()
	clock.Step(DefaultPeriod)
	check(t, other)
	if got := c.writes.Load() - before; got != 0 {
		t.Errorf("%d writes of what the other replica has recorded, want none", got)
	}
}

// overtakenReader has something happen before the first read of a ConfigMap.
type overtakenReader struct {
	corev1client.ConfigMapInterface
	overtake func()
	reads    int
}

func (r *overtakenReader) Get(ctx context.Context, name string, options metav1.GetOptions) (*corev1.ConfigMap, error) {
	if r.reads++; r.reads == 1 {
		r.overtake()
	}
	return r.ConfigMapInterface.Get(ctx, name, options)
}

// TestRecordMayBeNewerThanTheObservation has another replica move mark and record on when a replica has observed the storage and not yet
// read the record.
func TestRecordMayBeNewerThanTheObservation(t *testing.T) {
	for name, test := range map[string]struct{ served bool }{"replica that starts": {false}, "replica that serves": {true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := startStorage(t), newMainCluster(t)
			other, _ := newFence(t, s, c)
			check(t, other)
			f, clock := newFence(t, s, c)
			if test.served {
				check(t, f)
			}
			s.grow(1)
			clock.Step(DefaultPeriod)
			reader := &overtakenReader{ConfigMapInterface: f.ledger.configMaps, overtake: func() {
				s.grow(1)
				if err := other.finish(t.Context()); err != nil {
					t.Error(err)
				}
			}}
			f.ledger.configMaps = reader
			check(t, f)
			if reader.reads == 0 {
				t.Error("the record was not read")
			}
			expectOpen(t, f)
			check(t, f)
			expectOpen(t, f)
		})
	}
}

func TestLossIsFencedOff(t *testing.T) {
	for name, test := range map[string]struct {
		// lose makes the storage a lossy successor of the one that was recorded.
		lose func(t *testing.T, s *storage, restore func())
		want string
	}{
		"data directory is empty":   {func(_ *testing.T, s *storage, _ func()) { s.wipe() }, "but the recorded one is"},
		"data directory is a copy":  {func(_ *testing.T, _ *storage, restore func()) { restore() }, "was rolled back"},
		"copy has grown past it":    {func(_ *testing.T, s *storage, restore func()) { restore(); s.grow(50) }, "was rolled back"},
		"another storage took over": {func(t *testing.T, s *storage, _ func()) { s.become(startStorage(t)) }, "but the recorded one is"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := startStorage(t), newMainCluster(t)
			served(t, s, c)
			restore := s.backUp()
			recorded := served(t, s, c)
			test.lose(t, s, restore)

			f, _ := newFence(t, s, c)
			check(t, f)
			expectClosed(t, f, test.want)
			check(t, f)
			expectClosed(t, f, test.want)
			compareRecords(t, recorded, c.recorded())
		})
	}
}

func TestUnreadableRecordIsNotOverwritten(t *testing.T) {
	t.Parallel()
	s, c := startStorage(t), newMainCluster(t)
	served(t, s, c)
	configMap := c.configMap()
	configMap.Data = map[string]string{"uuid": "edited"}
	if _, err := c.kube.CoreV1().ConfigMaps("system").Update(t.Context(), configMap, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	f, _ := newFence(t, s, c)
	check(t, f)
	expectClosed(t, f, "unreadable")
	if diff := cmp.Diff(configMap.Data, c.configMap().Data); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
}

func TestLossIsLoggedOnceWithTheCommandThatAcceptsIt(t *testing.T) {
	t.Parallel()
	s, c := startStorage(t), newMainCluster(t)
	served(t, s, c)
	s.wipe()
	f, _ := newFence(t, s, c)
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	for range 2 {
		if err := f.check(klog.NewContext(t.Context(), logger)); err != nil {
			t.Fatal(err)
		}
	}
	command := "kubectl -n system annotate --overwrite configmap sandbox-apiserver-storage agents.x-k8s.io/accept-storage-loss=" + lossToken(t, f)
	log := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
	if got := strings.Count(log, command); got != 1 {
		t.Errorf("%d mentions of %q in two checks, want 1; the log is\n%s", got, command, log)
	}
}

// observe returns the state of the first storage.
func observe(t *testing.T, f *Fence) observation {
	t.Helper()
	observed, err := f.storages[0].marker.observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return observed
}

// lossToken returns the value that accepts the loss which keeps the fence closed.
func lossToken(t *testing.T, f *Fence) string {
	t.Helper()
	return observe(t, f).token()
}

func TestAcceptedLossOpensWithoutRestart(t *testing.T) {
	for name, lose := range map[string]func(s *storage, restore func()){
		"wiped":       func(s *storage, _ func()) { s.wipe() },
		"rolled back": func(_ *storage, restore func()) { restore() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := startStorage(t), newMainCluster(t)
			served(t, s, c)
			restore := s.backUp()
			lost := served(t, s, c)
			restoreLost := s.backUp()
			lose(s, restore)
			f, _ := newFence(t, s, c)
			check(t, f)

			c.annotate("yes")
			check(t, f)
			expectClosed(t, f, "")

			token := lossToken(t, f)
			c.annotate(token)
			check(t, f)
			expectOpen(t, f)
			if got := c.recorded(); got.identity == lost.identity || got.identity != f.storages[0].seen.identity {
				t.Errorf("after the acceptance %s is recorded, want the new identity %s and not %s", got.identity, f.storages[0].seen.identity, lost.identity)
			}
			if got, ok := c.configMap().Annotations[AcceptAnnotation]; ok {
				t.Errorf("the annotation %q is still there", got)
			}
			restarted, _ := newFence(t, s, c)
			check(t, restarted)
			expectOpen(t, restarted)

			// What is stored from here on is not in the lost data, should they turn up again.
			restoreLost()
			again, _ := newFence(t, s, c)
			check(t, again)
			expectClosed(t, again, "but the recorded one is")
		})
	}
}

func TestAcceptanceOutlivesAFailedRecord(t *testing.T) {
	t.Parallel()
	s, c := startStorage(t), newMainCluster(t)
	served(t, s, c)
	s.wipe()
	f, _ := newFence(t, s, c)
	check(t, f)
	c.annotate(lossToken(t, f))
	c.readOnly.Store(true)
	check(t, f)
	expectClosed(t, f, "cannot be recorded")
	c.readOnly.Store(false)
	check(t, f)
	expectOpen(t, f)
}

func TestStartWithoutKubeAPIServerStaysClosed(t *testing.T) {
	t.Parallel()
	s, c := startStorage(t), newMainCluster(t)
	served(t, s, c)
	c.unreachable.Store(true)
	f, _ := newFence(t, s, c)
	check(t, f)
	expectClosed(t, f, "connection refused")
	c.unreachable.Store(false)
	check(t, f)
	expectOpen(t, f)
}

func TestVerifiedStorageStaysOpenWithoutKubeAPIServer(t *testing.T) {
	t.Parallel()
	s, c := startStorage(t), newMainCluster(t)
	f, clock := newFence(t, s, c)
	check(t, f)
	c.unreachable.Store(true)
	s.grow(1)
	clock.Step(DefaultPeriod)
	check(t, f)
	expectOpen(t, f)

	c.unreachable.Store(false)
	before := c.recorded().revision
	clock.Step(DefaultPeriod)
	check(t, f)
	if got := c.recorded().revision; got <= before {
		t.Errorf("revision %d is recorded once kube-apiserver is back, want more than %d", got, before)
	}
}

func TestHighWaterMarkIsWrittenOnceAPeriodIfItMoved(t *testing.T) {
	t.Parallel()
	s, c := startStorage(t), newMainCluster(t)
	f, clock := newFence(t, s, c)
	check(t, f)
	pass := func(duration time.Duration, grow int) int32 {
		before := c.writes.Load()
		for range duration / checkPeriod {
			s.grow(grow)
			clock.Step(checkPeriod)
			check(t, f)
		}
		return c.writes.Load() - before
	}
	if got := pass(3*DefaultPeriod, 2); got != 3 {
		t.Errorf("%d writes in 3 busy periods, want 3", got)
	}
	if got := pass(3*DefaultPeriod, 0); got != 0 {
		t.Errorf("%d writes in 3 idle periods, want none", got)
	}
	s.grow(1)
	if got := pass(3*DefaultPeriod, 0); got != 1 {
		t.Errorf("%d writes in 3 periods after a single change, want 1", got)
	}
	observed := observe(t, f)
	compareRecords(t, record{identity: observed.identity, revision: observed.revision}, c.recorded())
}

func TestDeletedRecordIsWrittenAgain(t *testing.T) {
	t.Parallel()
	s, c := startStorage(t), newMainCluster(t)
	f, clock := newFence(t, s, c)
	check(t, f)
	if err := c.kube.CoreV1().ConfigMaps("system").Delete(t.Context(), ConfigMapName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.grow(1)
	clock.Step(DefaultPeriod)
	check(t, f)
	expectOpen(t, f)
	if got := c.recorded().identity; got != f.storages[0].seen.identity {
		t.Errorf("%s is recorded, want %s", got, f.storages[0].seen.identity)
	}
}

func TestRecordOfAnotherStorageEndsTheProcess(t *testing.T) {
	t.Parallel()
	s, c := startStorage(t), newMainCluster(t)
	f, clock := newFence(t, s, c)
	check(t, f)
	foreign := record{identity: storageA, revision: 1}
	if err := f.ledger.write(t.Context(), c.configMap(), foreign.data("")); err != nil {
		t.Fatal(err)
	}
	s.grow(1)
	clock.Step(DefaultPeriod)
	if err := f.check(t.Context()); err == nil {
		t.Error("the process goes on, want an error")
	}
	expectClosed(t, f, "no longer the recorded one")
	compareRecords(t, foreign, c.recorded())
}

func TestMetric(t *testing.T) {
	t.Parallel()
	s, c := startStorage(t), newMainCluster(t)
	f, _ := newFence(t, s, c)
	registry := metrics.NewKubeRegistry()
	registry.MustRegister(f.closed)
	expect := func(value int) {
		t.Helper()
		want := fmt.Sprintf(`
# HELP sandbox_apiserver_storage_fence_closed [ALPHA] 1 while requests are refused because the storage is not known to hold all that it once held, else 0.
# TYPE sandbox_apiserver_storage_fence_closed gauge
sandbox_apiserver_storage_fence_closed %d
`, value)
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "sandbox_apiserver_storage_fence_closed"); err != nil {
			t.Error(err)
		}
	}
	expect(1)
	check(t, f)
	expect(0)
	f.disturb(t.Context())
	expect(1)
}

// run runs the fence and returns its end, as Run reports it, and the function that asks for it.
func run(t *testing.T, f *Fence) (<-chan error, context.CancelFunc) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		done <- f.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-finished
	})
	return done, cancel
}

func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		return condition(), nil
	})
	if err != nil {
		t.Fatalf("waiting until %s: %v", what, err)
	}
}

func awaitOpen(t *testing.T, f *Fence) {
	t.Helper()
	await(t, "the fence is open", func() bool { return f.Check(nil) == nil })
}

func awaitClosed(t *testing.T, f *Fence) {
	t.Helper()
	await(t, "the fence is closed", func() bool { return f.Check(nil) != nil })
}

func awaitEnd(t *testing.T, done <-chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		t.Fatal("Run goes on")
		return nil
	}
}

func TestRunRecordsAtShutdown(t *testing.T) {
	t.Parallel()
	s, c := startStorage(t), newMainCluster(t)
	f, _ := newFence(t, s, c)
	done, shutDown := run(t, f)
	awaitOpen(t, f)
	before := c.recorded().revision
	s.grow(3)
	shutDown()
	if err := awaitEnd(t, done); err != nil {
		t.Errorf("Run() = %v, want nil", err)
	}
	if got := c.recorded().revision; got < before+3 {
		t.Errorf("revision %d is recorded after 3 writes to revision %d", got, before)
	}
}

func TestLostConnectionClosesUntilTheSameStorageAnswers(t *testing.T) {
	t.Parallel()
	s, c := startStorage(t), newMainCluster(t)
	f, _ := newFence(t, s, c)
	done, shutDown := run(t, f)
	awaitOpen(t, f)
	s.stop()
	awaitClosed(t, f)
	s.start()
	awaitOpen(t, f)
	shutDown()
	if err := awaitEnd(t, done); err != nil {
		t.Errorf("Run() = %v, want nil", err)
	}
}

func TestReplacedStorageEndsRun(t *testing.T) {
	t.Parallel()
	s, c := startStorage(t), newMainCluster(t)
	f, _ := newFence(t, s, c)
	done, _ := run(t, f)
	awaitOpen(t, f)
	recorded := c.recorded()
	s.wipe()
	if err := awaitEnd(t, done); err == nil {
		t.Error("Run() = nil, want the loss")
	}
	expectClosed(t, f, "changed under the running server")
	if got := c.recorded().identity; got != recorded.identity {
		t.Errorf("%s is recorded, want the lost %s", got, recorded.identity)
	}
}

// The marker survives a rollback by less than a period: only the server that saw the lost writes knows of them.
func TestRollbackWithinAPeriodKeepsTheNextProcessClosed(t *testing.T) {
	t.Parallel()
	s, c := startStorage(t), newMainCluster(t)
	f, _ := newFence(t, s, c)
	check(t, f)
	restore := s.backUp()
	s.grow(3)
	check(t, f)
	restore()

	c.unreachable.Store(true)
	check(t, f)
	expectClosed(t, f, "cannot be recorded")
	c.unreachable.Store(false)
	if err := f.check(t.Context()); err == nil {
		t.Error("the process goes on, want an error")
	}
	next, _ := newFence(t, s, c)
	check(t, next)
	expectClosed(t, next, "was rolled back")
}

func TestLostStorageIsNotServedFromAgainByTheSameProcess(t *testing.T) {
	t.Parallel()
	s, c := startStorage(t), newMainCluster(t)
	f, _ := newFence(t, s, c)
	check(t, f)
	restore := s.backUp()
	s.wipe()
	c.unreachable.Store(true)
	check(t, f)
	restore()
	check(t, f)
	expectClosed(t, f, "changed under the running server")

	c.unreachable.Store(false)
	if err := f.check(t.Context()); err == nil {
		t.Error("the process goes on, want an error")
	}
	next, _ := newFence(t, s, c)
	check(t, next)
	expectOpen(t, next)
}

// The watch caches of the process have listed the wrong storage.
func TestStoragePutBackBehindAClosedFenceEndsTheProcess(t *testing.T) {
	t.Parallel()
	s, c := startStorage(t), newMainCluster(t)
	served(t, s, c)
	restore := s.backUp()
	s.wipe()
	f, _ := newFence(t, s, c)
	check(t, f)
	expectClosed(t, f, "but the recorded one is")
	restore()
	if err := f.check(t.Context()); err == nil {
		t.Error("the process goes on, want an error")
	}
	expectClosed(t, f, "changed under the running server")
	next, _ := newFence(t, s, c)
	check(t, next)
	expectOpen(t, next)
}
