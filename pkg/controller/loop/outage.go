// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
)

// probeInterval is how often one of the objects is tried whose passes failed because a server was away. It is about how late its return is
// noticed, and all that the others have to wait for.
const probeInterval = 2 * time.Second

// outage holds the objects whose last pass failed because a server was away. Each of them is tried less and less often, so that without it
// an object would wait about as long again as the server was away, up to the longest delay. Therefore one of them at a time is tried at
// short intervals; as soon as one has got an answer, all others are due. It is safe for concurrent use.
type outage struct {
	mu sync.Mutex
	// waiting are the names, without duplicates, that of the one which has waited longest for a try first.
	waiting []cache.ObjectName
	known   map[cache.ObjectName]bool
}

func newOutage() *outage { return &outage{known: map[cache.ObjectName]bool{}} }

// failed notes that a pass over the object failed because a server was away.
func (o *outage) failed(name cache.ObjectName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.known[name] {
		o.known[name] = true
		o.waiting = append(o.waiting, name)
	}
}

// ended notes that a pass over the object did not fail for that. If the one before it did, the server is back: then it returns all others
// that have waited for it, and forgets them.
func (o *outage) ended(name cache.ObjectName) []cache.ObjectName {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.known[name] {
		return nil
	}
	others := slices.DeleteFunc(o.waiting, func(other cache.ObjectName) bool { return other == name })
	o.waiting, o.known = nil, map[cache.ObjectName]bool{}
	return others
}

// probe returns the object to try next, if there is one.
func (o *outage) probe() (name cache.ObjectName, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waiting) == 0 {
		return name, false
	}
	name = o.waiting[0]
	o.waiting = append(o.waiting[1:], name)
	return name, true
}
