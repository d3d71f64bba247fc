// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

const (
	sandboxes = "sandboxes.agents.x-k8s.io"
	pools     = "sandboxwarmpools.extensions.agents.x-k8s.io"
)

func TestLossOfAnyStorageIsFencedOff(t *testing.T) {
	for name, test := range map[string]struct {
		// lose makes one of the storages a lossy successor of what was recorded.
		lose func(main, other *storage, restoreMain, restoreOther func())
		want string
	}{
		"main one wiped":        {func(main, _ *storage, _, _ func()) { main.wipe() }, "the storage is"},
		"main one rolled back":  {func(_, _ *storage, restoreMain, _ func()) { restoreMain() }, "the storage was rolled back"},
		"other one wiped":       {func(_, other *storage, _, _ func()) { other.wipe() }, "the storage of " + sandboxes + " is"},
		"other one rolled back": {func(_, _ *storage, _, restoreOther func()) { restoreOther() }, "the storage of " + sandboxes + " was rolled back"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			main, other, c := startStorage(t), startStorage(t), newMainCluster(t)
			served(t, main, c, named{sandboxes, other})
			restoreMain, restoreOther := main.backUp(), other.backUp()
			served(t, main, c, named{sandboxes, other})
			before := c.configMap().Data
			test.lose(main, other, restoreMain, restoreOther)

			f, _ := newFence(t, main, c, named{sandboxes, other})
			check(t, f)
			expectClosed(t, f, test.want)
			if diff := cmp.Diff(before, c.configMap().Data); diff != "" {
				t.Errorf("record (-want +got):\n%s", diff)
			}
		})
	}
}

// acceptance returns what the log of a check tells an administrator to set the annotation to.
func acceptance(t *testing.T, f *Fence) string {
	t.Helper()
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	if err := f.check(klog.NewContext(t.Context(), logger)); err != nil {
		t.Fatal(err)
	}
	_, token, found := strings.Cut(logger.GetSink().(ktesting.Underlier).GetBuffer().String(), AcceptAnnotation+"=")
	if !found {
		t.Fatal("the log does not say how to accept the loss")
	}
	token, _, _ = strings.Cut(token, "\"")
	return token
}

// expectAcceptable checks that a server with these storages is fenced off, and that one annotation opens it for good.
func expectAcceptable(t *testing.T, c *mainCluster, because string, main *storage, others ...named) {
	t.Helper()
	f, _ := newFence(t, main, c, others...)
	token := acceptance(t, f)
	expectClosed(t, f, because)
	c.annotate(token)
	check(t, f)
	expectOpen(t, f)
	restarted, _ := newFence(t, main, c, others...)
	check(t, restarted)
	expectOpen(t, restarted)
}

func TestLossesOfTwoStoragesAreAcceptedTogether(t *testing.T) {
	t.Parallel()
	main, other, c := startStorage(t), startStorage(t), newMainCluster(t)
	served(t, main, c, named{sandboxes, other})
	main.wipe()
	other.wipe()
	expectAcceptable(t, c, "the storage of "+sandboxes, main, named{sandboxes, other})
}

// TestResourcesAreNotLookedForElsewhere has a server start with other resources in other storages than its predecessor. It would find none
// of them, as if they were lost.
func TestResourcesAreNotLookedForElsewhere(t *testing.T) {
	for name, test := range map[string]struct {
		// before and after are the names of the second storage. Without one all resources are in the first.
		before, after string
		want          string
	}{
		"moved out":     {"", sandboxes, "the record of it is missing"},
		"moved back":    {sandboxes, "", "what belongs to " + sandboxes + " was recorded to be in another one"},
		"other ones":    {sandboxes, pools, "what belongs to " + sandboxes + " was recorded to be in another one"},
		"more of them":  {sandboxes, sandboxes + "_" + pools, "the storage of " + sandboxes + ", " + pools},
		"fewer of them": {sandboxes + "_" + pools, sandboxes, "what belongs to " + sandboxes + ", " + pools + " was recorded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			main, other, c := startStorage(t), startStorage(t), newMainCluster(t)
			others := func(name string) []named {
				if name == "" {
					return nil
				}
				return []named{{name, other}}
			}
			served(t, main, c, others(test.before)...)
			expectAcceptable(t, c, test.want, main, others(test.after)...)
			want := sets.New("", test.after)
			if diff := cmp.Diff(sets.List(want), sets.List(recordedNames(c.configMap().Data))); diff != "" {
				t.Errorf("recorded storages (-want +got):\n%s", diff)
			}
		})
	}
}

// TestServerThatLooksElsewhereThanItsSuccessorEnds is about the replica that is not replaced yet while the resources move.
func TestServerThatLooksElsewhereThanItsSuccessorEnds(t *testing.T) {
	t.Parallel()
	main, other, c := startStorage(t), startStorage(t), newMainCluster(t)
	f, clock := newFence(t, main, c)
	check(t, f)
	expectAcceptable(t, c, "missing", main, named{sandboxes, other})
	main.grow(1)
	clock.Step(DefaultPeriod)
	if err := f.check(t.Context()); err == nil || !strings.Contains(err.Error(), "in another one") {
		t.Errorf("check() = %v, want that resources were recorded to be in another storage", err)
	}
}

func TestAnyStorageIsWatchedByRun(t *testing.T) {
	t.Parallel()
	main, other, c := startStorage(t), startStorage(t), newMainCluster(t)
	f, _ := newFence(t, main, c, named{sandboxes, other})
	done, _ := run(t, f)
	awaitOpen(t, f)
	other.stop()
	awaitClosed(t, f)
	other.start()
	awaitOpen(t, f)

	before := parseRecord(c.configMap().Data, sandboxes)
	other.wipe()
	if err := awaitEnd(t, done); err == nil || !strings.Contains(err.Error(), "the storage of "+sandboxes+" changed") {
		t.Errorf("Run() = %v, want that the other storage changed", err)
	}
	if got := parseRecord(c.configMap().Data, sandboxes); got.identity != before.identity {
		t.Errorf("%s is recorded, want the lost %s", got.identity, before.identity)
	}
}

// TestWritesOfAnyStorageRaiseItsMark checks that what was written to one storage alone is recorded.
func TestWritesOfAnyStorageRaiseItsMark(t *testing.T) {
	t.Parallel()
	main, other, c := startStorage(t), startStorage(t), newMainCluster(t)
	f, clock := newFence(t, main, c, named{sandboxes, other})
	check(t, f)
	before := c.recorded()
	otherBefore := parseRecord(c.configMap().Data, sandboxes)
	other.grow(3)
	clock.Step(DefaultPeriod)
	check(t, f)
	compareRecords(t, before, c.recorded())
	if got := parseRecord(c.configMap().Data, sandboxes).revision; got < otherBefore.revision+3 {
		t.Errorf("revision %d is recorded after 3 writes to revision %d", got, otherBefore.revision)
	}
}
