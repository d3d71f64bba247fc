// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxwarmpool

import (
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	ktesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/informer"
)

// late is a watch whose events come later than they happened.
type late struct {
	watch.Interface
	events chan watch.Event
}

func newLate(source watch.Interface, delay time.Duration) *late {
	l := &late{Interface: source, events: make(chan watch.Event, 10000)}
	go func() {
		defer close(l.events)
		for event := range source.ResultChan() {
			<-time.After(delay)
			l.events <- event
		}
	}()
	return l
}

func (l *late) ResultChan() <-chan watch.Event { return l.events }

// TestW1SizeIsExactThoughTheWatchIsLateAndTheControllerIsReplaced fills a pool through a watch that is late, by one controller after the
// other.
func TestW1SizeIsExactThoughTheWatchIsLateAndTheControllerIsReplaced(t *testing.T) {
	const size, generations = 60, 3
	byRealTime := func(config *Config) { config.Clock = clock.RealClock{} }
	server := newFixture(t, byRealTime).Server
	var live, most atomic.Int64
	server.PrependReactor("create", "sandboxes", func(ktesting.Action) (bool, runtime.Object, error) {
		most.Store(max(most.Load(), live.Add(1)))
		return false, nil, nil
	})
	server.PrependWatchReactor("sandboxes", func(action ktesting.Action) (bool, watch.Interface, error) {
		source, err := server.Tracker().Watch(action.GetResource(), action.GetNamespace())
		return true, newLate(source, 20*time.Millisecond), err
	})
	for generation := range generations {
		f := newFixture(t, byRealTime, func(config *Config) {
			config.SandboxClient, config.SandboxInformers = server, informer.NewFactory(server)
		})
		f.Server = server
		if generation == 0 {
			f.OnServer(newPool(size), newTemplate())
		}
		stop := f.Start(f.Controller.Run, 1)
		goal := int64(size * (generation + 1) / generations)
		f.Eventually("members are made", func() bool { return live.Load() >= goal })
		if generation == generations-1 {
			f.Eventually("the status is true", func() bool { return f.pool().Status.Replicas == size })
		}
		stop()
	}
	if most.Load() != size {
		t.Errorf("there were up to %d members", most.Load())
	}
}

func TestChangesReachThePoolTheyConcern(t *testing.T) {
	pool := newPool(1)
	for name, tell := range map[string]func(*fixture){
		"a member comes": func(f *fixture) { f.sandboxHandler().OnAdd(testMember("m"), false) },
		"a member goes":  func(f *fixture) { f.sandboxHandler().OnDelete(cache.DeletedFinalStateUnknown{Obj: testMember("m")}) },
		"a member is claimed": func(f *fixture) {
			f.sandboxHandler().OnUpdate(testMember("m"), testMember("m", claimed))
		},
		"an orphan comes": func(f *fixture) { f.sandboxHandler().OnAdd(testMember("m", orphaned), false) },
		"the pool comes":  func(f *fixture) { f.poolHandler().OnAdd(pool, false) },
		"the pool is edited": func(f *fixture) {
			f.poolHandler().OnUpdate(pool, newPool(2, func(pool *extensionsv1beta1.SandboxWarmPool) { pool.Generation++ }))
		},
		"the template goes": func(f *fixture) { f.templateHandler().OnDelete(newTemplate()) },
		"the template is edited": func(f *fixture) {
			f.templateHandler().OnUpdate(newTemplate(), newTemplate(image("other")))
		},
	} {
		f := newFixture(t).InCache(pool)
		tell(f)
		f.clock.Step(settling)
		f.Eventually(name, func() bool { return f.loop.Queue.Len() == 1 })
		if got, _ := f.loop.Queue.Get(); got != cache.MetaObjectToName(pool) {
			t.Errorf("%s: %v is queued", name, got)
		}
	}
}

func TestChangesThatConcernNoPoolCauseNoPass(t *testing.T) {
	pool := newPool(1)
	f := newFixture(t).InCache(pool)
	f.poolHandler().OnUpdate(pool, newPool(1, func(pool *extensionsv1beta1.SandboxWarmPool) { pool.Status.Replicas = 1 }))
	f.templateHandler().OnUpdate(newTemplate(), newTemplate(func(template *extensionsv1beta1.SandboxTemplate) { template.Labels = map[string]string{"a": "b"} }))
	f.sandboxHandler().OnAdd(testMember("m", claimed), false)
	f.sandboxHandler().OnAdd(testMember("m", orphaned, func(member *agentsv1beta1.Sandbox) { member.Labels = nil }), false)
	// Had one of them asked for a pass over the pool, that would come before this one over another.
	f.sandboxHandler().OnAdd(testMember("m", func(member *agentsv1beta1.Sandbox) { member.OwnerReferences[0].Name = "other" }), false)
	f.clock.Step(settling)
	f.Eventually("the last one", func() bool { return f.loop.Queue.Len() > 0 })
	if got, _ := f.loop.Queue.Get(); got.Name != "other" {
		t.Errorf("%v is queued", got)
	}
}
