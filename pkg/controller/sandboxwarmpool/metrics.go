// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxwarmpool

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/claimedsandbox"
)

// Values of the label sandbox_status.
const (
	sandboxReady     = "ready"
	sandboxPending   = "pending"
	sandboxSucceeded = "succeeded"
	sandboxFailed    = "failed"
)

// collector counts the members of pools at each scrape.
type collector struct {
	metrics.BaseStableCollector

	controller *Controller
	desc       *metrics.Desc
}

// NewCollector returns a collector of the agent_sandbox_warmpool_size gauge: how many members each pool has, by what they are at. It
// tells of each of these even if there is none.
func (c *Controller) NewCollector() metrics.StableCollector {
	return &collector{
		controller: c,
		desc: metrics.NewDesc("agent_sandbox_warmpool_size", "Number of Sandboxes in warm pools.", []string{
			"namespace", "warmpool_name", "sandbox_template", "sandbox_status",
		}, nil, metrics.ALPHA, ""),
	}
}

// DescribeWithStability implements metrics.StableCollector.
func (c *collector) DescribeWithStability(ch chan<- *metrics.Desc) {
	ch <- c.desc
}

// CollectWithStability implements metrics.StableCollector.
func (c *collector) CollectWithStability(ch chan<- metrics.Metric) {
	pools, err := c.controller.pools.List(labels.Everything())
	if err != nil {
		klog.Background().Error(err, "Listing SandboxWarmPools for metrics failed")
		return
	}
	for _, pool := range pools {
		objects, err := c.controller.members.ByIndex(memberIndex, memberKey(pool.Namespace, string(pool.UID)))
		if err != nil {
			klog.Background().Error(err, "Looking up members for metrics failed")
			return
		}
		counts := map[string]int{sandboxReady: 0, sandboxPending: 0, sandboxSucceeded: 0, sandboxFailed: 0}
		for _, object := range objects {
			if sandbox, ok := object.(*agentsv1beta1.Sandbox); ok && sandbox.DeletionTimestamp == nil && !claimedsandbox.Used(sandbox) {
				counts[sandboxStatus(sandbox)]++
			}
		}
		for status, count := range counts {
			ch <- metrics.NewLazyConstMetric(c.desc, metrics.GaugeValue, float64(count), pool.Namespace, pool.Name, pool.Spec.SandboxTemplateRef.Name, status)
		}
	}
}

func sandboxStatus(sandbox *agentsv1beta1.Sandbox) string {
	if claimedsandbox.Ready(sandbox) {
		return sandboxReady
	}
	finished := meta.FindStatusCondition(sandbox.Status.Conditions, agentsv1beta1.SandboxConditionFinished)
	switch {
	case finished == nil:
		return sandboxPending
	case finished.Reason == agentsv1beta1.SandboxReasonPodSucceeded:
		return sandboxSucceeded
	default:
		return sandboxFailed
	}
}
