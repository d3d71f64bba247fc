// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/component-base/metrics"
)

// retryAfterSeconds is the delay suggested to clients whose stream is refused for want of room.
const retryAfterSeconds = 1

var errShuttingDown = errors.New("the server is shutting down")

// Streams keeps count of the open streams, bounds their number and ends them at shutdown. That is not left to http.Server, which
// forgets a connection once it is hijacked. Streams is safe for concurrent use.
type Streams struct {
	limit int
	open  *metrics.Gauge

	// ended is done when the streams still open are to be cut off.
	ended context.Context
	end   context.CancelCauseFunc

	mu       sync.Mutex
	count    int
	draining bool
	handlers sync.WaitGroup
}

// NewStreams returns a Streams that lets at most limit streams be open at a time, any number if limit is 0. It exposes
// their number as the metric sandbox_apiserver_open_streams, which it hands to register.
func NewStreams(limit int, register func(metrics.Registerable) error) (*Streams, error) {
	open := metrics.NewGauge(&metrics.GaugeOpts{
		Namespace:      "sandbox_apiserver",
		Name:           "open_streams",
		Help:           "Number of streams to Pods (exec and its like) that are open.",
		StabilityLevel: metrics.ALPHA,
	})
	if err := register(open); err != nil {
		return nil, fmt.Errorf("registering the metric of open streams: %w", err)
	}
	ended, end := context.WithCancelCause(context.Background())
	return &Streams{limit: limit, open: open, ended: ended, end: end}, nil
}

// Shutdown refuses new streams and waits for the open ones to be ended by their clients. When ctx is done first it cuts off those
// that are left and returns the error of ctx. In either case no stream is open when it returns.
func (s *Streams) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()

	drained := make(chan struct{})
	go func() {
		s.handlers.Wait()
		close(drained)
	}()
	select {
	case <-drained:
		return nil
	case <-ctx.Done():
		s.end(errShuttingDown)
		<-drained
		return ctx.Err()
	}
}

// begin admits a stream. The returned context is done when the stream must end; the returned function must be called when it has.
// The error is an API error: 503 during shutdown, 429 at the limit.
func (s *Streams) begin(ctx context.Context) (context.Context, func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return nil, nil, apierrors.NewServiceUnavailable(errShuttingDown.Error())
	}
	if s.limit > 0 && s.count >= s.limit {
		return nil, nil, apierrors.NewTooManyRequests(fmt.Sprintf("the server has its maximum of %d streams open", s.limit), retryAfterSeconds)
	}
	s.count++
	s.open.Inc()
	s.handlers.Add(1)

	ctx, cancel := context.WithCancelCause(ctx)
	detach := context.AfterFunc(s.ended, func() { cancel(context.Cause(s.ended)) })
	return ctx, func() {
		detach()
		cancel(nil)
		s.mu.Lock()
		s.count--
		s.mu.Unlock()
		s.open.Dec()
		s.handlers.Done()
	}, nil
}

// closingWriter closes the connection to the client when ctx is done, if it has been hijacked by then. Closing that to the
// backend would not do: a copy that is blocked in writing to a client which does not read would never notice.
type closingWriter struct {
	http.ResponseWriter
	ctx context.Context
}

// Hijack implements http.Hijacker.
func (w *closingWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	closeWith(w.ctx, conn)
	return conn, buffered, nil
}

// closeWith closes conn when ctx is done.
func closeWith(ctx context.Context, conn net.Conn) {
	context.AfterFunc(ctx, func() { _ = conn.Close() })
}
