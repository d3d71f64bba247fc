// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package binder

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.opentelemetry.io/otel/attribute"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/component-base/tracing"
	"k8s.io/klog/v2"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/claimedsandbox"
)

const (
	// maxTries bounds how many candidates are tried for one claim. Each that is lost to another server costs a round trip to etcd, and by
	// then there is little left to give.
	maxTries = 8
	// maxTransactionBytes is the size up to which two objects go into one transaction. etcd takes 1.5 MiB unless told otherwise.
	maxTransactionBytes = 1400 << 10
	// settleTimeout bounds one attempt to find out what became of a transaction.
	settleTimeout = 2 * time.Second
)

// outcome is what became of the attempt to give a claim a Sandbox.
type outcome string

const (
	// bound means that the claim has a Sandbox.
	bound outcome = "bound"
	// noCandidate means that there was nothing to give.
	noCandidate outcome = "no_candidate"
	// lostRaces means that others were faster at all that there was to give.
	lostRaces outcome = "lost_races"
	// claimMoved means that the claim is not as it was thought to be: it exists already, or was changed.
	claimMoved outcome = "claim_changed"
	// failed means that an error was returned.
	failed outcome = "failed"
	// unknown means that an error was returned although the claim may have a Sandbox.
	unknown outcome = "unknown"
)

// request is a claim that is to get a Sandbox.
type request struct {
	// claim is as it was sent or stored. Not to be changed.
	claim *extensionsv1beta1.SandboxClaim
	// key is that of the claim in its storage.
	key string
	// revision is the one that the claim is at, 0 if it is not stored yet.
	revision int64
	offer    Offer
}

// entitlement returns what the pool of a claim has to offer, and says whether the claim may have a Sandbox of it. One that wants what a
// running Pod cannot be given may not, nor one whose time is over.
func (b *Binder) entitlement(claim *extensionsv1beta1.SandboxClaim) (Offer, bool) {
	spec := &claim.Spec
	if len(spec.Env) > 0 || len(spec.VolumeClaimTemplates) > 0 || claim.DeletionTimestamp != nil || b.expired(spec.Lifecycle) {
		return Offer{}, false
	}
	// Of a stored claim this was checked when the list of domains may have been another.
	if errs := claimedsandbox.CheckMetadata(&spec.AdditionalPodMetadata, b.labelDomains(), field.NewPath("spec", "additionalPodMetadata")); len(errs) > 0 {
		return Offer{}, false
	}
	offer := b.Offer(claim.Namespace, spec.WarmPoolRef.Name)
	return offer, offer.Pool != nil
}

func (b *Binder) expired(lifecycle *extensionsv1beta1.Lifecycle) bool {
	return lifecycle != nil && lifecycle.ShutdownTime != nil && !b.clock.Now().Before(lifecycle.ShutdownTime.Time)
}

// give gives the claim a Sandbox, and fills out with the claim as it is stored then. Unless the outcome is bound nothing was written and
// out is not filled, except that after an error nobody knows.
func (b *Binder) give(ctx context.Context, route route, r request, out *extensions.SandboxClaim) (outcome, error) {
	start := b.clock.Now()
	ctx, span := tracing.Start(ctx, "Bind claim",
		attribute.String("audit-id", audit.GetAuditIDTruncated(ctx)),
		attribute.String("key", r.key),
		attribute.String("pool", r.offer.Pool.Name),
	)
	defer span.End(500 * time.Millisecond)
	result, err := b.tryCandidates(ctx, r, out)
	span.AddEvent("Bind claim finished", attribute.String("outcome", string(result)))
	b.metrics.observe(route, result, b.clock.Since(start))
	return result, err
}

func (b *Binder) tryCandidates(ctx context.Context, r request, out *extensions.SandboxClaim) (outcome, error) {
	result := noCandidate
	for range maxTries {
		if err := ctx.Err(); err != nil {
			return failed, err
		}
		picked := b.candidates.pick(r.offer.Pool, r.offer.Template)
		if picked == nil {
			return result, nil
		}
		giveOne := b.giveAtOnce
		if b.twoSteps.Load() {
			giveOne = b.giveInTwoSteps
		}
		var err error
		result, err = giveOne(ctx, r, picked, out)
		if result != lostRaces {
			return result, err
		}
		b.metrics.lostRaces.Inc()
	}
	return result, nil
}

// giveAtOnce gives the claim the picked candidate in one transaction.
func (b *Binder) giveAtOnce(ctx context.Context, r request, picked *candidate, out *extensions.SandboxClaim) (outcome, error) {
	write, err := b.prepare(ctx, r, picked)
	if err != nil {
		b.candidates.putBack(picked)
		if rejection := (*claimedsandbox.Rejection)(nil); errors.As(err, &rejection) {
			return noCandidate, nil
		}
		return failed, err
	}
	if write.size() > maxTransactionBytes {
		return b.giveInTwoSteps(ctx, r, picked, out)
	}
	answer, err := write.commit(ctx, b.kv, claimResource)
	switch {
	case errors.Is(err, errRefused):
		return b.adjust(ctx, r, picked, out, err)
	case err != nil:
		return b.investigate(ctx, r, picked, write, err, out)
	case answer.committed:
		b.candidates.spend(picked, answer.revision)
		return bound, b.resources[claimResource].decoder.Decode(write.claim.plain, out, answer.revision)
	}
	b.settle(picked, answer.sandboxRevision)
	switch {
	case answer.claimMoved:
		return claimMoved, nil
	case answer.poolGone:
		return noCandidate, nil
	default:
		return lostRaces, nil
	}
}

// prepare returns the transaction that gives the claim the picked candidate. The error is a *claimedsandbox.Rejection if the claim
// contradicts the template.
func (b *Binder) prepare(ctx context.Context, r request, picked *candidate) (transaction, error) {
	sandbox := picked.sandbox.DeepCopy()
	if err := claimedsandbox.Adopt(sandbox, r.claim, r.offer.Template); err != nil {
		return transaction{}, err
	}
	now := b.clock.Now()
	claim := r.boundClaim(sandbox.Name, now)
	claim.Status = claimedsandbox.Status(claim, sandbox)
	ownSandbox(picked.sandbox, sandbox, now)
	ownClaim(r.claim, claim, now)

	poolRevision, err := b.resources[poolResource].storage.Versioner().ObjectResourceVersion(r.offer.Pool)
	if err != nil {
		return transaction{}, err
	}
	claims, sandboxes, pools := b.resources[claimResource], b.resources[sandboxResource], b.resources[poolResource]
	write := transaction{
		claimRevision:   r.revision,
		sandboxRevision: picked.revision,
		poolKey:         pools.etcdKey(pools.key(r.offer.Pool.Namespace, r.offer.Pool.Name)),
		poolRevision:    int64(poolRevision),
	}
	if write.claim, err = claims.encode(ctx, claims.etcdKey(r.key), claim); err != nil {
		return transaction{}, err
	}
	write.sandbox, err = sandboxes.encode(ctx, sandboxes.etcdKey(sandboxes.key(sandbox.Namespace, sandbox.Name)), sandbox)
	return write, err
}

// boundClaim returns a copy of the claim that says which Sandbox it has been given. Its status is still the old one. In the request that
// creates the claim it also says that it was seen, which tells the controller that announcing it is left to this server.
func (r request) boundClaim(sandboxName string, now time.Time) *extensionsv1beta1.SandboxClaim {
	given := annotated(r.claim, extensionsv1beta1.SandboxNameAnnotation, sandboxName)
	if r.revision == 0 {
		given.Annotations[extensionsv1beta1.ControllerFirstObservedAtAnnotation] = timestamp(now)
	}
	return given
}

// adjust gives the candidate without a transaction, after etcd has refused one. Unless that was for its size, it is the last one.
func (b *Binder) adjust(ctx context.Context, r request, picked *candidate, out *extensions.SandboxClaim, err error) (outcome, error) {
	if !errors.Is(err, rpctypes.ErrRequestTooLarge) && !b.twoSteps.Swap(true) {
		klog.FromContext(ctx).Error(err, "The storage makes no transactions of two objects; claims are bound in two steps from now on")
	}
	return b.giveInTwoSteps(ctx, r, picked, out)
}

// settle ends the picking of a candidate that was not given away. current is its revision in etcd, 0 if it is gone.
func (b *Binder) settle(picked *candidate, current int64) {
	switch current {
	case picked.revision:
		b.candidates.putBack(picked)
	case 0:
		b.candidates.spend(picked, picked.revision+1)
	default:
		b.candidates.spend(picked, current)
	}
}

// investigate finds out what became of a transaction whose answer did not come. If it was made the claim is bound, as if the answer had
// come. Otherwise the error is returned; the transaction may yet be made, and then finds the claim taken or the candidate changed if
// somebody was faster. Until it is known what became of the candidate it is given to nobody.
func (b *Binder) investigate(ctx context.Context, r request, picked *candidate, write transaction, cause error, out *extensions.SandboxClaim) (outcome, error) {
	if ctx.Err() == nil {
		look, cancel := context.WithTimeout(ctx, settleTimeout)
		defer cancel()
		found, err := b.aftermath(look, r, picked, write)
		switch {
		case err == nil && found != nil:
			*out = *found
			return bound, nil
		case err == nil:
			return unknown, cause
		}
	}
	b.later(func(ctx context.Context) error {
		_, err := b.aftermath(ctx, r, picked, write)
		return err
	})
	return unknown, cause
}

// aftermath reads the objects of a transaction, of which at least the keys are current in etcd, and settles the candidate. It returns
// the claim if it was given the candidate.
func (b *Binder) aftermath(ctx context.Context, r request, picked *candidate, write transaction) (*extensions.SandboxClaim, error) {
	response, err := b.kv.Txn(ctx).Then(
		clientv3.OpGet(write.claim.key),
		clientv3.OpGet(write.sandbox.key, clientv3.WithKeysOnly()),
	).Commit()
	if err != nil {
		return nil, err
	}
	_, current := revisions(response, 1)
	b.settle(picked, current)
	kvs := response.Responses[0].GetResponseRange().Kvs
	if len(kvs) == 0 {
		return nil, nil
	}
	claim := &extensions.SandboxClaim{}
	if err := b.resources[claimResource].decode(ctx, write.claim.key, kvs[0].Value, kvs[0].ModRevision, claim); err != nil {
		// The candidate is settled; whoever reads the claim will see this error again.
		klog.FromContext(ctx).Error(err, "Cannot decode a claim", "claim", klog.KObj(r.claim))
		return nil, nil
	}
	if claim.UID != r.claim.UID || claim.Annotations[extensionsv1beta1.SandboxNameAnnotation] != picked.sandbox.Name {
		return nil, nil
	}
	if r.revision != 0 {
		return claim, nil
	}
	// The claim may have been changed since it was created. Who watches from the answer on is to see that change: it may be the last one.
	created := &extensions.SandboxClaim{}
	return created, b.resources[claimResource].decoder.Decode(write.claim.plain, created, kvs[0].CreateRevision)
}
