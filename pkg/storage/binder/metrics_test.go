// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package binder_test

import (
	"net/http"
	"strings"
	"testing"

	"k8s.io/component-base/metrics/testutil"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/claimtest"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/registrytest"
)

// TestMetricsTellHowBindingGoes binds a claim, loses a race for a member, and finds a pool empty.
func TestMetricsTellHowBindingGoes(t *testing.T) {
	s := claimtest.Start(t, registrytest.StartEtcd(t))
	pool := s.AddPoolOf("pool", 1)
	s.AddPoolOf("full", 2)
	intercept(s).set(before(1, func() {
		s.Delete(s.Sandboxes, "pool-00000")
		s.AddMember(claimtest.Member(pool, 1), claimtest.ReadyStatus())
		s.AwaitCandidates("pool", 1)
	}), nil)
	s.MustCreate(claimtest.Claim("bound", "pool"))
	s.MustCreate(claimtest.Claim("waiting", "pool"))
	s.MustCreate(claimtest.Claim("poolless", "none"))

	if err := testutil.GatherAndCompare(s.Registry, strings.NewReader(`
# HELP sandbox_apiserver_claim_bind_lost_races_total [ALPHA] Number of Sandboxes that were about to be given to a claim and turned out to have changed.
# TYPE sandbox_apiserver_claim_bind_lost_races_total counter
sandbox_apiserver_claim_bind_lost_races_total 1
# HELP sandbox_apiserver_claim_candidates [ALPHA] Number of Sandboxes of a warm pool that can be given to claims now. Pools beyond the first thousand are added up under no name.
# TYPE sandbox_apiserver_claim_candidates gauge
sandbox_apiserver_claim_candidates{namespace="test",warmpool="full"} 2
`), "sandbox_apiserver_claim_bind_lost_races_total", "sandbox_apiserver_claim_candidates"); err != nil {
		t.Error(err)
	}
	families, err := s.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]uint64{}
	for _, family := range families {
		if family.GetName() == "sandbox_apiserver_claim_bind_duration_seconds" {
			for _, metric := range family.GetMetric() {
				got[metric.GetLabel()[0].GetValue()+" "+metric.GetLabel()[1].GetValue()] = metric.GetHistogram().GetSampleCount()
			}
		}
	}
	if got["bound create"] != 1 || got["no_candidate create"] != 1 || len(got) != 2 {
		t.Errorf("outcomes are %v, want one claim bound and one without candidate", got)
	}
}

func TestServerIsReadyWhenItKnowsWhatThereIs(t *testing.T) {
	s := claimtest.New(t, registrytest.StartEtcd(t))
	if err := s.Binder.Check(&http.Request{}); err == nil {
		t.Error("a binder that was told nothing yet is ready")
	}
	if got := s.MustCreate(claimtest.Claim("early", "pool")).Status.Sandbox.Name; got != "" {
		t.Errorf("a claim got %q from a binder that knows nothing", got)
	}
	s.Run()
	if err := s.Binder.Check(&http.Request{}); err != nil {
		t.Errorf("the binder is not ready: %v", err)
	}
}
