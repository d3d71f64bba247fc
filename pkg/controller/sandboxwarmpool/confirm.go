// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxwarmpool

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/failure"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/recent"
)

// confirmMembers makes sure, once in the life of the process, that this pass knows all members that the server has: another process may
// have made some just before. It returns ErrStale if it does not.
func (p *pass) confirmMembers(ctx context.Context) error {
	if p.confirmed {
		return nil
	}
	live, err := p.liveMembers(ctx)
	if err != nil {
		return err
	}
	for name := range live {
		if _, seen := p.seen[name.Name]; !seen {
			return failure.ErrStale
		}
	}
	p.confirmed = true
	return nil
}

// findLost looks on the server for members that were made and do not arrive, and returns when it is to look again, or 0. They may have
// been deleted while the watch was interrupted, which nothing tells then.
func (p *pass) findLost(ctx context.Context) (time.Duration, error) {
	_, _, oldest := p.ledger.onTheWay(p.pool.UID)
	if oldest.IsZero() {
		return 0, nil
	}
	if left := recent.CreationTimeout - p.config.Clock.Since(oldest); left > 0 {
		return left, nil
	}
	live, err := p.liveMembers(ctx)
	if err != nil {
		return 0, err
	}
	p.ledger.confirmed(p.pool.UID, live)
	return recent.CreationTimeout, nil
}

// liveMembers lists the members on the server.
func (p *pass) liveMembers(ctx context.Context) (map[cache.ObjectName]*agentsv1beta1.Sandbox, error) {
	live := map[cache.ObjectName]*agentsv1beta1.Sandbox{}
	client := p.config.SandboxClient.AgentsV1beta1().Sandboxes(p.pool.Namespace)
	list := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return client.List(ctx, options)
	})
	err := list.EachListItem(ctx, metav1.ListOptions{LabelSelector: selector(p.pool)}, func(object runtime.Object) error {
		if sandbox, ok := object.(*agentsv1beta1.Sandbox); ok && owns(p.pool, sandbox) && sandbox.DeletionTimestamp == nil {
			sandbox.ManagedFields = nil
			live[cache.MetaObjectToName(sandbox)] = sandbox
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing the members: %w", err)
	}
	return live, nil
}

// confirmInputs returns ErrStale unless pool and template are on the server what they are in the cache.
func (p *pass) confirmInputs(ctx context.Context) error {
	pool, err := p.livePool(ctx)
	if err != nil {
		return err
	}
	if pool.Generation != p.pool.Generation {
		return failure.ErrStale
	}
	template, err := p.config.SandboxClient.ExtensionsV1beta1().SandboxTemplates(p.pool.Namespace).
		Get(ctx, p.pool.Spec.SandboxTemplateRef.Name, metav1.GetOptions{})
	switch {
	case failure.ObjectNotFound(err) && p.template == nil:
		return nil
	case failure.ObjectNotFound(err):
		return failure.ErrStale
	case err != nil:
		return fmt.Errorf("getting the SandboxTemplate: %w", err)
	case p.template == nil || template.UID != p.template.UID || template.Generation != p.template.Generation:
		return failure.ErrStale
	}
	return nil
}

// livePool reads the pool from its server. It returns ErrStale if that has no such pool, or has it only to delete it.
func (p *pass) livePool(ctx context.Context) (*extensionsv1beta1.SandboxWarmPool, error) {
	pool, err := p.config.SandboxClient.ExtensionsV1beta1().SandboxWarmPools(p.pool.Namespace).Get(ctx, p.pool.Name, metav1.GetOptions{})
	switch {
	case failure.ObjectNotFound(err):
		return nil, failure.ErrStale
	case err != nil:
		return nil, fmt.Errorf("getting the SandboxWarmPool: %w", err)
	case pool.UID != p.pool.UID || pool.DeletionTimestamp != nil:
		return nil, failure.ErrStale
	}
	return pool, nil
}
