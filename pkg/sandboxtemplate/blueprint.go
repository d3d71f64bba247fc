// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package sandboxtemplate says what a SandboxTemplate makes of a Sandbox, and whether a Sandbox still is what its template would make.
// Pools, claims and the API server need the same answer.
package sandboxtemplate

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
)

// publicNameservers returns the DNS servers of Sandboxes that the default NetworkPolicy keeps from the cluster's own.
func publicNameservers() []string { return []string{"8.8.8.8", "1.1.1.1"} }

// Blueprint returns what a Sandbox of the template is to run: a copy of the template's blueprint with the secure defaults, and without the
// metadata that is not the template's to set. No token of a ServiceAccount is mounted unless the template asks for one. A Pod under the
// default NetworkPolicy, which lets nothing pass to the cluster's DNS, resolves names at public servers unless the template sets a dnsPolicy.
func Blueprint(template *extensionsv1beta1.SandboxTemplate) agentsv1beta1.SandboxBlueprint {
	blueprint := *template.Spec.SandboxBlueprint.DeepCopy()
	blueprint.PodTemplate.Metadata = PodMetadata(&template.Spec.PodTemplate.Metadata)
	pod := &blueprint.PodTemplate.Spec
	if pod.AutomountServiceAccountToken == nil {
		pod.AutomountServiceAccountToken = ptr.To(false)
	}
	if pod.DNSPolicy == "" && hasDefaultNetworkPolicy(template) {
		pod.DNSPolicy = corev1.DNSNone
		pod.DNSConfig = &corev1.PodDNSConfig{Nameservers: publicNameservers()}
	}
	return blueprint
}

// PodMetadata returns a copy of the metadata for a Pod with what its author may say: reserved keys are ignored. Some of them decide whose a
// Sandbox is, so that one which a template could set would keep the members of a pool from being given to anybody.
func PodMetadata(metadata *agentsv1beta1.PodMetadata) agentsv1beta1.PodMetadata {
	return agentsv1beta1.PodMetadata{Labels: withoutReserved(metadata.Labels), Annotations: withoutReserved(metadata.Annotations)}
}

func withoutReserved(entries map[string]string) map[string]string {
	entries = maps.Clone(entries)
	maps.DeleteFunc(entries, func(key, _ string) bool { return agentsv1beta1.IsReservedPodMetadataKey(key) })
	return entries
}

// hasDefaultNetworkPolicy says whether the template leaves the NetworkPolicy, and what is in it, to the controller.
func hasDefaultNetworkPolicy(template *extensionsv1beta1.SandboxTemplate) bool {
	return template.Spec.NetworkPolicy == nil && template.Spec.NetworkPolicyManagement != extensionsv1beta1.NetworkPolicyManagementUnmanaged
}
