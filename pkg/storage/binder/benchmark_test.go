// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package binder_test

import (
	"strconv"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/claimtest"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/registrytest"
)

// managed gives objects the managedFields that they have when they come through the generic handlers.
var (
	claimFields = metav1.ManagedFieldsEntry{
		Manager: "client", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "extensions.agents.x-k8s.io/v1beta1",
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:warmPoolRef":{"f:name":{}}}}`),
	}
	memberFields = metav1.ManagedFieldsEntry{
		Manager: "sandbox-controller", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "agents.x-k8s.io/v1beta1",
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{".":{},"f:agents.x-k8s.io/created-by":{},` +
			`"f:agents.x-k8s.io/launch-type":{},"f:agents.x-k8s.io/sandbox-template-ref-hash":{},"f:agents.x-k8s.io/warm-pool-sandbox":{}},` +
			`"f:ownerReferences":{".":{}}},"f:spec":{"f:operatingMode":{},"f:podTemplate":{"f:metadata":{"f:annotations":{".":{},` +
			`"f:cluster-autoscaler.kubernetes.io/safe-to-evict":{}},"f:labels":{".":{},"f:app":{}}},"f:spec":{` +
			`"f:automountServiceAccountToken":{},"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:command":{},"f:image":{},"f:name":{},` +
			`"f:resources":{}}},"f:dnsPolicy":{}}},"f:shutdownPolicy":{}}}`),
	}
	statusFields = metav1.ManagedFieldsEntry{
		Manager: "sandbox-controller", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "agents.x-k8s.io/v1beta1",
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:conditions":{},"f:nodeName":{},"f:podIPs":{},"f:serviceFQDN":{}}}`),
		Subresource: "status",
	}
)

func managedClaim(name, pool string) *extensions.SandboxClaim {
	claim := claimtest.Claim(name, pool)
	claim.ManagedFields = []metav1.ManagedFieldsEntry{claimFields}
	return claim
}

func managedMember(pool *extensions.SandboxWarmPool, i int) *agents.Sandbox {
	sandbox := claimtest.Member(pool, i)
	sandbox.ManagedFields = []metav1.ManagedFieldsEntry{memberFields, statusFields}
	return sandbox
}

// BenchmarkCreate creates claims that are bound and claims that are not: the difference is the price of binding.
func BenchmarkCreate(b *testing.B) {
	for name, bind := range map[string]bool{"bound": true, "plain": false} {
		for _, workers := range []int{1, 8} {
			b.Run(name+"-"+strconv.Itoa(workers), func(b *testing.B) {
				s := claimtest.Start(b, registrytest.StartEtcd(b))
				pool := s.AddPoolOf("pool", 0)
				if bind {
					for i := range b.N {
						s.AddMember(managedMember(pool, i), claimtest.ReadyStatus())
					}
					s.AwaitCandidates("pool", b.N)
				}
				var waiting atomic.Int32
				b.ResetTimer()
				inParallel(workers, b.N, func(_, i int) {
					if s.MustCreate(managedClaim("claim-"+strconv.Itoa(i), "pool")).Status.Sandbox.Name == "" {
						waiting.Add(1)
					}
				})
				b.StopTimer()
				if got := int(waiting.Load()) == 0; got != bind {
					b.Errorf("%d of %d claims were not bound", waiting.Load(), b.N)
				}
			})
		}
	}
}
