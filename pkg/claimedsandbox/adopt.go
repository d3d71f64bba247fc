// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package claimedsandbox

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/sandboxtemplate"
)

// Adopt makes a member of a pool the claim's. Owner and labels say so from then on; the metadata of the Pod becomes what the template and
// the claim say. Everything else stays as it was warmed: Pod, volumes, service. The template is that which the pool names now, or nil if
// there is none any more. The error is a *Rejection, and then the Sandbox is as it was. Whoever stores the Sandbox does so past its strategy,
// so the generation counts the change of the spec here.
func Adopt(sandbox *agentsv1beta1.Sandbox, claim *extensionsv1beta1.SandboxClaim, template *extensionsv1beta1.SandboxTemplate) error {
	base, hash := templateMetadata(sandbox, template)
	if rejection := checkContradictions(claim, base); rejection != nil {
		return rejection
	}
	sandbox.OwnerReferences = []metav1.OwnerReference{controllerRef(claim)}
	for _, key := range poolLabels() {
		delete(sandbox.Labels, key)
	}
	prescribe(sandbox, claim, base, hash)
	sandbox.Labels[agentsv1beta1.LaunchTypeLabel] = agentsv1beta1.LaunchTypeWarm
	delete(sandbox.Annotations, extensionsv1beta1.ReservedForClaimAnnotation)
	delete(sandbox.Annotations, extensionsv1beta1.ReservedAtAnnotation)
	setTraceContext(sandbox, claim)
	advanceGeneration(sandbox)
	return nil
}

// advanceGeneration counts a change of the metadata for the Pod. No condition depends on them, so what is true of the Sandbox is true of the
// next generation as well: who waits for conditions that speak of the present one has no reason to wait for the controller to say so.
func advanceGeneration(sandbox *agentsv1beta1.Sandbox) {
	for i := range sandbox.Status.Conditions {
		if condition := &sandbox.Status.Conditions[i]; condition.ObservedGeneration == sandbox.Generation {
			condition.ObservedGeneration++
		}
	}
	sandbox.Generation++
}

// Sync makes metadata of the claim's Sandbox follow the claim and the template that the pool names now: the metadata of the Pod, and
// the labels that repeat it. The error is a *Rejection, and then the Sandbox is as it was.
func Sync(sandbox *agentsv1beta1.Sandbox, claim *extensionsv1beta1.SandboxClaim, template *extensionsv1beta1.SandboxTemplate) error {
	base, hash := templateMetadata(sandbox, template)
	if rejection := checkContradictions(claim, base); rejection != nil {
		return rejection
	}
	prescribe(sandbox, claim, base, hash)
	return nil
}

// prescribe sets the metadata of the Pod, and the labels that repeat it.
func prescribe(sandbox *agentsv1beta1.Sandbox, claim *extensionsv1beta1.SandboxClaim, template *agentsv1beta1.PodMetadata, templateRefHash string) {
	if sandbox.Labels == nil {
		sandbox.Labels = map[string]string{}
	}
	setIdentity(sandbox.Labels, claim, templateRefHash)
	sandbox.Spec.PodTemplate.Metadata = podMetadata(claim, template, templateRefHash)
}

// templateMetadata returns the metadata that the template has for the Pod, and the hash of the template's name. Without a template it is
// what the pool has made of it, less what it adds for idle members.
func templateMetadata(sandbox *agentsv1beta1.Sandbox, template *extensionsv1beta1.SandboxTemplate) (*agentsv1beta1.PodMetadata, string) {
	if template != nil {
		metadata := sandboxtemplate.PodMetadata(&template.Spec.PodTemplate.Metadata)
		return &metadata, naming.Hash(template.Name)
	}
	metadata := sandboxtemplate.PodMetadata(&sandbox.Spec.PodTemplate.Metadata)
	if metadata.Annotations[agentsv1beta1.SafeToEvictAnnotation] == "true" {
		delete(metadata.Annotations, agentsv1beta1.SafeToEvictAnnotation)
	}
	return &metadata, sandbox.Labels[agentsv1beta1.SandboxTemplateRefHashLabel]
}

// poolLabels are the labels that only idle members have.
func poolLabels() []string {
	return []string{agentsv1beta1.WarmPoolSandboxLabel, agentsv1beta1.SandboxTemplateHashLabel, agentsv1beta1.SandboxPodTemplateHashLabel}
}

func setTraceContext(sandbox *agentsv1beta1.Sandbox, claim *extensionsv1beta1.SandboxClaim) {
	trace := claim.Annotations[agentsv1beta1.TraceContextAnnotation]
	if trace == "" {
		return
	}
	if sandbox.Annotations == nil {
		sandbox.Annotations = map[string]string{}
	}
	sandbox.Annotations[agentsv1beta1.TraceContextAnnotation] = trace
}
