// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Lists that are merged by key must hold each key once: a client-side apply that takes one of two entries away takes both. Pods may
// have some of them twice all the same, custom resources may not.

// duplicateNames refuses entries whose name another one before it has.
func duplicateNames[T any](items []T, path *field.Path, name func(*T) string) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i := range items {
		if key := name(&items[i]); seen.Has(key) {
			errs = append(errs, field.Duplicate(path.Index(i).Child("name"), key))
		} else {
			seen.Insert(key)
		}
	}
	return errs
}

// duplicateKeys refuses entries whose key another one before it has. The key is as people would write it.
func duplicateKeys[T any](items []T, path *field.Path, key func(*T) string) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i := range items {
		if k := key(&items[i]); seen.Has(k) {
			errs = append(errs, field.Duplicate(path.Index(i), k))
		} else {
			seen.Insert(k)
		}
	}
	return errs
}

// podListKeyRules are about the lists of a Pod itself.
func podListKeyRules(path *field.Path) []Rule[corev1.PodSpec] {
	return []Rule[corev1.PodSpec]{
		listKeyRule(func(s *corev1.PodSpec) []corev1.Volume { return s.Volumes }, func(list []corev1.Volume) field.ErrorList {
			return duplicateNames(list, path.Child("volumes"), func(v *corev1.Volume) string { return v.Name })
		}),
		listKeyRule(func(s *corev1.PodSpec) []corev1.LocalObjectReference { return s.ImagePullSecrets }, func(list []corev1.LocalObjectReference) field.ErrorList {
			return duplicateNames(list, path.Child("imagePullSecrets"), func(r *corev1.LocalObjectReference) string { return r.Name })
		}),
		listKeyRule(func(s *corev1.PodSpec) []corev1.PodResourceClaim { return s.ResourceClaims }, func(list []corev1.PodResourceClaim) field.ErrorList {
			return duplicateNames(list, path.Child("resourceClaims"), func(c *corev1.PodResourceClaim) string { return c.Name })
		}),
		listKeyRule(func(s *corev1.PodSpec) []corev1.PodSchedulingGate { return s.SchedulingGates }, func(list []corev1.PodSchedulingGate) field.ErrorList {
			return duplicateNames(list, path.Child("schedulingGates"), func(g *corev1.PodSchedulingGate) string { return g.Name })
		}),
		listKeyRule(func(s *corev1.PodSpec) []corev1.HostAlias { return s.HostAliases }, func(list []corev1.HostAlias) field.ErrorList {
			return duplicateKeys(list, path.Child("hostAliases"), func(a *corev1.HostAlias) string { return a.IP })
		}),
		listKeyRule(func(s *corev1.PodSpec) []corev1.TopologySpreadConstraint { return s.TopologySpreadConstraints }, func(list []corev1.TopologySpreadConstraint) field.ErrorList {
			return duplicateKeys(list, path.Child("topologySpreadConstraints"), func(c *corev1.TopologySpreadConstraint) string {
				return fmt.Sprintf("%s/%s", c.TopologyKey, c.WhenUnsatisfiable)
			})
		}),
	}
}

// listKeyRule is the rule about one list of the Pod. The list is also the subject: who leaves it alone is not held to it.
func listKeyRule[T any](list func(*corev1.PodSpec) []T, check func([]T) field.ErrorList) Rule[corev1.PodSpec] {
	return Rule[corev1.PodSpec]{
		Subject: func(s *corev1.PodSpec) any { return list(s) },
		Check:   func(s *corev1.PodSpec) field.ErrorList { return check(list(s)) },
	}
}

// validateContainerListKeys is about the lists of a container.
func validateContainerListKeys(container *corev1.Container, path *field.Path) field.ErrorList {
	errs := duplicateNames(container.Env, path.Child("env"), func(e *corev1.EnvVar) string { return e.Name })
	errs = append(errs, duplicateKeys(container.Ports, path.Child("ports"), func(p *corev1.ContainerPort) string {
		return fmt.Sprintf("%d/%s", p.ContainerPort, p.Protocol)
	})...)
	errs = append(errs, duplicateKeys(container.VolumeMounts, path.Child("volumeMounts"), func(m *corev1.VolumeMount) string { return m.MountPath })...)
	errs = append(errs, duplicateKeys(container.VolumeDevices, path.Child("volumeDevices"), func(d *corev1.VolumeDevice) string { return d.DevicePath })...)
	return append(errs, duplicateNames(container.Resources.Claims, path.Child("resources", "claims"), func(c *corev1.ResourceClaim) string { return c.Name })...)
}
