// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	agentsvalidation "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/validation"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
)

// networkPolicyRules repeat those rules of kube-apiserver for NetworkPolicies that are about peers and ports. They are no part of any
// library, and a NetworkPolicy that is refused when the controller makes it leaves Sandboxes without one.
func networkPolicyRules(path *field.Path) []agentsvalidation.Rule[extensions.SandboxTemplate] {
	policy := func(t *extensions.SandboxTemplate) extensions.NetworkPolicySpec {
		if t.Spec.NetworkPolicy == nil {
			return extensions.NetworkPolicySpec{}
		}
		return *t.Spec.NetworkPolicy
	}
	return []agentsvalidation.Rule[extensions.SandboxTemplate]{{
		Subject: func(t *extensions.SandboxTemplate) any { return policy(t).Ingress },
		Check: func(t *extensions.SandboxTemplate) field.ErrorList {
			var errs field.ErrorList
			for i, rule := range policy(t).Ingress {
				at := path.Child("ingress").Index(i)
				errs = append(errs, validateNetworkPolicyPorts(rule.Ports, at.Child("ports"))...)
				errs = append(errs, validateNetworkPolicyPeers(rule.From, at.Child("from"))...)
			}
			return errs
		},
	}, {
		Subject: func(t *extensions.SandboxTemplate) any { return policy(t).Egress },
		Check: func(t *extensions.SandboxTemplate) field.ErrorList {
			var errs field.ErrorList
			for i, rule := range policy(t).Egress {
				at := path.Child("egress").Index(i)
				errs = append(errs, validateNetworkPolicyPorts(rule.Ports, at.Child("ports"))...)
				errs = append(errs, validateNetworkPolicyPeers(rule.To, at.Child("to"))...)
			}
			return errs
		},
	}}
}

func validateNetworkPolicyPorts(ports []networkingv1.NetworkPolicyPort, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	supported := sets.New(corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)
	for i, port := range ports {
		at := path.Index(i)
		if port.Protocol != nil && !supported.Has(*port.Protocol) {
			errs = append(errs, field.NotSupported(at.Child("protocol"), *port.Protocol, sets.List(supported)))
		}
		if port.Port != nil {
			errs = append(errs, validatePort(*port.Port, at.Child("port"))...)
		}
		if port.EndPort != nil {
			errs = append(errs, validateEndPort(*port.EndPort, port.Port, at.Child("endPort"))...)
		}
	}
	return errs
}

// validatePort refuses also what protobuf can carry and JSON cannot.
func validatePort(port intstr.IntOrString, path *field.Path) field.ErrorList {
	msgs := []string{"must be a number or a name"}
	switch port.Type {
	case intstr.Int:
		msgs = validation.IsValidPortNum(int(port.IntVal))
	case intstr.String:
		msgs = validation.IsValidPortName(port.StrVal)
	}
	var errs field.ErrorList
	for _, msg := range msgs {
		errs = append(errs, field.Invalid(path, port.String(), msg))
	}
	return errs
}

// validateEndPort is about the last port of a range that begins with the given port.
func validateEndPort(end int32, port *intstr.IntOrString, path *field.Path) field.ErrorList {
	if port == nil || port.Type != intstr.Int {
		return field.ErrorList{field.Invalid(path, end, "may be specified only when `port` is a number")}
	}
	var errs field.ErrorList
	if end < port.IntVal {
		errs = append(errs, field.Invalid(path, end, "must be greater than or equal to `port`"))
	}
	for _, msg := range validation.IsValidPortNum(int(end)) {
		errs = append(errs, field.Invalid(path, end, msg))
	}
	return errs
}

func validateNetworkPolicyPeers(peers []networkingv1.NetworkPolicyPeer, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, peer := range peers {
		at := path.Index(i)
		selects := peer.PodSelector != nil || peer.NamespaceSelector != nil
		switch {
		case peer.IPBlock == nil && !selects:
			errs = append(errs, field.Required(at, "must specify a peer"))
		case peer.IPBlock != nil && selects:
			errs = append(errs, field.Forbidden(at, "may not specify both ipBlock and another peer"))
		}
		errs = append(errs, validateSelector(peer.PodSelector, at.Child("podSelector"))...)
		errs = append(errs, validateSelector(peer.NamespaceSelector, at.Child("namespaceSelector"))...)
		if peer.IPBlock != nil {
			errs = append(errs, validateIPBlock(peer.IPBlock, at.Child("ipBlock"))...)
		}
	}
	return errs
}

func validateSelector(selector *metav1.LabelSelector, path *field.Path) field.ErrorList {
	if selector == nil {
		return nil
	}
	return metav1validation.ValidateLabelSelector(selector, metav1validation.LabelSelectorValidationOptions{}, path)
}

// validateIPBlock is as strict as kube-apiserver has been since 1.36. What older ones take for addresses besides, such as those with bits
// beyond the prefix, different network plugins read in different ways.
func validateIPBlock(block *networkingv1.IPBlock, path *field.Path) field.ErrorList {
	if block.CIDR == "" {
		return field.ErrorList{field.Required(path.Child("cidr"), "")}
	}
	errs := validateCIDR(block.CIDR, path.Child("cidr"))
	outer, err := netip.ParsePrefix(block.CIDR)
	for i, except := range block.Except {
		at := path.Child("except").Index(i)
		problems := validateCIDR(except, at)
		errs = append(errs, problems...)
		if err == nil && len(problems) == 0 && !strictlyWithin(netip.MustParsePrefix(except), outer) {
			errs = append(errs, field.Invalid(at, except, "must be a strict subset of `cidr`"))
		}
	}
	return errs
}

func validateCIDR(cidr string, path *field.Path) field.ErrorList {
	return validation.IsValidCIDRForLegacyField(path, cidr, true, nil)
}

func strictlyWithin(inner, outer netip.Prefix) bool {
	return outer.Contains(inner.Addr()) && inner.Bits() > outer.Bits()
}
