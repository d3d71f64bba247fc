// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc/connectivity"
	"k8s.io/klog/v2"
)

// connection is what watchConnection needs of a grpc.ClientConn.
type connection interface {
	GetState() connectivity.State
	WaitForStateChange(ctx context.Context, source connectivity.State) bool
}

// watchConnection closes the fence on every change of the connection and asks for a check. Other clients of the same etcd may find
// their way to its successor before a check does.
func (f *Fence) watchConnection(ctx context.Context, conn connection) {
	for conn.WaitForStateChange(ctx, conn.GetState()) {
		f.disturb(ctx)
	}
}

func (f *Fence) disturb(ctx context.Context) {
	f.mu.Lock()
	f.disturbances++
	if f.reason == "" {
		f.setReason(ctx, "the connection to etcd was lost")
	}
	f.mu.Unlock()
	select {
	case f.disturbed <- struct{}{}:
	default:
	}
}

func (f *Fence) disturbancesSoFar() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.disturbances
}

// closedBecause returns why the fence is closed, nothing if it is open.
func (f *Fence) closedBecause() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reason
}

// open opens the fence on the strength of a check that began after the given number of disturbances. If there was one since, the next
// check decides.
func (f *Fence) open(ctx context.Context, disturbances int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.disturbances == disturbances {
		f.setReason(ctx, "")
	}
}

// close closes the fence for a reason that a later check may find gone.
func (f *Fence) close(ctx context.Context, reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.setReason(ctx, reason)
}

// closeForLoss closes the fence until somebody accepts the losses, and says how that is done.
func (f *Fence) closeForLoss(ctx context.Context, losses []finding) {
	var reasons, tokens []string
	for _, loss := range losses {
		reasons = append(reasons, loss.reason())
		tokens = append(tokens, loss.storage.seen.token())
	}
	reason := strings.Join(reasons, "; ") + "; an administrator finds in the log of the server how to accept the loss"
	if f.closedBecause() == reason {
		return
	}
	f.close(ctx, reason)
	klog.FromContext(ctx).Error(nil, "Data was lost from the storage. Put it back and restart; or accept the loss, and with it the deletion of every Pod "+
		"and PersistentVolumeClaim whose Sandbox is gone", "command", fmt.Sprintf("kubectl -n %s annotate --overwrite configmap %s %s=%s",
		f.config.ConfigMap.Namespace, f.config.ConfigMap.Name, AcceptAnnotation, strings.Join(tokens, tokenSeparator)))
}

// setReason needs mu. It logs changes alone, so that checks may repeat what they found.
func (f *Fence) setReason(ctx context.Context, reason string) {
	if f.reason == reason {
		return
	}
	f.reason = reason
	if reason == "" {
		f.closed.Set(0)
		klog.FromContext(ctx).Info("The storage is verified, requests are served", "configMap", f.config.ConfigMap)
		return
	}
	f.closed.Set(1)
	klog.FromContext(ctx).Error(nil, "The storage is fenced off, requests are refused", "reason", reason, "configMap", f.config.ConfigMap)
}
