// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/sandboxpod"
)

// serviceAction is what is to be done about the Service of a Sandbox.
type serviceAction int

const (
	// serviceAbsent: the Sandbox has no Service, and a Service that has its name is none of its business.
	serviceAbsent serviceAction = iota
	serviceCreate
	// serviceUpdate: bring the existing Service to the form that repairedService gives it.
	serviceUpdate
	serviceDelete
)

// planService decides about the Service, given the one that has the Sandbox's name, or nil. A Service of the right name that the
// Sandbox wants but may not use is an error.
func planService(sandbox *agentsv1beta1.Sandbox, current *corev1.Service) (serviceAction, error) {
	wanted := sandbox.Spec.Service
	if current == nil {
		if ptr.Deref(wanted, false) {
			return serviceCreate, nil
		}
		return serviceAbsent, nil
	}
	rel := relationTo(sandbox, current)
	switch {
	case wanted != nil && !*wanted:
		if rel == owned {
			return serviceDelete, nil
		}
		return serviceAbsent, nil
	case wanted == nil && rel == unowned:
		return serviceAbsent, nil
	}
	if err := checkUsable(sandbox, current, "service"); err != nil {
		return serviceAbsent, err
	}
	if rel == unowned && current.Spec.ClusterIP != corev1.ClusterIPNone && current.Spec.ClusterIP != "" {
		return serviceAbsent, fmt.Errorf("cannot adopt unowned service %q: it is not headless", current.Name)
	}
	return serviceUpdate, nil
}

// desiredService returns the headless Service of a Sandbox that asks for one and has none.
func desiredService(sandbox *agentsv1beta1.Sandbox) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name:            naming.Service(sandbox.Name),
			Namespace:       sandbox.Namespace,
			Labels:          serviceSelector(sandbox),
			OwnerReferences: []metav1.OwnerReference{sandboxpod.ControllerRef(sandbox)},
		},
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone,
			Selector:  serviceSelector(sandbox),
			Ports:     servicePorts(&sandbox.Spec.PodTemplate.Spec),
		},
	}
}

// repairedService returns the current Service with what the Sandbox prescribes about it: the owner, the label, the selector and,
// if the Sandbox asks for the Service, the ports. All else is left as it is, defaults of the API server included.
func repairedService(sandbox *agentsv1beta1.Sandbox, current *corev1.Service) *corev1.Service {
	service := current.DeepCopy()
	setOwner(sandbox, service)
	if selector := serviceSelector(sandbox); !maps.Equal(selector, service.Spec.Selector) {
		service.Spec.Selector = selector
	}
	if ports := servicePorts(&sandbox.Spec.PodTemplate.Spec); sandbox.Spec.Service != nil && !slices.EqualFunc(ports, service.Spec.Ports, samePort) {
		service.Spec.Ports = ports
	}
	return service
}

// samePort compares what servicePorts sets and nothing that the API server may add.
func samePort(a, b corev1.ServicePort) bool {
	return a.Name == b.Name && a.Protocol == b.Protocol && a.Port == b.Port && a.TargetPort == b.TargetPort
}

func serviceSelector(sandbox *agentsv1beta1.Sandbox) map[string]string {
	return map[string]string{agentsv1beta1.SandboxNameHashLabel: naming.Hash(sandbox.Name)}
}

// serviceFQDN is the DNS name of a Service.
func serviceFQDN(service *corev1.Service, clusterDomain string) string {
	return fmt.Sprintf("%s.%s.svc.%s", service.Name, service.Namespace, clusterDomain)
}
