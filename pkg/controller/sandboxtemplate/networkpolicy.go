// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxtemplate

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
)

const (
	kind = "SandboxTemplate"

	// policySuffix follows the name of a template in that of its NetworkPolicy.
	policySuffix = "-network-policy"

	// The secure default lets in the Pods with this label in this namespace: the sandbox router where upstream's manifests put it.
	routerNamespace = "agent-sandbox-system"
	routerApp       = "sandbox-router"
)

// relation says what an object is to a template.
type relation int

const (
	// foreign objects are controlled by nobody or by something else.
	foreign relation = iota
	// owned objects are controlled by the template itself, by UID.
	owned
	// predecessors are controlled by an earlier template of the same name, and about to be garbage collected.
	predecessors
)

func relationTo(template *extensionsv1beta1.SandboxTemplate, object metav1.Object) relation {
	ref := metav1.GetControllerOfNoCopy(object)
	switch {
	case ref == nil || !isTemplateRef(ref) || object.GetNamespace() != template.Namespace:
		return foreign
	case ref.UID == template.UID:
		return owned
	case ref.Name == template.Name:
		return predecessors
	default:
		return foreign
	}
}

// isTemplateRef compares the group and the kind but not the version: a reference outlives the version it was written with.
func isTemplateRef(ref *metav1.OwnerReference) bool {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && gv.Group == extensionsv1beta1.GroupName && ref.Kind == kind
}

func managed(template *extensionsv1beta1.SandboxTemplate) bool {
	return template.Spec.NetworkPolicyManagement != extensionsv1beta1.NetworkPolicyManagementUnmanaged
}

// desiredPolicy returns the NetworkPolicy that a managed template is to have.
func desiredPolicy(template *extensionsv1beta1.SandboxTemplate) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       template.Namespace,
			Name:            template.Name + policySuffix,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(template, extensionsv1beta1.SchemeGroupVersion.WithKind(kind))},
		},
		Spec: desiredPolicySpec(template),
	}
}

// desiredPolicySpec always names both policy types, so that a direction without rules is denied.
func desiredPolicySpec(template *extensionsv1beta1.SandboxTemplate) networkingv1.NetworkPolicySpec {
	rules := secureDefault()
	if template.Spec.NetworkPolicy != nil {
		rules = template.Spec.NetworkPolicy.DeepCopy()
	}
	for i := range rules.Ingress {
		setDefaults(rules.Ingress[i].Ports)
	}
	for i := range rules.Egress {
		setDefaults(rules.Egress[i].Ports)
	}
	return networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{agentsv1beta1.SandboxTemplateRefHashLabel: naming.Hash(template.Name)}},
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		Ingress:     rules.Ingress,
		Egress:      rules.Egress,
	}
}

// setDefaults fills in what kube-apiserver would, so that a stored policy can be compared with a desired one.
func setDefaults(ports []networkingv1.NetworkPolicyPort) {
	for i := range ports {
		if ports[i].Protocol == nil {
			ports[i].Protocol = ptr.To(corev1.ProtocolTCP)
		}
	}
}

// secureDefault lets traffic in from the sandbox router, and out to public addresses. The private ranges that it leaves out hold
// the cluster's own DNS too, which is why Pods under this policy are given public name servers.
func secureDefault() *extensionsv1beta1.NetworkPolicySpec {
	return &extensionsv1beta1.NetworkPolicySpec{
		Ingress: []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: routerNamespace}},
			PodSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"app": routerApp}},
		}}}},
		Egress: []networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{
			{IPBlock: &networkingv1.IPBlock{CIDR: "0.0.0.0/0", Except: []string{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"}}},
			{IPBlock: &networkingv1.IPBlock{CIDR: "::/0", Except: []string{"fc00::/7", "fe80::/10"}}},
		}}},
	}
}
