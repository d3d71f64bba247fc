// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package fuzzer fills objects of the agents.x-k8s.io API group with random values that a decoder would also produce, for round-trip tests.
package fuzzer

import (
	runtimeserializer "k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/randfill"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
)

// Funcs returns the fuzzing functions of the group. Fields with a default are given one: an empty one would not survive decoding.
func Funcs(runtimeserializer.CodecFactory) []any {
	return []any{
		func(spec *agents.SandboxSpec, c randfill.Continue) {
			c.FillNoCustom(spec)
			spec.OperatingMode = Pick(c, agents.SandboxOperatingModeRunning, agents.SandboxOperatingModeSuspended)
			spec.ShutdownPolicy = ptr.To(Pick(c, agents.ShutdownPolicyDelete, agents.ShutdownPolicyRetain))
		},
		func(template *agents.PodTemplate, c randfill.Continue) {
			c.FillNoCustom(template)
			holder := &v1beta1.Sandbox{}
			holder.Spec.PodTemplate.Spec = template.Spec
			v1beta1.SetObjectDefaults_Sandbox(holder)
			template.Spec = holder.Spec.PodTemplate.Spec
		},
	}
}

// Pick returns one of the choices.
func Pick[T any](c randfill.Continue, choices ...T) T {
	return choices[c.Intn(len(choices))]
}
