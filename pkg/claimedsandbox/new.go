// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package claimedsandbox

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/sandboxtemplate"
)

// NeedsColdStart says whether no member of a pool can do for the claim, because its Pod has to be made with the claim's own environment or
// volumes.
func NeedsColdStart(claim *extensionsv1beta1.SandboxClaim) bool {
	return len(claim.Spec.Env) > 0 || len(claim.Spec.VolumeClaimTemplates) > 0
}

// Check says whether a Sandbox could be made from the template as the claim wants it. Nil means that it could.
func Check(claim *extensionsv1beta1.SandboxClaim, template *extensionsv1beta1.SandboxTemplate) *Rejection {
	metadata := sandboxtemplate.PodMetadata(&template.Spec.PodTemplate.Metadata)
	return join(
		checkVolumeClaimTemplates(claim, template),
		checkContradictions(claim, &metadata),
		checkEnv(claim, template),
	)
}

// New returns the Sandbox that is made for a claim from the template. It has the name of the claim, so that there cannot be two of them.
// The error is a *Rejection.
func New(claim *extensionsv1beta1.SandboxClaim, template *extensionsv1beta1.SandboxTemplate) (*agentsv1beta1.Sandbox, error) {
	if rejection := Check(claim, template); rejection != nil {
		return nil, rejection
	}
	hash := naming.Hash(template.Name)
	sandbox := &agentsv1beta1.Sandbox{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       claim.Namespace,
			Name:            claim.Name,
			Labels:          map[string]string{agentsv1beta1.LaunchTypeLabel: agentsv1beta1.LaunchTypeCold},
			Annotations:     map[string]string{agentsv1beta1.SandboxTemplateRefAnnotation: template.Name},
			OwnerReferences: []metav1.OwnerReference{controllerRef(claim)},
		},
		Spec: agentsv1beta1.SandboxSpec{SandboxBlueprint: sandboxtemplate.Blueprint(template)},
	}
	setIdentity(sandbox.Labels, claim, hash)
	setTraceContext(sandbox, claim)
	blueprint := &sandbox.Spec.SandboxBlueprint
	blueprint.PodTemplate.Metadata = podMetadata(claim, &blueprint.PodTemplate.Metadata, hash)
	blueprint.VolumeClaimTemplates = mergeVolumeClaimTemplates(blueprint.VolumeClaimTemplates, claim.Spec.VolumeClaimTemplates)
	injectEnv(&blueprint.PodTemplate.Spec, claim.Spec.Env)
	return sandbox, nil
}
