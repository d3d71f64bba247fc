// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
)

// NewTemplate returns a template of one container, changed by options.
func NewTemplate(name string, options ...func(*extensionsv1beta1.SandboxTemplate)) *extensionsv1beta1.SandboxTemplate {
	template := &extensionsv1beta1.SandboxTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       extensionsv1beta1.SandboxTemplateSpec{SandboxBlueprint: NewSandbox(name).Spec.SandboxBlueprint},
	}
	for _, option := range options {
		option(template)
	}
	return template
}

// Blueprint returns an option of NewTemplate that makes of the template what an option of NewSandbox makes of a Sandbox.
func Blueprint(option func(*agentsv1beta1.Sandbox)) func(*extensionsv1beta1.SandboxTemplate) {
	return func(template *extensionsv1beta1.SandboxTemplate) {
		sandbox := &agentsv1beta1.Sandbox{Spec: agentsv1beta1.SandboxSpec{SandboxBlueprint: template.Spec.SandboxBlueprint}}
		option(sandbox)
		template.Spec.SandboxBlueprint = sandbox.Spec.SandboxBlueprint
	}
}

// NewPool returns a pool of so many Sandboxes of a template, changed by options.
func NewPool(name, template string, replicas int32, options ...func(*extensionsv1beta1.SandboxWarmPool)) *extensionsv1beta1.SandboxWarmPool {
	pool := &extensionsv1beta1.SandboxWarmPool{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: extensionsv1beta1.SandboxWarmPoolSpec{
			Replicas:           &replicas,
			SandboxTemplateRef: extensionsv1beta1.SandboxTemplateRef{Name: template},
		},
	}
	for _, option := range options {
		option(pool)
	}
	return pool
}

// Recreate is an option of NewPool: idle members are replaced when the template changes.
func Recreate(pool *extensionsv1beta1.SandboxWarmPool) {
	pool.Spec.UpdateStrategy = &extensionsv1beta1.SandboxWarmPoolUpdateStrategy{
		Type: extensionsv1beta1.RecreateSandboxWarmPoolUpdateStrategyType,
	}
}

// NewClaim returns a claim on a pool, changed by options.
func NewClaim(name, pool string, options ...func(*extensionsv1beta1.SandboxClaim)) *extensionsv1beta1.SandboxClaim {
	claim := &extensionsv1beta1.SandboxClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       extensionsv1beta1.SandboxClaimSpec{WarmPoolRef: extensionsv1beta1.SandboxWarmPoolRef{Name: pool}},
	}
	for _, option := range options {
		option(claim)
	}
	return claim
}
