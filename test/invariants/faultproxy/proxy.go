// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package faultproxy passes TCP connections on, and spoils them when it is told to: what a network and a loaded server may do to the
// requests of a client, whatever protocol it speaks.
package faultproxy

import (
	"errors"
	"net"
	"sync"
	"time"
)

// Proxy listens on the loopback interface and passes connections on to one address. Its methods may be called at any time. A fault
// lasts until another method replaces it, and concerns connections that are made meanwhile too.
type Proxy struct {
	listener net.Listener
	backend  string
	running  sync.WaitGroup

	mu          sync.Mutex
	fault       fault
	connections map[*connection]struct{}
	closed      bool
}

// fault is what happens to bytes that have arrived and are to be passed on. The zero value does nothing to them.
type fault struct {
	// delay is how long they are kept.
	delay time.Duration
	// held keeps them until it is closed.
	held chan struct{}
	// loseAnswers drops those that come from the backend.
	loseAnswers bool
}

// Listen starts a proxy for a backend, which need not listen yet.
func Listen(backend string) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: listener, backend: backend, connections: map[*connection]struct{}{}}
	p.running.Go(p.accept)
	return p, nil
}

// Address returns where the proxy listens, as host:port.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Pass ends a fault. Connections of which answers were lost are cut: what would follow on them could not be understood.
func (p *Proxy) Pass() { p.set(fault{}) }

// Delay keeps everything back for some time, in both directions.
func (p *Proxy) Delay(delay time.Duration) { p.set(fault{delay: delay}) }

// Hold passes nothing on in either direction, and loses nothing: it arrives when the fault ends.
func (p *Proxy) Hold() { p.set(fault{held: make(chan struct{})}) }

// LoseAnswers lets requests through and drops the answers: the client cannot know what became of them.
func (p *Proxy) LoseAnswers() { p.set(fault{loseAnswers: true}) }

// Cut closes all connections. What was on the way in them is lost or not.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.connections {
		c.close()
	}
}

// Close ends all connections and the listener, and returns when nothing of the proxy runs any more.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	err := p.listener.Close()
	p.Cut()
	p.running.Wait()
	return err
}

func (p *Proxy) set(f fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault.held != nil {
		close(p.fault.held)
	}
	p.fault = f
	for c := range p.connections {
		if c.spoilt && !f.loseAnswers {
			c.close()
		}
	}
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // Of that one connection, which was gone before it was accepted.
		}
		p.running.Go(func() { p.serve(client) })
	}
}

func (p *Proxy) serve(client net.Conn) {
	defer client.Close()
	backend, err := net.Dial("tcp", p.backend)
	if err != nil {
		return
	}
	c := &connection{proxy: p, client: client, backend: backend, closed: make(chan struct{})}
	defer c.close()
	if !p.add(c) {
		return
	}
	defer p.remove(c)
	var copying sync.WaitGroup
	copying.Go(c.passRequests)
	copying.Go(c.passAnswers)
	copying.Wait()
}

func (p *Proxy) add(c *connection) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.connections[c] = struct{}{}
	}
	return !p.closed
}

func (p *Proxy) remove(c *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.connections, c)
}

// connection is that of a client, and the one that was made for it to the backend.
type connection struct {
	proxy           *Proxy
	client, backend net.Conn
	closing         sync.Once
	closed          chan struct{}
	// spoilt says that answers were lost. The proxy's lock guards it.
	spoilt bool
}

func (c *connection) close() {
	c.closing.Do(func() {
		close(c.closed)
		// Whether they were closed already is of no interest.
		_ = c.client.Close()
		_ = c.backend.Close()
	})
}

func (c *connection) passRequests() {
	c.pass(c.client, c.backend, func() bool { return true })
}

func (c *connection) passAnswers() {
	c.pass(c.backend, c.client, func() bool {
		c.proxy.mu.Lock()
		defer c.proxy.mu.Unlock()
		c.spoilt = c.spoilt || c.proxy.fault.loseAnswers
		return !c.spoilt
	})
}

// pass copies from one end to the other what keep wants, until either ends.
func (c *connection) pass(from, to net.Conn, keep func() bool) {
	defer c.close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && c.wait() && keep() {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// wait keeps bytes as long as the present fault says, and returns false if the connection ended meanwhile.
func (c *connection) wait() bool {
	c.proxy.mu.Lock()
	present := c.proxy.fault
	c.proxy.mu.Unlock()
	switch {
	case present.held != nil:
		select {
		case <-present.held:
		case <-c.closed:
			return false
		}
	case present.delay > 0:
		timer := time.NewTimer(present.delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-c.closed:
			return false
		}
	}
	return true
}
