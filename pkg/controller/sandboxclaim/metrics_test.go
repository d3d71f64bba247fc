// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxclaim

import (
	"strings"
	"testing"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
)

// measured registers the metrics of a fixture.
func measured(f *fixture) metrics.KubeRegistry {
	registry := metrics.NewKubeRegistry()
	f.config.Metrics.Register(registry.MustRegister)
	return registry
}

func wantStarts(t *testing.T, registry metrics.KubeRegistry, want string) {
	t.Helper()
	const head = `
# HELP agent_sandbox_claim_creation_total [ALPHA] Number of claims that were given a member of a pool, or that a Sandbox was made for.
# TYPE agent_sandbox_claim_creation_total counter
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(head+want), "agent_sandbox_claim_creation_total"); err != nil {
		t.Error(err)
	}
}

func wantLatency(t *testing.T, registry metrics.KubeRegistry, name, launch string, count uint64, sum float64) {
	t.Helper()
	got, err := testutil.GetHistogramVecFromGatherer(registry, name, map[string]string{"launch_type": launch, "sandbox_template": "t1"})
	if err != nil {
		if count > 0 {
			t.Errorf("%s: %v", name, err)
		}
		return
	}
	if got.GetAggregatedSampleCount() != count || got.GetAggregatedSampleSum() != sum {
		t.Errorf("%s: %d observations of together %v ms, want %d of %v", name, got.GetAggregatedSampleCount(), got.GetAggregatedSampleSum(), count, sum)
	}
}

func TestClaimBoundWhileItWaitedIsCountedAndTimedOnce(t *testing.T) {
	c, s := boundPair(func(c *claim) {
		c.Labels = map[string]string{agentsv1beta1.CreatedByLabel: "python-client"}
		c.Annotations = map[string]string{
			extensionsv1beta1.WebhookFirstObservedAtAnnotation: "2026-01-02T03:04:04.9Z",
			extensionsv1beta1.ClientFirstRequestedAtAnnotation: "2026-01-02T03:04:04.500000+00:00",
		}
	})
	f := newFixture(t).Everywhere(testPool(), testTemplate(), s).created(c)
	registry := measured(f)
	f.clock.Step(5 * time.Millisecond)
	for range 3 {
		f.MustPass()
		f.sync()
	}
	wantStarts(t, registry, `agent_sandbox_claim_creation_total{created_by="python-client",launch_type="warm",namespace="tenant",pod_condition="ready",sandbox_template="t1",warmpool_name="p1"} 1
`)
	wantLatency(t, registry, "agent_sandbox_claim_controller_startup_latency_ms", "warm", 1, 5)
	wantLatency(t, registry, "agent_sandbox_claim_startup_latency_ms", "warm", 1, 105)
	wantLatency(t, registry, "agent_sandbox_client_claim_startup_latency_ms", "warm", 1, 505)
	wantLatency(t, registry, "agent_sandbox_creation_latency_ms", "warm", 1, 59*60*1000)
}

// TestAnnouncedClaimIsCountedAndTimedOnce is about a claim that the API server has bound, and announced, before the controller knew of it.
func TestAnnouncedClaimIsCountedAndTimedOnce(t *testing.T) {
	c, s := boundPair(seenByServer, func(c *claim) {
		c.Annotations[extensionsv1beta1.WebhookFirstObservedAtAnnotation] = "2026-01-02T03:04:04.85Z"
		c.Annotations[extensionsv1beta1.ClientFirstRequestedAtAnnotation] = "2026-01-02T03:04:04.5Z"
	})
	f := newFixture(t).Everywhere(testPool(), testTemplate(), s).created(c)
	registry := measured(f)
	f.announce()
	for range 3 {
		f.MustPass()
	}
	wantStarts(t, registry, `agent_sandbox_claim_creation_total{created_by="unknown",launch_type="warm",namespace="tenant",pod_condition="ready",sandbox_template="t1",warmpool_name="p1"} 1
`)
	wantLatency(t, registry, "agent_sandbox_claim_controller_startup_latency_ms", "warm", 1, 0)
	wantLatency(t, registry, "agent_sandbox_claim_startup_latency_ms", "warm", 1, 50)
	wantLatency(t, registry, "agent_sandbox_client_claim_startup_latency_ms", "warm", 1, 400)
	wantLatency(t, registry, "agent_sandbox_creation_latency_ms", "warm", 1, 59*60*1000)
}

func TestColdClaimIsCountedWhenItsSandboxIsMade(t *testing.T) {
	f := newFixture(t).Everywhere(testPool(), testTemplate()).created(testClaim())
	registry := measured(f)
	f.MustPass()
	wantStarts(t, registry, `agent_sandbox_claim_creation_total{created_by="unknown",launch_type="cold",namespace="tenant",pod_condition="not_ready",sandbox_template="t1",warmpool_name="p1"} 1
`)
	f.sync()
	f.InCache(changed(f.sandbox(testName), readied))
	f.clock.Step(700 * time.Millisecond)
	f.MustPass()
	wantStarts(t, registry, `agent_sandbox_claim_creation_total{created_by="unknown",launch_type="cold",namespace="tenant",pod_condition="not_ready",sandbox_template="t1",warmpool_name="p1"} 1
`)
	wantLatency(t, registry, "agent_sandbox_claim_controller_startup_latency_ms", "cold", 1, 700)
	wantLatency(t, registry, "agent_sandbox_claim_startup_latency_ms", "cold", 0, 0)
}

func TestTimesThatMakeNoSenseAreNotObserved(t *testing.T) {
	c, s := boundPair(func(c *claim) {
		c.Annotations = map[string]string{
			extensionsv1beta1.WebhookFirstObservedAtAnnotation: "yesterday",
			extensionsv1beta1.ClientFirstRequestedAtAnnotation: "2027-01-01T00:00:00Z",
		}
	})
	f := newFixture(t).Everywhere(testPool(), testTemplate(), s).created(c)
	registry := measured(f)
	f.MustPass()
	wantLatency(t, registry, "agent_sandbox_claim_startup_latency_ms", "warm", 0, 0)
	wantLatency(t, registry, "agent_sandbox_client_claim_startup_latency_ms", "warm", 0, 0)
}

func TestClaimOfAnEarlierProcessIsNotTimed(t *testing.T) {
	c, s := boundPair()
	f := newFixture(t).Everywhere(testPool(), testTemplate(), s, c)
	registry := measured(f)
	f.claimHandler().OnAdd(c, true)
	f.clock.Step(time.Hour)
	f.MustPass()
	wantLatency(t, registry, "agent_sandbox_claim_controller_startup_latency_ms", "warm", 0, 0)
}
