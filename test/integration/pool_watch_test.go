// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
)

// sandboxWatch records to whom the Sandboxes of a namespace belong at every moment.
type sandboxWatch struct {
	watcher         watch.Interface
	stopping, ended chan struct{}

	mu      sync.Mutex
	claimOf map[types.UID]types.UID
	// Of each owner: the Sandboxes that it has, those that it ever had, and how many it had at once at most.
	live, ever map[types.UID]sets.Set[types.UID]
	most       map[types.UID]int
	errs       []error
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
		claimOf: map[types.UID]types.UID{}, most: map[types.UID]int{},
		live: map[types.UID]sets.Set[types.UID]{}, ever: map[types.UID]sets.Set[types.UID]{},
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
				w.fail(fmt.Errorf("watching Sandboxes: %s %+v", event.Type, event.Object))
			}
			continue
		}
		w.observe(event.Type, sandbox)
	}
}

func (w *sandboxWatch) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errs = append(w.errs, err)
}

func (w *sandboxWatch) observe(event watch.EventType, sandbox *v1beta1.Sandbox) {
	w.mu.Lock()
	defer w.mu.Unlock()
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
		w.live[owner.UID], w.ever[owner.UID] = sets.New[types.UID](), sets.New[types.UID]()
	}
	w.live[owner.UID].Insert(sandbox.UID)
	w.ever[owner.UID].Insert(sandbox.UID)
	w.most[owner.UID] = max(w.most[owner.UID], w.live[owner.UID].Len())
}

// count returns how many Sandboxes an owner has, and how many it ever had.
func (w *sandboxWatch) count(owner types.UID) (live, ever int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.live[owner].Len(), w.ever[owner].Len()
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
