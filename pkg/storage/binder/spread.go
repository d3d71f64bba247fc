// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package binder

// spread holds the candidates of one pool by node, so that the next one can be taken from a node with the most of them: idle members
// then stay spread over the nodes. All its operations take constant time. It is not safe for concurrent use.
type spread struct {
	size  int
	nodes map[string]*nodeCandidates
	// levels[n] holds the nodes with n candidates. The last level is not empty; level 0 is.
	levels [][]*nodeCandidates
}

// nodeCandidates are the candidates on one node.
type nodeCandidates struct {
	name    string
	entries []*entry
	// at is the place in its level.
	at int
}

func newSpread() *spread {
	return &spread{nodes: map[string]*nodeCandidates{}, levels: make([][]*nodeCandidates, 1)}
}

// add adds a candidate that is not in it.
func (s *spread) add(e *entry) {
	name := e.sandbox.Status.NodeName
	node, known := s.nodes[name]
	if !known {
		node = &nodeCandidates{name: name}
		s.nodes[name] = node
	} else {
		s.leaveLevel(node)
	}
	e.node, e.at = node, len(node.entries)
	node.entries = append(node.entries, e)
	s.enterLevel(node)
	s.size++
}

// remove removes a candidate that is in it.
func (s *spread) remove(e *entry) {
	node := e.node
	s.leaveLevel(node)
	last := node.entries[len(node.entries)-1]
	node.entries[e.at], last.at = last, e.at
	node.entries[len(node.entries)-1] = nil
	node.entries = node.entries[:len(node.entries)-1]
	e.node = nil
	if len(node.entries) == 0 {
		delete(s.nodes, node.name)
	} else {
		s.enterLevel(node)
	}
	s.size--
	for top := len(s.levels) - 1; top > 0 && len(s.levels[top]) == 0; top-- {
		s.levels = s.levels[:top]
	}
}

// choose returns any candidate of any node with the most of them, or nil if there is none. It is left to chance which, so that servers
// that choose at the same time seldom choose the same one.
func (s *spread) choose(intN func(n int) int) *entry {
	if s.size == 0 {
		return nil
	}
	fullest := s.levels[len(s.levels)-1]
	node := fullest[intN(len(fullest))]
	return node.entries[intN(len(node.entries))]
}

func (s *spread) enterLevel(node *nodeCandidates) {
	n := len(node.entries)
	for len(s.levels) <= n {
		s.levels = append(s.levels, nil)
	}
	node.at = len(s.levels[n])
	s.levels[n] = append(s.levels[n], node)
}

func (s *spread) leaveLevel(node *nodeCandidates) {
	level := s.levels[len(node.entries)]
	last := level[len(level)-1]
	level[node.at], last.at = last, node.at
	level[len(level)-1] = nil
	s.levels[len(node.entries)] = level[:len(level)-1]
}
