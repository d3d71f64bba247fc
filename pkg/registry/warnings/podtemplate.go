// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package warnings finds what is allowed in our objects and yet hardly meant, for the Warning headers of responses.
package warnings

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
)

// PodTemplate returns what there is to warn of in a Pod template. Only what differs from the old one is looked at, which is empty if there
// was none.
func PodTemplate(template, old *agents.PodTemplate, path *field.Path) []string {
	found := ignoredKeys(template.Metadata.Labels, old.Metadata.Labels, path.Child("metadata", "labels"))
	found = append(found, ignoredKeys(template.Metadata.Annotations, old.Metadata.Annotations, path.Child("metadata", "annotations"))...)
	if !apiequality.Semantic.DeepEqual(template.Spec, old.Spec) {
		found = append(found, podSpecWarnings(&template.Spec, path.Child("spec"))...)
	}
	return found
}

// ignoredKeys names the reserved keys, which do not reach the Pod.
func ignoredKeys(entries, old map[string]string, path *field.Path) []string {
	var found []string
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		if _, before := old[key]; !before && v1beta1.IsReservedPodMetadataKey(key) {
			found = append(found, fmt.Sprintf("%s: reserved, ignored", path.Key(key)))
		}
	}
	return found
}

// podSpecWarnings returns what kube-apiserver says of ports that a Pod has twice.
func podSpecWarnings(spec *corev1.PodSpec, path *field.Path) []string {
	var found []string
	ports := map[corev1.ContainerPort]*field.Path{}
	visit := func(containers []corev1.Container, path *field.Path) {
		for i := range containers {
			found = append(found, portWarnings(containers[i].Ports, ports, path.Index(i).Child("ports"))...)
		}
	}
	visit(spec.InitContainers, path.Child("initContainers"))
	visit(spec.Containers, path.Child("containers"))
	return found
}

// portWarnings names the ports that were declared before, by this container or by another one of the Pod, and notes the others.
func portWarnings(ports []corev1.ContainerPort, declared map[corev1.ContainerPort]*field.Path, path *field.Path) []string {
	var found []string
	for i, port := range ports {
		port.Name = ""
		if first, ok := declared[port]; ok {
			found = append(found, fmt.Sprintf("%s: duplicate port definition with %s", path.Index(i), first))
			continue
		}
		declared[port] = path.Index(i)
	}
	return found
}
