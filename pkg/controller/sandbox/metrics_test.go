// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
)

func TestSandboxesAreCountedByStateAndOrigin(t *testing.T) {
	yes := true
	f := newFixture(t).InCache(
		testSandbox(),
		testSandbox(func(s *agentsv1beta1.Sandbox) { s.Name = "s2" }),
		testSandbox(withStatus(metav1.Condition{Type: conditionReady, Status: metav1.ConditionTrue, Reason: "DependenciesReady"}), func(s *agentsv1beta1.Sandbox) {
			s.Name = "pooled"
			s.Labels = map[string]string{"agents.x-k8s.io/launch-type": "warm", agentsv1beta1.CreatedByLabel: "controller"}
			s.Annotations = map[string]string{"agents.x-k8s.io/sandbox-template-ref": "python"}
			s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "extensions.agents.x-k8s.io/v1beta1", Kind: "SandboxWarmPool", Controller: &yes}}
		}),
		testSandbox(withStatus(metav1.Condition{Type: conditionReady, Status: metav1.ConditionFalse, Reason: "SandboxExpired"}), func(s *agentsv1beta1.Sandbox) { s.Name = "expired" }),
	)
	registry := metrics.NewKubeRegistry()
	registry.CustomMustRegister(NewCollector(f.Controller.sandboxes))
	const want = `
# HELP agent_sandboxes [ALPHA] Number of Sandboxes.
# TYPE agent_sandboxes gauge
agent_sandboxes{created_by="controller",expired="false",launch_type="warm",namespace="tenant",owned_by="SandboxWarmPool",ready_condition="true",sandbox_template="python"} 1
agent_sandboxes{created_by="unknown",expired="false",launch_type="cold",namespace="tenant",owned_by="None",ready_condition="false",sandbox_template="unknown"} 2
agent_sandboxes{created_by="unknown",expired="true",launch_type="cold",namespace="tenant",owned_by="None",ready_condition="false",sandbox_template="unknown"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "agent_sandboxes"); err != nil {
		t.Error(err)
	}
}
