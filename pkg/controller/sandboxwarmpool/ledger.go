// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxwarmpool

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
)

// ledger holds the members that were asked for and that the cache does not show yet. A pool that looked at its cache only would make its
// members a second time. It is safe for concurrent use.
//
// Members are created under names that the controller chooses and enters before the request is sent, so that the informer cannot deliver
// one before it is entered, and so that a request without an answer can be repeated under the same name, which makes no second member.
type ledger struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	created map[cache.ObjectName]creation
}

// creation is a request to create a member. Its Sandbox is what the API server has answered, nil if there was no answer yet, or none at
// all.
type creation struct {
	pool    types.UID
	sandbox *agentsv1beta1.Sandbox
	at      time.Time
}

func newLedger(clock clock.PassiveClock) *ledger {
	return &ledger{clock: clock, created: map[cache.ObjectName]creation{}}
}

// creating notes that the pool is about to ask for a member of this name.
func (l *ledger) creating(pool types.UID, name cache.ObjectName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.created[name] = creation{pool: pool, at: l.clock.Now()}
}

// made notes the answer to such a request, unless the informer was faster.
func (l *ledger) made(sandbox *agentsv1beta1.Sandbox) {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := cache.MetaObjectToName(sandbox)
	if request, ok := l.created[name]; ok {
		request.sandbox = sandbox
		l.created[name] = request
	}
}

// notMade notes that there is no member of this name that the cache does not show.
func (l *ledger) notMade(name cache.ObjectName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.created, name)
}

// onTheWay returns the members of the pool that were made and not delivered, the names that were asked for without an answer, in order,
// and when the oldest of these requests was sent.
func (l *ledger) onTheWay(pool types.UID) (made []*agentsv1beta1.Sandbox, unanswered []cache.ObjectName, oldest time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, request := range l.created {
		if request.pool != pool {
			continue
		}
		if request.sandbox != nil {
			made = append(made, request.sandbox)
		} else {
			unanswered = append(unanswered, name)
		}
		if oldest.IsZero() || request.at.Before(oldest) {
			oldest = request.at
		}
	}
	slices.SortFunc(unanswered, func(a, b cache.ObjectName) int { return strings.Compare(a.Name, b.Name) })
	return made, unanswered, oldest
}

// confirmed notes that a live read has found these members of the pool and no others, so long after all requests that none can still
// have an effect.
func (l *ledger) confirmed(pool types.UID, members map[cache.ObjectName]*agentsv1beta1.Sandbox) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, request := range l.created {
		if request.pool != pool {
			continue
		}
		if member, exists := members[name]; exists {
			l.created[name] = creation{pool: pool, sandbox: member, at: l.clock.Now()}
		} else {
			delete(l.created, name)
		}
	}
}

// delivered notes that the informer has told of the Sandbox, be it of its coming or of its going.
func (l *ledger) delivered(sandbox *agentsv1beta1.Sandbox) {
	l.notMade(cache.MetaObjectToName(sandbox))
}

// forget notes that the pool is gone.
func (l *ledger) forget(pool types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.created, func(_ cache.ObjectName, request creation) bool { return request.pool == pool })
}
