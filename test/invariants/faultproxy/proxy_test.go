// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"bufio"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

const (
	// patience is how long something may take that takes a millisecond on an idle machine.
	patience = 30 * time.Second
	// moment is long enough for a line to come back that is not held.
	moment = 200 * time.Millisecond
)

// peers is a proxy with a server that answers each line in capitals, and tells of it.
type peers struct {
	*testing.T
	proxy    *Proxy
	received chan string
}

func newPeers(t *testing.T) *peers {
	backend, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { backend.Close() })
	p := &peers{T: t, received: make(chan string, 10)}
	go func() {
		for {
			conn, err := backend.Accept()
			if err != nil {
				return
			}
			go p.answer(conn)
		}
	}()
	if p.proxy, err = Listen(backend.Addr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func (p *peers) answer(conn net.Conn) {
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		p.received <- lines.Text()
		if _, err := conn.Write([]byte(strings.ToUpper(lines.Text()) + "\n")); err != nil {
			return
		}
	}
}

// client is a connection through the proxy.
type client struct {
	*peers
	conn  net.Conn
	lines *bufio.Reader
}

func (p *peers) dial() *client {
	p.Helper()
	conn, err := net.Dial("tcp", p.proxy.Address())
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { conn.Close() })
	return &client{p, conn, bufio.NewReader(conn)}
}

func (c *client) send(line string) {
	c.Helper()
	if _, err := c.conn.Write([]byte(line + "\n")); err != nil {
		c.Fatal(err)
	}
}

func (c *client) receive(within time.Duration) (string, error) {
	c.Helper()
	if err := c.conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		c.Fatal(err)
	}
	line, err := c.lines.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}

func (c *client) expect(want string) {
	c.Helper()
	if got, err := c.receive(patience); got != want || err != nil {
		c.Fatalf("got %q, %v, want %q", got, err, want)
	}
}

func (c *client) expectNothing() {
	c.Helper()
	if got, err := c.receive(moment); !errors.Is(err, os.ErrDeadlineExceeded) {
		c.Fatalf("got %q, %v, want nothing", got, err)
	}
}

func (c *client) expectEnd() {
	c.Helper()
	if got, err := c.receive(patience); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		c.Fatalf("got %q, %v, want the end of the connection", got, err)
	}
}

// expectReceived fails the test unless the server got a line.
func (p *peers) expectReceived(want string) {
	p.Helper()
	select {
	case got := <-p.received:
		if got != want {
			p.Fatalf("the server got %q, want %q", got, want)
		}
	case <-time.After(patience):
		p.Fatalf("the server did not get %q", want)
	}
}

func TestPass(t *testing.T) {
	p := newPeers(t)
	first, second := p.dial(), p.dial()
	first.send("one")
	second.send("two")
	first.expect("ONE")
	second.expect("TWO")
}

func TestDelay(t *testing.T) {
	c := newPeers(t).dial()
	c.send("one")
	c.expect("ONE")
	const delay = 50 * time.Millisecond
	c.proxy.Delay(delay)
	begin := time.Now()
	c.send("two")
	c.expect("TWO")
	// There and back.
	if took := time.Since(begin); took < 2*delay {
		t.Errorf("took %v, want at least %v", took, 2*delay)
	}
}

func TestHoldLosesNothing(t *testing.T) {
	p := newPeers(t)
	c := p.dial()
	c.send("one")
	c.expect("ONE")
	p.proxy.Hold()
	c.send("two")
	c.expectNothing()
	later := p.dial()
	later.send("three")
	later.expectNothing()
	p.proxy.Pass()
	c.expect("TWO")
	later.expect("THREE")
}

func TestLostAnswers(t *testing.T) {
	p := newPeers(t)
	c := p.dial()
	c.send("one")
	c.expect("ONE")
	p.expectReceived("one")
	p.proxy.LoseAnswers()
	c.send("two")
	p.expectReceived("two")
	c.expectNothing()
	p.proxy.Pass()
	c.expectEnd()
	again := p.dial()
	again.send("three")
	again.expect("THREE")
}

func TestAnswersAreLostOnlyWhileTheyAre(t *testing.T) {
	p := newPeers(t)
	c := p.dial()
	c.send("one")
	c.expect("ONE")
	p.proxy.LoseAnswers()
	p.proxy.Pass()
	c.send("two")
	c.expect("TWO")
}

func TestCut(t *testing.T) {
	p := newPeers(t)
	c := p.dial()
	c.send("one")
	c.expect("ONE")
	p.proxy.Cut()
	c.expectEnd()
	again := p.dial()
	again.send("two")
	again.expect("TWO")
}

func TestCutWhileHeld(t *testing.T) {
	p := newPeers(t)
	c := p.dial()
	c.send("one")
	c.expect("ONE")
	p.proxy.Hold()
	c.send("two")
	p.proxy.Cut()
	c.expectEnd()
}

func TestBackendThatIsDown(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	proxy, err := Listen(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	p := &peers{T: t, proxy: proxy}
	p.dial().expectEnd()
	if err := proxy.Close(); err != nil {
		t.Error(err)
	}
}
