// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxwarmpool

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/failure"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/namespace"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/patch"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
)

// markMembers gives members the labels that they have lost.
func (p *pass) markMembers(ctx context.Context) error {
	for _, member := range p.census.members {
		if changed := marked(p.pool, p.template, member); changed != nil {
			if _, err := p.mark(ctx, member, changed); err != nil {
				return err
			}
		}
	}
	return nil
}

// mark makes a Sandbox a member in exactly the version that was judged: a claim may have taken it meanwhile.
func (p *pass) mark(ctx context.Context, sandbox, changed *agentsv1beta1.Sandbox) (*agentsv1beta1.Sandbox, error) {
	data, err := patch.Merge(sandbox, changed, patch.SameVersion)
	if err != nil {
		return nil, fmt.Errorf("computing the patch of Sandbox %q: %w", sandbox.Name, err)
	}
	updated, err := p.config.SandboxClient.AgentsV1beta1().Sandboxes(sandbox.Namespace).
		Patch(ctx, sandbox.Name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: Name})
	if err != nil {
		return nil, fmt.Errorf("patching Sandbox %q: %w", sandbox.Name, err)
	}
	updated.ManagedFields = nil
	p.sandboxWrites.Updated(updated)
	return updated, nil
}

// addMembers adopts and makes members that are missing, as far as it is time for it, and returns after which time to go on, or 0.
func (p *pass) addMembers(ctx context.Context) (time.Duration, error) {
	if p.demand().missing() == 0 {
		p.refill.relieved()
	}
	if p.template == nil {
		return 0, nil
	}
	if err := p.adoptOrphans(ctx); err != nil {
		return 0, err
	}
	demand := p.demand()
	count, wait := p.refill.next(demand, p.config.Clock.Now())
	if count == 0 {
		return wait, nil
	}
	if err := p.confirmMembers(ctx); err != nil {
		return 0, err
	}
	asked, made, err := p.create(ctx, count)
	now := p.config.Clock.Now()
	p.refill.asked(asked, demand, now)
	if namespace.IsTerminating(err) || failure.Outdated(err) {
		return 0, err
	}
	if made > 0 || err == nil {
		p.refill.relieved()
	}
	if err != nil {
		p.refill.refused(err, now)
	}
	if more, wait := p.refill.next(p.demand(), now); more == 0 {
		return wait, err
	}
	return again, err
}

// adoptOrphans makes the pool the controller of Sandboxes that nobody controls and that are what it would make: a pool of this name may
// have been deleted and left them.
func (p *pass) adoptOrphans(ctx context.Context) error {
	objects, err := p.Controller.members.ByIndex(memberIndex, orphanKey(p.pool.Namespace, naming.Hash(p.pool.Name)))
	if err != nil {
		return fmt.Errorf("looking up orphans: %w", err)
	}
	confirmed := false
	for _, object := range objects {
		cached, ok := object.(*agentsv1beta1.Sandbox)
		if !ok || p.demand().missing() == 0 {
			return nil
		}
		orphan, _ := p.sandboxWrites.Latest(cache.MetaObjectToName(cached), cached, true)
		if metav1.GetControllerOfNoCopy(orphan) != nil || !adoptable(p.pool, p.template, orphan) {
			continue
		}
		if !confirmed {
			// One that the garbage collector has just orphaned would be deleted with the pool if that took it back.
			if _, err := p.livePool(ctx); err != nil {
				return err
			}
			confirmed = true
		}
		adopted, err := p.mark(ctx, orphan, marked(p.pool, p.template, orphan))
		if err != nil {
			return err
		}
		p.seen[adopted.Name] = adopted.UID
		p.notes[adopted.UID] = note{adoptedAt: p.config.Clock.Now()}
		p.census.add(adopted)
	}
	return nil
}

// create makes so many members, and returns how many it has asked for and got. Names that were asked for without an answer come first,
// then those that were refused: a refusal tells of the name, and would otherwise be a new one each time.
func (p *pass) create(ctx context.Context, count int) (asked, made int, err error) {
	unanswered := len(p.unanswered)
	objectNames := slices.Concat(p.unanswered, p.spare)
	for len(objectNames) < count {
		objectNames = append(objectNames, newName(p.pool))
	}
	members, errs := make([]*agentsv1beta1.Sandbox, count), make([]error, count)
	asked, err = slowly(ctx, count, func(i int) error {
		members[i], errs[i] = p.createMember(ctx, objectNames[i])
		return errs[i]
	})
	p.spare = objectNames[max(unanswered, count):]
	for i := range count {
		switch {
		case members[i] != nil:
			p.census.add(members[i])
			made++
		case i >= unanswered && i >= asked, refused(errs[i]) && !failure.Outdated(errs[i]):
			p.spare = append(p.spare, objectNames[i])
		}
	}
	return asked, made, err
}

func (p *pass) createMember(ctx context.Context, name cache.ObjectName) (*agentsv1beta1.Sandbox, error) {
	client := p.config.SandboxClient.AgentsV1beta1().Sandboxes(name.Namespace)
	p.ledger.creating(p.pool.UID, name)
	member, err := namespace.Create(p.terminating, p.pool, func() (*agentsv1beta1.Sandbox, error) {
		return client.Create(ctx, newMember(p.pool, p.template, name.Name, p.config.Evictable), metav1.CreateOptions{FieldManager: Name})
	})
	if apierrors.IsAlreadyExists(err) {
		// Either an earlier request without an answer was heard after all, or somebody else has this name.
		existing, getErr := client.Get(ctx, name.Name, metav1.GetOptions{})
		switch {
		case getErr == nil && owns(p.pool, existing):
			member, err = existing, nil
		case getErr != nil && !failure.ObjectNotFound(getErr):
			err = getErr
		}
	}
	if err != nil {
		if refused(err) {
			p.ledger.notMade(name)
		}
		return nil, fmt.Errorf("creating Sandbox %q: %w", name.Name, err)
	}
	member.ManagedFields = nil
	p.ledger.made(member)
	klog.FromContext(ctx).V(2).Info("Created member", "sandbox", klog.KObj(member), "uid", member.UID)
	return member, nil
}

// refused says that the API server has surely not made, and will not make, what it was asked for. Without its word that it will not, it may
// have, or still do so.
func refused(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return namespace.IsTerminating(err)
	}
	code := status.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError
}
