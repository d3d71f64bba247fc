// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
)

type (
	peer = networkingv1.NetworkPolicyPeer
	port = networkingv1.NetworkPolicyPort
)

func ingressFrom(peers ...peer) templateTweak {
	return func(t *extensions.SandboxTemplate) {
		t.Spec.NetworkPolicy = &extensions.NetworkPolicySpec{Ingress: []networkingv1.NetworkPolicyIngressRule{{From: peers}}}
	}
}

func egressTo(peers ...peer) templateTweak {
	return func(t *extensions.SandboxTemplate) {
		t.Spec.NetworkPolicy = &extensions.NetworkPolicySpec{Egress: []networkingv1.NetworkPolicyEgressRule{{To: peers}}}
	}
}

func TestValidateNetworkPolicyPorts(t *testing.T) {
	number := func(n int32) *intstr.IntOrString { return ptr.To(intstr.FromInt32(n)) }
	name := func(name string) *intstr.IntOrString { return ptr.To(intstr.FromString(name)) }
	protocol := func(p corev1.Protocol) *corev1.Protocol { return &p }
	for _, test := range []struct {
		name string
		port port
		want []string
	}{
		{"any", port{}, nil},
		{"number", port{Port: number(53), Protocol: protocol(corev1.ProtocolUDP)}, nil},
		{"name", port{Port: name("http"), Protocol: protocol(corev1.ProtocolSCTP)}, nil},
		{"protocol alone", port{Protocol: protocol(corev1.ProtocolTCP)}, nil},
		{"unknown protocol", port{Protocol: protocol("tcp")}, []string{"FieldValueNotSupported ports[0].protocol"}},
		{"zero", port{Port: number(0)}, []string{"FieldValueInvalid ports[0].port"}},
		{"beyond the last", port{Port: number(65536)}, []string{"FieldValueInvalid ports[0].port"}},
		{"name that no port can have", port{Port: name("http_")}, []string{"FieldValueInvalid ports[0].port"}},
		{"neither number nor name", port{Port: &intstr.IntOrString{Type: 2}}, []string{"FieldValueInvalid ports[0].port"}},
		{"range", port{Port: number(8000), EndPort: ptr.To[int32](8010)}, nil},
		{"range of one", port{Port: number(8000), EndPort: ptr.To[int32](8000)}, nil},
		{"range that ends before it begins", port{Port: number(8000), EndPort: ptr.To[int32](7999)}, []string{"FieldValueInvalid ports[0].endPort"}},
		{"range beyond the last", port{Port: number(8000), EndPort: ptr.To[int32](65536)}, []string{"FieldValueInvalid ports[0].endPort"}},
		{"range from a name", port{Port: name("http"), EndPort: ptr.To[int32](8000)}, []string{"FieldValueInvalid ports[0].endPort"}},
		{"range from nowhere", port{EndPort: ptr.To[int32](8000)}, []string{"FieldValueInvalid ports[0].endPort"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			ingress := validTemplate(func(t *extensions.SandboxTemplate) {
				t.Spec.NetworkPolicy = &extensions.NetworkPolicySpec{Ingress: []networkingv1.NetworkPolicyIngressRule{{Ports: []port{test.port}}}}
			})
			egress := validTemplate(func(t *extensions.SandboxTemplate) {
				t.Spec.NetworkPolicy = &extensions.NetworkPolicySpec{Egress: []networkingv1.NetworkPolicyEgressRule{{}, {Ports: []port{test.port}}}}
			})
			for prefix, template := range map[string]*extensions.SandboxTemplate{"ingress[0].": ingress, "egress[1].": egress} {
				if diff := cmp.Diff(under("spec.networkPolicy."+prefix, test.want), problems(ValidateSandboxTemplate(template))); diff != "" {
					t.Errorf("%s errors (-want +got):\n%s", prefix, diff)
				}
			}
		})
	}
}

func TestValidateNetworkPolicyPeers(t *testing.T) {
	block := func(cidr string, except ...string) peer {
		return peer{IPBlock: &networkingv1.IPBlock{CIDR: cidr, Except: except}}
	}
	selector := func(value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": value}}
	}
	for _, test := range []struct {
		name string
		peer peer
		want []string
	}{
		{"Pods", peer{PodSelector: selector("web")}, nil},
		{"all Pods", peer{PodSelector: &metav1.LabelSelector{}}, nil},
		{"Pods in namespaces", peer{PodSelector: selector("web"), NamespaceSelector: selector("team")}, nil},
		{"addresses", block("10.0.0.0/8", "10.1.0.0/16", "10.2.3.4/32"), nil},
		{"addresses of version 6", block("2001:db8::/32", "2001:db8:1::/48"), nil},
		{"one address", block("10.0.0.1/32"), nil},
		{"nothing", peer{}, []string{"FieldValueRequired [0]"}},
		{"addresses and Pods", peer{PodSelector: selector("web"), IPBlock: &networkingv1.IPBlock{CIDR: "10.0.0.0/8"}}, []string{"FieldValueForbidden [0]"}},
		{"Pods with a label that can be no one", peer{PodSelector: selector("not a value")}, []string{"FieldValueInvalid [0].podSelector.matchLabels"}},
		{"namespaces by an unknown operator", peer{NamespaceSelector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Is"}},
		}}, []string{"FieldValueInvalid [0].namespaceSelector.matchExpressions[0].operator"}},
		{"no address", block(""), []string{"FieldValueRequired [0].ipBlock.cidr"}},
		{"address without a length", block("10.0.0.1"), []string{"FieldValueInvalid [0].ipBlock.cidr"}},
		{"address with bits beyond the length", block("10.0.0.1/8"), []string{"FieldValueInvalid [0].ipBlock.cidr"}},
		{"address with leading zeros", block("010.0.0.0/8"), []string{"FieldValueInvalid [0].ipBlock.cidr"}},
		{"exception that is no address", block("10.0.0.0/8", "10.1"), []string{"FieldValueInvalid [0].ipBlock.except[0]"}},
		{"exception from elsewhere", block("10.0.0.0/8", "10.1.0.0/16", "11.0.0.0/16"), []string{"FieldValueInvalid [0].ipBlock.except[1]"}},
		{"exception of everything", block("10.0.0.0/8", "10.0.0.0/8"), []string{"FieldValueInvalid [0].ipBlock.except[0]"}},
		{"exception of more", block("10.0.0.0/16", "10.0.0.0/8"), []string{"FieldValueInvalid [0].ipBlock.except[0]"}},
		{"exception of another version", block("0.0.0.0/0", "2001:db8::/32"), []string{"FieldValueInvalid [0].ipBlock.except[0]"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for prefix, template := range map[string]*extensions.SandboxTemplate{
				"ingress[0].from": validTemplate(ingressFrom(test.peer)), "egress[0].to": validTemplate(egressTo(test.peer)),
			} {
				if diff := cmp.Diff(under("spec.networkPolicy."+prefix, test.want), problems(ValidateSandboxTemplate(template))); diff != "" {
					t.Errorf("%s errors (-want +got):\n%s", prefix, diff)
				}
			}
		})
	}
}

// under puts a path before the fields of problems.
func under(path string, problems []string) []string {
	var found []string
	for _, problem := range problems {
		kind, at, _ := strings.Cut(problem, " ")
		found = append(found, kind+" "+path+at)
	}
	return found
}
