// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package fuzzer fills objects of the extensions.agents.x-k8s.io API group with random values that a decoder would also produce, for
// round-trip tests.
package fuzzer

import (
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	runtimeserializer "k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/randfill"

	agentsfuzzer "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/fuzzer"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
)

// Funcs returns the fuzzing functions of the group, and of the parts of Sandboxes in it. Fields with a default are given one: an empty one
// would not survive decoding.
func Funcs(codecs runtimeserializer.CodecFactory) []any {
	return fuzzer.MergeFuzzerFuncs(agentsfuzzer.Funcs, func(runtimeserializer.CodecFactory) []any {
		return []any{fillTemplateSpec, fillPoolSpec, fillLifecycle}
	})(codecs)
}

func fillTemplateSpec(spec *extensions.SandboxTemplateSpec, c randfill.Continue) {
	c.FillNoCustom(spec)
	spec.NetworkPolicyManagement = agentsfuzzer.Pick(c, extensions.NetworkPolicyManagementManaged, extensions.NetworkPolicyManagementUnmanaged)
	spec.EnvVarsInjectionPolicy = agentsfuzzer.Pick(c,
		extensions.EnvVarsInjectionPolicyAllowed, extensions.EnvVarsInjectionPolicyOverrides, extensions.EnvVarsInjectionPolicyDisallowed)
	spec.VolumeClaimTemplatesPolicy = agentsfuzzer.Pick(c,
		extensions.VolumeClaimTemplatesPolicyAllowed, extensions.VolumeClaimTemplatesPolicyOverrides, extensions.VolumeClaimTemplatesPolicyDisallowed)
}

func fillPoolSpec(spec *extensions.SandboxWarmPoolSpec, c randfill.Continue) {
	c.FillNoCustom(spec)
	spec.Replicas = ptr.To(c.Int31())
	if spec.UpdateStrategy != nil {
		spec.UpdateStrategy.Type = agentsfuzzer.Pick(c,
			extensions.RecreateSandboxWarmPoolUpdateStrategyType, extensions.OnReplenishSandboxWarmPoolUpdateStrategyType)
	}
}

func fillLifecycle(lifecycle *extensions.Lifecycle, c randfill.Continue) {
	c.FillNoCustom(lifecycle)
	lifecycle.ShutdownPolicy = agentsfuzzer.Pick(c,
		extensions.ClaimShutdownPolicyDelete, extensions.ClaimShutdownPolicyDeleteForeground, extensions.ClaimShutdownPolicyRetain)
}
