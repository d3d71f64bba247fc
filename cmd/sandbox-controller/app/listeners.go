// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/klog/v2"

	"github.com/sandbox-apiserver/sandbox-apiserver/cmd/sandbox-controller/app/options"
)

// serve answers requests to the address with the handler until ctx ends. It returns once the address is bound, so that a port in
// use is an error of the start. The address "0" is served by nobody.
func serve(ctx context.Context, address string, handler http.Handler) error {
	if address == options.Disabled {
		return nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listening on %s: %w", address, err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			klog.FromContext(ctx).Error(err, "Serving failed", "address", address)
		}
	}()
	return nil
}
