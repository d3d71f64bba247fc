// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// portKey is what makes a container port one port of the Service.
type portKey struct {
	number   int32
	protocol corev1.Protocol
}

// servicePorts returns the ports of the Service of a Pod, ordered by number and protocol: one for each port and protocol that a
// container which runs as long as the Pod (sidecars included) declares.
func servicePorts(spec *corev1.PodSpec) []corev1.ServicePort {
	names := portNames(spec)
	keys := slices.SortedFunc(maps.Keys(names), func(a, b portKey) int {
		return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.protocol, b.protocol))
	})
	taken := map[string]bool{}
	for _, name := range names {
		taken[name] = true
	}
	var ports []corev1.ServicePort
	for _, key := range keys {
		name := names[key]
		if name == "" {
			name = generatePortName(key, taken)
		}
		ports = append(ports, corev1.ServicePort{
			Name:       name,
			Protocol:   key.protocol,
			Port:       key.number,
			TargetPort: intstr.FromInt32(key.number),
		})
	}
	return ports
}

// portNames collects the declared ports, each with the first name declared for it that no other port has taken, or with none.
func portNames(spec *corev1.PodSpec) map[portKey]string {
	names := map[portKey]string{}
	taken := map[string]bool{}
	for _, port := range containerPorts(spec) {
		if port.ContainerPort == 0 {
			continue
		}
		key := portKey{port.ContainerPort, cmp.Or(port.Protocol, corev1.ProtocolTCP)}
		if names[key] != "" {
			continue
		}
		names[key] = ""
		if !taken[port.Name] {
			names[key] = port.Name
			taken[port.Name] = port.Name != ""
		}
	}
	return names
}

func containerPorts(spec *corev1.PodSpec) []corev1.ContainerPort {
	var ports []corev1.ContainerPort
	for i := range spec.Containers {
		ports = append(ports, spec.Containers[i].Ports...)
	}
	for i := range spec.InitContainers {
		container := &spec.InitContainers[i]
		if container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			ports = append(ports, container.Ports...)
		}
	}
	return ports
}

func generatePortName(key portKey, taken map[string]bool) string {
	base := fmt.Sprintf("p-%d-%s", key.number, strings.ToLower(string(key.protocol)))
	name := base
	for n := 2; taken[name]; n++ {
		name = fmt.Sprintf("%s-%d", base, n)
	}
	taken[name] = true
	return name
}
