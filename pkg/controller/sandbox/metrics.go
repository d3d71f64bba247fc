// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"cmp"
	"strconv"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	listers "github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/listers/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/sandboxpod"
)

const unknownValue = "unknown"

// collector counts the Sandboxes of a lister at each scrape.
type collector struct {
	metrics.BaseStableCollector

	lister listers.SandboxLister
	desc   *metrics.Desc
}

// NewCollector returns a collector of the agent_sandboxes gauge: how many Sandboxes there are, by state and origin.
func NewCollector(lister listers.SandboxLister) metrics.StableCollector {
	return &collector{
		lister: lister,
		desc: metrics.NewDesc("agent_sandboxes", "Number of Sandboxes.", []string{
			"namespace", "ready_condition", "expired", "launch_type", "sandbox_template", "owned_by", "created_by",
		}, nil, metrics.ALPHA, ""),
	}
}

// DescribeWithStability implements metrics.StableCollector.
func (c *collector) DescribeWithStability(ch chan<- *metrics.Desc) {
	ch <- c.desc
}

// CollectWithStability implements metrics.StableCollector.
func (c *collector) CollectWithStability(ch chan<- metrics.Metric) {
	sandboxes, err := c.lister.List(labels.Everything())
	if err != nil {
		klog.Background().Error(err, "Listing Sandboxes for metrics failed")
		return
	}
	counts := map[[7]string]int{}
	for _, sandbox := range sandboxes {
		counts[gaugeLabels(sandbox)]++
	}
	for values, count := range counts {
		ch <- metrics.NewLazyConstMetric(c.desc, metrics.GaugeValue, float64(count), values[:]...)
	}
}

func gaugeLabels(sandbox *agentsv1beta1.Sandbox) [7]string {
	return [7]string{
		sandbox.Namespace,
		strconv.FormatBool(isReady(&sandbox.Status)),
		strconv.FormatBool(markedExpired(&sandbox.Status)),
		launchType(sandbox),
		templateName(sandbox),
		ownedBy(sandbox),
		sandboxpod.NormalizeCreatedBy(sandbox.Labels[agentsv1beta1.CreatedByLabel]),
	}
}

func launchType(sandbox *agentsv1beta1.Sandbox) string {
	if sandbox.Labels[agentsv1beta1.LaunchTypeLabel] == agentsv1beta1.LaunchTypeWarm {
		return agentsv1beta1.LaunchTypeWarm
	}
	return agentsv1beta1.LaunchTypeCold
}

func templateName(sandbox *agentsv1beta1.Sandbox) string {
	return cmp.Or(sandbox.Annotations[agentsv1beta1.SandboxTemplateRefAnnotation], unknownValue)
}

func ownedBy(sandbox *agentsv1beta1.Sandbox) string {
	if owner := sandboxpod.ExtensionsOwner(sandbox); owner != nil && (owner.Kind == sandboxpod.ClaimKind || owner.Kind == sandboxpod.WarmPoolKind) {
		return owner.Kind
	}
	return "None"
}
