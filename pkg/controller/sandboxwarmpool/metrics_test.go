// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxwarmpool

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
)

func TestSizesOfPoolsAreCountedAtEachScrape(t *testing.T) {
	finished := func(reason string) memberChange {
		return func(member *agentsv1beta1.Sandbox) {
			becameUnready(0)(member)
			says(agentsv1beta1.SandboxConditionFinished, metav1.ConditionTrue, reason, "", 0)(member)
		}
	}
	f := newFixture(t).InCache(
		newPool(9), newPool(0, func(pool *extensionsv1beta1.SandboxWarmPool) { pool.Name, pool.UID = "empty", "empty-uid" }),
		testMember("ready1"), testMember("ready2"), testMember("pending", becameUnready(0)), testMember("suspended", suspended),
		testMember("done", finished(agentsv1beta1.SandboxReasonPodSucceeded)), testMember("broken", finished(agentsv1beta1.SandboxReasonPodFailed)),
		testMember("claimed", claimed), testMember("going", terminating), testMember("orphan", orphaned),
		testMember("used", func(member *agentsv1beta1.Sandbox) { member.Labels[agentsv1beta1.ClaimUIDLabel] = "claim-uid" }),
	)
	registry := metrics.NewKubeRegistry()
	registry.CustomMustRegister(f.NewCollector())
	const want = `
# HELP agent_sandbox_warmpool_size [ALPHA] Number of Sandboxes in warm pools.
# TYPE agent_sandbox_warmpool_size gauge
agent_sandbox_warmpool_size{namespace="tenant",sandbox_status="failed",sandbox_template="python",warmpool_name="empty"} 0
agent_sandbox_warmpool_size{namespace="tenant",sandbox_status="failed",sandbox_template="python",warmpool_name="p1"} 1
agent_sandbox_warmpool_size{namespace="tenant",sandbox_status="pending",sandbox_template="python",warmpool_name="empty"} 0
agent_sandbox_warmpool_size{namespace="tenant",sandbox_status="pending",sandbox_template="python",warmpool_name="p1"} 2
agent_sandbox_warmpool_size{namespace="tenant",sandbox_status="ready",sandbox_template="python",warmpool_name="empty"} 0
agent_sandbox_warmpool_size{namespace="tenant",sandbox_status="ready",sandbox_template="python",warmpool_name="p1"} 2
agent_sandbox_warmpool_size{namespace="tenant",sandbox_status="succeeded",sandbox_template="python",warmpool_name="empty"} 0
agent_sandbox_warmpool_size{namespace="tenant",sandbox_status="succeeded",sandbox_template="python",warmpool_name="p1"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "agent_sandbox_warmpool_size"); err != nil {
		t.Error(err)
	}
}
