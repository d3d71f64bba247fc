// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxclaim

import (
	"cmp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/claimedsandbox"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/sandboxpod"
)

// unknownTemplate is the label of what was made from a template whose name is not known.
const unknownTemplate = "__unknown__"

// Metrics measure how claims start. Their names are those of upstream, by which dashboards and alerts find them. Metrics that are not
// registered do nothing.
type Metrics struct {
	sinceWebhook   *metrics.HistogramVec
	sinceFirstSeen *metrics.HistogramVec
	sinceRequest   *metrics.HistogramVec
	creation       *metrics.HistogramVec
	started        *metrics.CounterVec
}

// NewMetrics returns Metrics that are registered nowhere.
func NewMetrics() *Metrics {
	latency := func(name, help string) *metrics.HistogramVec {
		return metrics.NewHistogramVec(&metrics.HistogramOpts{
			Name:           name,
			Help:           help,
			Buckets:        []float64{100, 250, 500, 750, 1000, 1250, 1500, 2000, 2500, 5000, 10000, 30000, 60000, 120000, 240000},
			StabilityLevel: metrics.ALPHA,
		}, []string{"launch_type", "sandbox_template"})
	}
	return &Metrics{
		sinceWebhook: latency("agent_sandbox_claim_startup_latency_ms",
			"Time in milliseconds from when an admission webhook saw a claim to its first readiness."),
		sinceFirstSeen: latency("agent_sandbox_claim_controller_startup_latency_ms",
			"Time in milliseconds from when the controller first saw a claim to its first readiness."),
		sinceRequest: latency("agent_sandbox_client_claim_startup_latency_ms",
			"Time in milliseconds from when a client asked for a claim to its first readiness."),
		creation: metrics.NewHistogramVec(&metrics.HistogramOpts{
			Name:           "agent_sandbox_creation_latency_ms",
			Help:           "Time in milliseconds from the creation of a Sandbox to its readiness, observed when its claim is ready for the first time.",
			Buckets:        []float64{50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000, 120000, 240000, 300000, 600000},
			StabilityLevel: metrics.ALPHA,
		}, []string{"namespace", "launch_type", "sandbox_template"}),
		started: metrics.NewCounterVec(&metrics.CounterOpts{
			Name:           "agent_sandbox_claim_creation_total",
			Help:           "Number of claims that were given a member of a pool, or that a Sandbox was made for.",
			StabilityLevel: metrics.ALPHA,
		}, []string{"namespace", "sandbox_template", "launch_type", "warmpool_name", "pod_condition", "created_by"}),
	}
}

// Register registers all metrics by calling register, which is that of a registry.
func (m *Metrics) Register(register func(...metrics.Registerable)) {
	register(m.sinceWebhook, m.sinceFirstSeen, m.sinceRequest, m.creation, m.started)
}

// countStart counts a claim that has got its Sandbox.
func (m *Metrics) countStart(claim *extensionsv1beta1.SandboxClaim, sandbox *agentsv1beta1.Sandbox) {
	condition := "not_ready"
	if claimedsandbox.Ready(sandbox) {
		condition = "ready"
	}
	m.started.WithLabelValues(claim.Namespace, templateName(sandbox), launchType(sandbox), claim.Spec.WarmPoolRef.Name, condition,
		sandboxpod.NormalizeCreatedBy(claim.Labels[agentsv1beta1.CreatedByLabel])).Inc()
}

// observeReady observes how long it took until the claim was ready, since it was first seen and since what others noted in it; and how long
// it took until its Sandbox was.
func (m *Metrics) observeReady(claim *extensionsv1beta1.SandboxClaim, sandbox *agentsv1beta1.Sandbox, firstSeen, now time.Time) {
	observe := func(histogram *metrics.HistogramVec, since time.Time) {
		if elapsed := now.Sub(since); elapsed >= 0 {
			histogram.WithLabelValues(launchType(sandbox), templateName(sandbox)).Observe(float64(elapsed) / float64(time.Millisecond))
		}
	}
	observe(m.sinceFirstSeen, firstSeen)
	if at, ok := annotatedTime(claim, extensionsv1beta1.WebhookFirstObservedAtAnnotation); ok {
		observe(m.sinceWebhook, at)
	}
	if at, ok := annotatedTime(claim, extensionsv1beta1.ClientFirstRequestedAtAnnotation); ok {
		observe(m.sinceRequest, at)
	}
	if ready := meta.FindStatusCondition(sandbox.Status.Conditions, agentsv1beta1.SandboxConditionReady); ready != nil && ready.Status == metav1.ConditionTrue {
		elapsed := ready.LastTransitionTime.Sub(sandbox.CreationTimestamp.Time)
		m.creation.WithLabelValues(sandbox.Namespace, launchType(sandbox), templateName(sandbox)).Observe(float64(elapsed.Milliseconds()))
	}
}

func annotatedTime(claim *extensionsv1beta1.SandboxClaim, annotation string) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339Nano, strings.TrimSpace(claim.Annotations[annotation]))
	return at, err == nil
}

func launchType(sandbox *agentsv1beta1.Sandbox) string {
	return cmp.Or(sandbox.Labels[agentsv1beta1.LaunchTypeLabel], "unknown")
}

func templateName(sandbox *agentsv1beta1.Sandbox) string {
	return cmp.Or(sandbox.Annotations[agentsv1beta1.SandboxTemplateRefAnnotation], unknownTemplate)
}
