// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxwarmpool

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
	"k8s.io/klog/v2"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/failure"
)

// removeMembers deletes the members that must go and those that are too many, and returns after which time to go on, or 0.
func (p *pass) removeMembers(ctx context.Context) (time.Duration, error) {
	surplus := excess(p.census.members, p.replicas())
	if len(p.census.stale)+len(surplus) > 0 {
		if err := p.confirmInputs(ctx); err != nil {
			return 0, err
		}
	}
	if len(surplus) > 0 {
		if err := p.confirmMembers(ctx); err != nil {
			return 0, err
		}
	}
	forgotten, err := p.withoutClaim(ctx, p.census.forgotten)
	if err != nil {
		return 0, err
	}
	doomed := slices.Concat(p.census.stuck, p.census.stale, forgotten, surplus)
	batch := doomed[:min(len(doomed), p.config.Limits.MaxBatchSize)]
	if err := p.deleteAll(ctx, batch); err != nil {
		return 0, err
	}
	if len(batch) < len(doomed) {
		return again, nil
	}
	return 0, nil
}

// deleteAll deletes these members, and notes which it has.
func (p *pass) deleteAll(ctx context.Context, members []*agentsv1beta1.Sandbox) error {
	deleted := make([]bool, len(members))
	_, err := slowly(ctx, len(members), func(i int) (err error) {
		deleted[i], err = p.delete(ctx, members[i])
		return err
	})
	var gone []*agentsv1beta1.Sandbox
	for i, member := range members {
		if deleted[i] {
			p.notes.edit(member.UID, func(n *note) { n.deleted = true })
			gone = append(gone, member)
		}
	}
	p.census.remove(gone)
	return err
}

// delete deletes the member in exactly the version that was judged: a claim that has taken it meanwhile keeps it. Whatever has changed it,
// there will be another pass.
func (p *pass) delete(ctx context.Context, member *agentsv1beta1.Sandbox) (bool, error) {
	err := p.config.SandboxClient.AgentsV1beta1().Sandboxes(member.Namespace).Delete(ctx, member.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &member.UID, ResourceVersion: &member.ResourceVersion},
	})
	switch {
	case err == nil:
		klog.FromContext(ctx).V(2).Info("Deleted member", "sandbox", klog.KObj(member), "uid", member.UID)
		return true, nil
	case failure.ObjectNotFound(err):
		return true, nil
	case failure.Outdated(err):
		return false, nil
	default:
		return false, fmt.Errorf("deleting Sandbox %q: %w", member.Name, err)
	}
}

// withoutClaim returns those of the members that are reserved for a claim which does not exist.
func (p *pass) withoutClaim(ctx context.Context, reserved []*agentsv1beta1.Sandbox) ([]*agentsv1beta1.Sandbox, error) {
	if len(reserved) == 0 {
		return nil, nil
	}
	claims := map[string]bool{}
	client := p.config.SandboxClient.ExtensionsV1beta1().SandboxClaims(p.pool.Namespace)
	list := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return client.List(ctx, options)
	})
	err := list.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		claim, err := meta.Accessor(object)
		if err == nil {
			claims[string(claim.GetUID())] = true
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listing the claims that members are reserved for: %w", err)
	}
	return slices.DeleteFunc(slices.Clone(reserved), func(member *agentsv1beta1.Sandbox) bool {
		return claims[member.Annotations[extensionsv1beta1.ReservedForClaimAnnotation]]
	}), nil
}
