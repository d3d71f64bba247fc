// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

// The tests of this file that are not parallel stop a program, or count what is written while nobody else writes.

// TestWarmClaimTransactions counts what a warm claim costs in our storage.
func TestWarmClaimTransactions(t *testing.T) {
	namespace := newNamespace(t)
	fillPool(t, namespace, 1)
	etcd, err := env.etcd()
	if err != nil {
		t.Fatal(err)
	}
	defer etcd.Close()
	before, err := framework.Revision(t.Context(), etcd)
	if err != nil {
		t.Fatal(err)
	}
	claim := createBound(t, namespace, "c1")
	awaitClaim(t, namespace, "c1", observed)
	awaitCondition(t, namespace, claim.Status.Sandbox.Name, v1beta1.SandboxConditionReady)
	awaitPool(t, namespace, 1)
	transactions, err := framework.Transactions(t.Context(), etcd, before)
	if err != nil {
		t.Fatal(err)
	}
	claimKey := keyPrefix + "extensions.agents.x-k8s.io/sandboxclaims/" + namespace + "/c1"
	sandboxKey := keyPrefix + "agents.x-k8s.io/sandboxes/" + namespace + "/" + claim.Status.Sandbox.Name
	var got [][]string
	for _, transaction := range transactions {
		keys := slices.DeleteFunc(transaction.Keys, func(key string) bool { return key != claimKey && key != sandboxKey })
		if slices.Sort(keys); len(keys) != 0 {
			got = append(got, keys)
		}
	}
	if len(got) == 0 || !slices.Equal(got[0], []string{sandboxKey, claimKey}) {
		t.Fatalf("the claim was not bound in one transaction: %v", got)
	}
	// The annotations of the claim follow. The Sandbox's status is that of its new generation already.
	if diff := cmp.Diff([][]string{{claimKey}}, got[1:]); diff != "" {
		t.Errorf("transactions after the request (-want +got):\n%s", diff)
	}
}

// sandboxWatch records to whom the Sandboxes of a namespace belong at every moment.
type sandboxWatch struct {
	watcher         watch.Interface
	stopping, ended chan struct{}
	// These belong to the watching goroutine until ended is closed.
	claimOf map[types.UID]types.UID
	live    map[types.UID]sets.Set[types.UID]
	most    map[types.UID]int
	errs    []error
}

// watchSandboxes begins to watch the Sandboxes of a namespace.
func watchSandboxes(t *testing.T, namespace string) *sandboxWatch {
	t.Helper()
	list, err := sandboxes(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	watcher, err := watchtools.NewRetryWatcherWithContext(t.Context(), list.ResourceVersion, &cache.ListWatch{WatchFuncWithContext: sandboxes(namespace).Watch})
	if err != nil {
		t.Fatal(err)
	}
	w := &sandboxWatch{
		watcher: watcher, stopping: make(chan struct{}), ended: make(chan struct{}),
		claimOf: map[types.UID]types.UID{}, live: map[types.UID]sets.Set[types.UID]{}, most: map[types.UID]int{},
	}
	go w.run()
	return w
}

func (w *sandboxWatch) run() {
	defer close(w.ended)
	for event := range w.watcher.ResultChan() {
		sandbox, ok := event.Object.(*v1beta1.Sandbox)
		if !ok {
			select {
			case <-w.stopping:
			default:
				w.errs = append(w.errs, fmt.Errorf("watching Sandboxes: %s %+v", event.Type, event.Object))
			}
			continue
		}
		w.observe(event.Type, sandbox)
	}
}

func (w *sandboxWatch) observe(event watch.EventType, sandbox *v1beta1.Sandbox) {
	for _, owned := range w.live {
		owned.Delete(sandbox.UID)
	}
	owner := metav1.GetControllerOf(sandbox)
	if owner == nil {
		return
	}
	if before := w.claimOf[sandbox.UID]; before != "" && before != owner.UID {
		w.errs = append(w.errs, fmt.Errorf("Sandbox %s was that of claim %s and then of %s %s", sandbox.Name, before, owner.Kind, owner.Name))
	}
	if owner.Kind == "SandboxClaim" {
		w.claimOf[sandbox.UID] = owner.UID
	}
	if event == watch.Deleted || sandbox.DeletionTimestamp != nil {
		return
	}
	if w.live[owner.UID] == nil {
		w.live[owner.UID] = sets.New[types.UID]()
	}
	w.live[owner.UID].Insert(sandbox.UID)
	w.most[owner.UID] = max(w.most[owner.UID], w.live[owner.UID].Len())
}

// check ends the watch and fails the test if an owner had more Sandboxes at once than it may have, or a Sandbox two claims. A claim
// may have one.
func (w *sandboxWatch) check(t *testing.T, pool types.UID, replicas int) {
	t.Helper()
	select {
	case <-w.ended:
		t.Error("the watch of Sandboxes ended before the test")
	default:
	}
	close(w.stopping)
	w.watcher.Stop()
	<-w.ended
	for _, err := range w.errs {
		t.Error(err)
	}
	for owner, most := range w.most {
		if allowed := map[bool]int{true: replicas, false: 1}[owner == pool]; most > allowed {
			t.Errorf("owner %s had %d Sandboxes at once, and may have %d", owner, most, allowed)
		}
	}
	if w.most[pool] == 0 {
		t.Error("the watch saw no member")
	}
}

// TestPoolSizeAcrossCrashes kills the controller while it fills a pool: what it did before counts.
func TestPoolSizeAcrossCrashes(t *testing.T) {
	namespace := newNamespace(t)
	seen := watchSandboxes(t, namespace)
	createTemplate(t, namespace)
	const replicas = 60
	pool := createPool(t, namespace, replicas)
	for _, some := range []int{replicas / 4, replicas / 2} {
		eventually(t, "a part of the members", func(ctx context.Context) error {
			if members, err := ownedBy(ctx, namespace, pool.UID); err != nil || len(members) < some {
				return errors.Join(err, fmt.Errorf("there are %d", len(members)))
			}
			return nil
		})
		restart(t, sandboxController)
	}
	awaitPool(t, namespace, replicas)
	seen.check(t, pool.UID, replicas)
}

// TestClaimsAcrossCrashes kills programs while claims are made, more of them than there are members. A watch does not outlast the server,
// so what happens in between is watched only while the controller alone is killed.
func TestClaimsAcrossCrashes(t *testing.T) {
	for name, programs := range map[string][]string{"controller": {sandboxController}, "both": {sandboxAPIServer, sandboxController}} {
		t.Run(name, func(t *testing.T) {
			namespace := newNamespace(t)
			const claimed, replicas = 60, 20
			pool := fillPool(t, namespace, replicas)
			watched := !slices.Contains(programs, sandboxAPIServer)
			var seen *sandboxWatch
			if watched {
				seen = watchSandboxes(t, namespace)
			}
			for i := range claimed {
				// A request that fails is repeated, as clients do: the name makes sure that it is one claim.
				eventually(t, "claim", func(ctx context.Context) error {
					_, err := claims(namespace).Create(ctx, framework.NewClaim(fmt.Sprintf("c%d", i), poolName), metav1.CreateOptions{})
					if apierrors.IsAlreadyExists(err) {
						return nil
					}
					return err
				})
				if i == claimed/3 || i == 2*claimed/3 {
					for _, program := range programs {
						restart(t, program)
					}
				}
			}
			owners := map[string]string{}
			for i := range claimed {
				claim := awaitClaim(t, namespace, fmt.Sprintf("c%d", i), claimReady)
				if other, taken := owners[claim.Status.Sandbox.Name]; taken {
					t.Errorf("claims %s and %s have Sandbox %s", other, claim.Name, claim.Status.Sandbox.Name)
				}
				owners[claim.Status.Sandbox.Name] = claim.Name
				if owned, err := ownedBy(t.Context(), namespace, claim.UID); err != nil || len(owned) != 1 || owned[0].Name != claim.Status.Sandbox.Name {
					t.Errorf("claim %s: %v, it has %d Sandboxes", claim.Name, err, len(owned))
				}
			}
			awaitPool(t, namespace, replicas)
			if watched {
				seen.check(t, pool.UID, replicas)
			}
		})
	}
}

// TestUsedSandboxAcrossRestarts proves that no restart makes anybody forget that a Sandbox was used.
func TestUsedSandboxAcrossRestarts(t *testing.T) {
	namespace := newNamespace(t)
	pool := fillPool(t, namespace, 1)
	used := createBound(t, namespace, "c1").Status.Sandbox.Name
	restart(t, sandboxController)
	restart(t, sandboxAPIServer)
	// The index of members is complete as soon as the server serves.
	awaitPool(t, namespace, 1)
	second := createBound(t, namespace, "c2").Status.Sandbox.Name
	if second == used {
		t.Errorf("two claims have Sandbox %s", used)
	}
	// With the label of an idle member it is not one.
	awaitPool(t, namespace, 1)
	members, err := ownedBy(t.Context(), namespace, pool.UID)
	if err != nil || len(members) != 1 {
		t.Fatalf("%v, %d members", err, len(members))
	}
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, v1beta1.WarmPoolSandboxLabel, members[0].Labels[v1beta1.WarmPoolSandboxLabel])
	if _, err := mergePatch(t.Context(), namespace, used, patch); err != nil {
		t.Fatal(err)
	}
	restart(t, sandboxController)
	for _, name := range []string{"c3", "c4"} {
		createClaim(t, namespace, name)
		if got := awaitClaim(t, namespace, name, claimReady).Status.Sandbox.Name; got == used {
			t.Errorf("claim %s has Sandbox %s", name, used)
		}
	}
}

// TestTTLAcrossRestart proves that the lifetime of a finished claim counts from its end, whoever was not there to count: it is over while
// the controller is away.
func TestTTLAcrossRestart(t *testing.T) {
	namespace := newNamespace(t)
	createTemplate(t, namespace, framework.Blueprint(func(s *v1beta1.Sandbox) { s.Spec.PodTemplate.Spec.SchedulerName = "nobody" }))
	createPool(t, namespace, 0)
	createClaim(t, namespace, "c1", func(claim *extensionsv1beta1.SandboxClaim) {
		claim.Spec.Lifecycle = &extensionsv1beta1.Lifecycle{
			TTLSecondsAfterFinished: new(int32(time.Hour / time.Second)), ShutdownPolicy: extensionsv1beta1.ClaimShutdownPolicyDelete,
		}
	})
	eventually(t, "the end of the Pod", func(ctx context.Context) error {
		_, err := env.kube.CoreV1().Pods(namespace).Patch(ctx, "c1", types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`), metav1.PatchOptions{}, "status")
		return err
	})
	claim := awaitClaim(t, namespace, "c1", func(claim *extensionsv1beta1.SandboxClaim) error {
		if !meta.IsStatusConditionTrue(claim.Status.Conditions, extensionsv1beta1.ClaimConditionFinished) {
			return fmt.Errorf("status is %+v", claim.Status)
		}
		return nil
	})
	if err := env.killProgram(t.Context(), sandboxController); err != nil {
		t.Fatal(err)
	}
	sandbox := get(t, namespace, "c1")
	for _, conditions := range [][]metav1.Condition{claim.Status.Conditions, sandbox.Status.Conditions} {
		finished := meta.FindStatusCondition(conditions, extensionsv1beta1.ClaimConditionFinished)
		finished.LastTransitionTime = metav1.NewTime(finished.LastTransitionTime.Add(-2 * time.Hour))
	}
	_, claimErr := claims(namespace).UpdateStatus(t.Context(), claim, metav1.UpdateOptions{})
	_, sandboxErr := sandboxes(namespace).UpdateStatus(t.Context(), sandbox, metav1.UpdateOptions{})
	if err := errors.Join(claimErr, sandboxErr, env.startProgram(t.Context(), sandboxController)); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, "SandboxClaim", claims(namespace).Get, "c1")
}

// runWith runs a program with more arguments until the end of the test.
func runWith(t *testing.T, program string, args ...string) {
	t.Helper()
	if err := env.killProgram(t.Context(), program); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		if err := errors.Join(env.killProgram(ctx, program), env.startProgram(ctx, program)); err != nil {
			t.Error(err)
		}
	})
	if _, err := env.cluster.Start(t.Context(), program, 1, args...); err != nil {
		t.Fatal(err)
	}
}

// TestPoolGracePeriod proves that members which never become ready are replaced after a while, unless no replacement could do better.
func TestPoolGracePeriod(t *testing.T) {
	runWith(t, sandboxController, "--sandbox-warm-pool-readiness-grace-period=3s", "--sandbox-warm-pool-unschedulable-recheck-interval=1s")
	stuck, unschedulable := newNamespace(t), newNamespace(t)
	createTemplate(t, stuck, framework.Blueprint(func(s *v1beta1.Sandbox) { s.Spec.PodTemplate.Spec.SchedulerName = "nobody" }))
	createTemplate(t, unschedulable, framework.Blueprint(func(s *v1beta1.Sandbox) {
		s.Spec.PodTemplate.Spec.NodeSelector = map[string]string{"no": "such"}
	}))
	held := createPool(t, unschedulable, 1)
	pool := createPool(t, stuck, 1)
	var first types.UID
	eventually(t, "a replacement", func(ctx context.Context) error {
		members, err := ownedBy(ctx, stuck, pool.UID)
		if err != nil || len(members) != 1 {
			return errors.Join(err, fmt.Errorf("there are %d members", len(members)))
		}
		if first == "" {
			first = members[0].UID
		}
		if members[0].UID == first {
			return errors.New("it is the first member")
		}
		return nil
	})
	eventually(t, "a warning", func(ctx context.Context) error {
		events, err := env.kube.EventsV1().Events(unschedulable).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, event := range events.Items {
			if event.Reason == "WarmPoolNotProgressing" && event.Type == corev1.EventTypeWarning && event.Regarding.UID == held.UID &&
				strings.HasPrefix(event.Note, "1/1 sandboxes are unschedulable") {
				return nil
			}
		}
		return fmt.Errorf("there are %d others", len(events.Items))
	})
	eventually(t, "the condition", func(ctx context.Context) error {
		pool, err := pools(unschedulable).Get(ctx, poolName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		got := meta.FindStatusCondition(pool.Status.Conditions, extensionsv1beta1.WarmPoolConditionProgressing)
		if got == nil || got.Status != metav1.ConditionFalse || got.Reason != extensionsv1beta1.WarmPoolReasonUnschedulable {
			return fmt.Errorf("it is %+v", got)
		}
		return nil
	})
	members, err := ownedBy(t.Context(), unschedulable, held.UID)
	if err != nil || len(members) != 1 || time.Since(members[0].CreationTimestamp.Time) < 3*time.Second {
		t.Errorf("%v, the members that find no node are %+v", err, members)
	}
}

// TestAllowedLabelDomains proves that a list of the operator's replaces the default, and that a change of it needs no restart.
func TestAllowedLabelDomains(t *testing.T) {
	file := filepath.Join(t.TempDir(), "allowed-label-domains")
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("team.example.com, other.example.com\n")
	for _, program := range []string{sandboxAPIServer, sandboxController} {
		runWith(t, program, "--allowed-label-domains-file="+file)
	}
	namespace := newNamespace(t)
	fillPool(t, namespace, 1)
	labelled := func(key string) func(*extensionsv1beta1.SandboxClaim) {
		return func(claim *extensionsv1beta1.SandboxClaim) {
			claim.Spec.AdditionalPodMetadata.Labels = map[string]string{key: "a"}
		}
	}
	_, err := claims(namespace).Create(t.Context(), framework.NewClaim("c1", poolName, labelled("sandbox.users.io/a")), metav1.CreateOptions{})
	checkStatusError(t, err, 422, "spec.additionalPodMetadata.labels", "team.example.com")
	createBound(t, namespace, "c1", labelled("team.example.com/a"))
	write("sandbox.users.io")
	eventually(t, "the other list", func(ctx context.Context) error {
		_, err := claims(namespace).Create(ctx, framework.NewClaim("c2", poolName, labelled("team.example.com/a")), dryRun())
		if err == nil {
			return errors.New("the label is still allowed")
		}
		return nil
	})
	awaitPool(t, namespace, 1)
	claim := createClaim(t, namespace, "c2", labelled("sandbox.users.io/a"))
	claim = awaitClaim(t, namespace, claim.Name, claimReady)
	if got := get(t, namespace, claim.Status.Sandbox.Name).Spec.PodTemplate.Metadata.Labels["sandbox.users.io/a"]; got != "a" {
		t.Errorf("the label is %q", got)
	}
}
