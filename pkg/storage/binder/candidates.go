// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package binder

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/claimedsandbox"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/sandboxtemplate"
)

// poolID tells pools apart. The name is not enough: another pool may have had it before.
type poolID struct {
	namespace string
	uid       types.UID
}

// entry is what is known of one Sandbox.
type entry struct {
	key     types.NamespacedName
	sandbox *agentsv1beta1.Sandbox
	// revision is that of sandbox, 0 if none was observed.
	revision int64
	// since is the revision from which on observations count. What was given away, or lost to another server, is not to come back because
	// a watch lags behind.
	since int64
	// picked says that somebody is about to give the Sandbox away.
	picked bool
	// fresh says whether the Sandbox follows the version freshFor of a template. It is remembered because finding out takes long.
	fresh    bool
	freshFor templateVersion

	// pool is the one that the Sandbox is a candidate of while it is one, node and at are its place there.
	pool poolID
	node *nodeCandidates
	at   int
}

type templateVersion struct {
	uid             types.UID
	resourceVersion string
}

// candidates holds the Sandboxes that can be given to claims now, by pool. It learns of them from a watch, as a store of a
// cache.Reflector. It is safe for concurrent use.
type candidates struct {
	intN func(n int) int

	mu      sync.Mutex
	entries map[types.NamespacedName]*entry
	pools   map[poolID]*spread
}

func newCandidates(intN func(n int) int) *candidates {
	return &candidates{intN: intN, entries: map[types.NamespacedName]*entry{}, pools: map[poolID]*spread{}}
}

// candidate is a Sandbox that was picked: nobody else in this process picks it until it is put back, or a newer version of it is
// observed after it was spent. Not to be changed.
type candidate struct {
	sandbox  *agentsv1beta1.Sandbox
	revision int64
	entry    *entry
}

// pick takes a candidate of the pool, or returns nil if there is none. The template is that of the pool, nil if there is none; a pool
// that recreates its members has then no candidates, and otherwise only those that follow the template.
func (c *candidates) pick(pool *extensionsv1beta1.SandboxWarmPool, template *extensionsv1beta1.SandboxTemplate) *candidate {
	mustBeFresh := sandboxtemplate.Recreates(pool)
	if mustBeFresh && template == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	members := c.pools[poolID{pool.Namespace, pool.UID}]
	if members == nil {
		return nil
	}
	var skipped []*entry
	defer func() {
		for _, e := range skipped {
			c.place(e)
		}
	}()
	for e := members.choose(c.intN); e != nil; e = members.choose(c.intN) {
		c.remove(e)
		if claimedsandbox.Adoptable(e.sandbox, pool) && (!mustBeFresh || e.follows(template)) {
			e.picked = true
			return &candidate{sandbox: e.sandbox, revision: e.revision, entry: e}
		}
		skipped = append(skipped, e)
	}
	return nil
}

func (e *entry) follows(template *extensionsv1beta1.SandboxTemplate) bool {
	if version := (templateVersion{template.UID, template.ResourceVersion}); e.freshFor != version {
		e.fresh, e.freshFor = sandboxtemplate.Fresh(template, e.sandbox), version
	}
	return e.fresh
}

// putBack makes a picked candidate one again that was not given away and has not changed.
func (c *candidates) putBack(picked *candidate) { c.settle(picked, 0) }

// spend ends the picking of a candidate that was given away, or found to have changed, at a revision. Older observations of it do not
// count any more. One at the revision, or of its deletion after that, must be about to come.
func (c *candidates) spend(picked *candidate, revision int64) { c.settle(picked, revision) }

func (c *candidates) settle(picked *candidate, since int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := picked.entry
	e.picked = false
	e.since = max(e.since, since)
	if c.entries[e.key] == e {
		c.place(e)
	}
}

// observe takes note of the current state of a Sandbox.
func (c *candidates) observe(sandbox *agentsv1beta1.Sandbox) error {
	revision, err := revisionOf(sandbox)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.note(sandbox, revision)
	return nil
}

func (c *candidates) note(sandbox *agentsv1beta1.Sandbox, revision int64) {
	key := types.NamespacedName{Namespace: sandbox.Namespace, Name: sandbox.Name}
	e := c.entries[key]
	if e == nil {
		if _, ok := candidateOf(sandbox); !ok {
			return
		}
		e = &entry{key: key}
		c.entries[key] = e
	}
	c.remove(e)
	e.sandbox, e.revision, e.freshFor = sandbox, revision, templateVersion{}
	c.place(e)
}

// forget takes note that a Sandbox is gone.
func (c *candidates) forget(sandbox *agentsv1beta1.Sandbox) error {
	revision, err := revisionOf(sandbox)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[types.NamespacedName{Namespace: sandbox.Namespace, Name: sandbox.Name}]; e != nil {
		c.drop(e, revision)
	}
	return nil
}

// replace takes note that these Sandboxes, and no others, existed at a revision.
func (c *candidates) replace(sandboxes []*agentsv1beta1.Sandbox, revision int64) error {
	revisions := make([]int64, len(sandboxes))
	exist := make(map[types.NamespacedName]bool, len(sandboxes))
	for i, sandbox := range sandboxes {
		var err error
		if revisions[i], err = revisionOf(sandbox); err != nil {
			return err
		}
		exist[types.NamespacedName{Namespace: sandbox.Namespace, Name: sandbox.Name}] = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, e := range c.entries {
		if !exist[key] {
			c.drop(e, revision)
		}
	}
	for i, sandbox := range sandboxes {
		c.note(sandbox, revisions[i])
	}
	return nil
}

// drop removes what is known of a Sandbox that was gone at a revision, unless something newer is known.
func (c *candidates) drop(e *entry, revision int64) {
	c.remove(e)
	if e.since > revision {
		e.sandbox, e.revision = nil, revision
		return
	}
	delete(c.entries, e.key)
}

// place puts an entry where it belongs: among the candidates of its pool, nowhere while it is picked or outdated, or away if there is
// nothing to know of it.
func (c *candidates) place(e *entry) {
	if e.picked || e.revision < e.since {
		return
	}
	pool, ok := candidateOf(e.sandbox)
	if !ok {
		delete(c.entries, e.key)
		return
	}
	members := c.pools[pool]
	if members == nil {
		members = newSpread()
		c.pools[pool] = members
	}
	e.pool = pool
	members.add(e)
}

// remove takes an entry out of the candidates, if it is among them.
func (c *candidates) remove(e *entry) {
	if e.node == nil {
		return
	}
	members := c.pools[e.pool]
	members.remove(e)
	if members.size == 0 {
		delete(c.pools, e.pool)
	}
}

// candidateOf returns the pool that a Sandbox could be given away from, going by what the Sandbox says.
func candidateOf(sandbox *agentsv1beta1.Sandbox) (poolID, bool) {
	owner := metav1.GetControllerOfNoCopy(sandbox)
	if owner == nil {
		return poolID{}, false
	}
	pool := &extensionsv1beta1.SandboxWarmPool{ObjectMeta: metav1.ObjectMeta{Namespace: sandbox.Namespace, Name: owner.Name, UID: owner.UID}}
	return poolID{sandbox.Namespace, owner.UID}, claimedsandbox.Adoptable(sandbox, pool) && claimedsandbox.Ready(sandbox)
}

// count is the number of candidates of one pool.
type count struct {
	pool       types.NamespacedName
	candidates int
}

// counts returns the number of candidates by the name of the pool, ordered. Members of a former pool of the name count too.
func (c *candidates) counts() []count {
	byName := map[types.NamespacedName]int{}
	c.mu.Lock()
	for id, members := range c.pools {
		owner := metav1.GetControllerOfNoCopy(members.choose(c.intN).sandbox)
		byName[types.NamespacedName{Namespace: id.namespace, Name: owner.Name}] += members.size
	}
	c.mu.Unlock()
	counts := make([]count, 0, len(byName))
	for name, candidates := range byName {
		counts = append(counts, count{name, candidates})
	}
	slices.SortFunc(counts, func(a, b count) int { return strings.Compare(a.pool.String(), b.pool.String()) })
	return counts
}

func revisionOf(sandbox *agentsv1beta1.Sandbox) (int64, error) {
	revision, err := strconv.ParseInt(sandbox.ResourceVersion, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("resourceVersion of Sandbox %s/%s: %w", sandbox.Namespace, sandbox.Name, err)
	}
	return revision, nil
}
