// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package claimedsandbox

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
)

// checkEnv refuses variables that the policy of the template does not allow, those for containers that are not there, and one that the
// claim has twice for one container.
func checkEnv(claim *extensionsv1beta1.SandboxClaim, template *extensionsv1beta1.SandboxTemplate) *Rejection {
	if len(claim.Spec.Env) == 0 {
		return nil
	}
	path := field.NewPath("spec", "env")
	policy := template.Spec.EnvVarsInjectionPolicy
	if policy != extensionsv1beta1.EnvVarsInjectionPolicyAllowed && policy != extensionsv1beta1.EnvVarsInjectionPolicyOverrides {
		return reject(extensionsv1beta1.ClaimReasonEnvVarsInjectionRejected, field.ErrorList{field.Forbidden(path,
			"environment variable injection rejected: the template does not allow it")})
	}
	var rejected, failed field.ErrorList
	seen := sets.New[containerEnv]()
	for i := range claim.Spec.Env {
		variable, path := &claim.Spec.Env[i], path.Index(i)
		container := targetContainer(&template.Spec.PodTemplate.Spec, variable.ContainerName)
		if container == nil {
			failed = append(failed, field.Invalid(path.Child("containerName"), variable.ContainerName,
				fmt.Sprintf("target container not found: the template has no container or init container %q", variable.ContainerName)))
			continue
		}
		key := containerEnv{container.Name, variable.Name}
		switch {
		case seen.Has(key):
			failed = append(failed, field.Duplicate(path.Child("name"), variable.Name))
		case policy == extensionsv1beta1.EnvVarsInjectionPolicyOverrides:
		case len(container.EnvFrom) > 0:
			rejected = append(rejected, field.Forbidden(path.Child("containerName"), fmt.Sprintf(
				"environment variable injection rejected: container %q has envFrom, which may set any variable, and the template does not allow overrides",
				container.Name)))
		case hasEnv(container, variable.Name):
			failed = append(failed, field.Forbidden(path.Child("name"), fmt.Sprintf(
				"environment variable %q is set by the template for container %q, which does not allow overrides", variable.Name, container.Name)))
		}
		seen.Insert(key)
	}
	return join(reject(extensionsv1beta1.ClaimReasonEnvVarsInjectionRejected, rejected), reject(extensionsv1beta1.ClaimReasonReconcilerError, failed))
}

// containerEnv is a variable of a container.
type containerEnv struct {
	container, name string
}

// targetContainer returns the container of the name, an init container or another, or the first that is no init container if there is no
// name. Nil if there is none.
func targetContainer(pod *corev1.PodSpec, name string) *corev1.Container {
	if name == "" {
		if len(pod.Containers) == 0 {
			return nil
		}
		return &pod.Containers[0]
	}
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			if containers[i].Name == name {
				return &containers[i]
			}
		}
	}
	return nil
}

func hasEnv(container *corev1.Container, name string) bool {
	return slices.ContainsFunc(container.Env, func(variable corev1.EnvVar) bool { return variable.Name == name })
}

// injectEnv sets the variables, which must have been checked. Of a variable that is there already nothing is left, so that a value does not
// get a reference to a secret beside it. Those for a named container come before those for the first.
func injectEnv(pod *corev1.PodSpec, wanted []extensionsv1beta1.EnvVar) {
	ordered := slices.Clone(wanted)
	slices.SortStableFunc(ordered, func(a, b extensionsv1beta1.EnvVar) int { return unnamedLast(a) - unnamedLast(b) })
	for i := range ordered {
		container := targetContainer(pod, ordered[i].ContainerName)
		variable := corev1.EnvVar{Name: ordered[i].Name, Value: ordered[i].Value}
		at := slices.IndexFunc(container.Env, func(present corev1.EnvVar) bool { return present.Name == variable.Name })
		if at >= 0 {
			container.Env[at] = variable
		} else {
			container.Env = append(container.Env, variable)
		}
	}
}

func unnamedLast(variable extensionsv1beta1.EnvVar) int {
	if variable.ContainerName == "" {
		return 1
	}
	return 0
}
