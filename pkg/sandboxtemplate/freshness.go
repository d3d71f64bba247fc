// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxtemplate

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/equality"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
)

// Hash returns the value of SandboxTemplateHashLabel for a Sandbox made from the template as it is. It stands for the blueprint in the
// words of the template's author: policies, and defaults that are not stored in the template, do not count. It means nothing to anybody
// else, and a difference alone does not make a Sandbox out of date, so it may change from release to release.
func Hash(template *extensionsv1beta1.SandboxTemplate) string {
	// What came out of JSON can be encoded. If it could not, the full comparison would decide.
	encoded, _ := json.Marshal(&template.Spec.SandboxBlueprint)
	return naming.Hash(string(encoded))
}

// Recreates says whether a pool replaces idle members that no longer follow its template. None of them is given to a claim then.
func Recreates(pool *extensionsv1beta1.SandboxWarmPool) bool {
	strategy := pool.Spec.UpdateStrategy
	return strategy != nil && strategy.Type == extensionsv1beta1.RecreateSandboxWarmPoolUpdateStrategyType
}

// Fresh says whether a Sandbox that its pool has made still follows the template. It does if it is made from a template of this name,
// and either the template is the same to the byte or what it makes is.
func Fresh(template *extensionsv1beta1.SandboxTemplate, sandbox *agentsv1beta1.Sandbox) bool {
	return sandbox.Labels[agentsv1beta1.SandboxTemplateRefHashLabel] == naming.Hash(template.Name) &&
		(sandbox.Labels[agentsv1beta1.SandboxTemplateHashLabel] == Hash(template) || Matches(template, sandbox))
}

// Matches says whether the Sandbox runs what the template would make. Metadata does not count: that of the Pod can be changed at any
// time, and that of volumes is no reason to replace them. It takes no label's word, so it can be asked about a Sandbox that anybody may
// have made.
func Matches(template *extensionsv1beta1.SandboxTemplate, sandbox *agentsv1beta1.Sandbox) bool {
	want, got := Blueprint(template), &sandbox.Spec.SandboxBlueprint
	return equality.Semantic.DeepEqual(&want.PodTemplate.Spec, &got.PodTemplate.Spec) &&
		equality.Semantic.DeepEqual(want.Service, got.Service) &&
		sameVolumes(want.VolumeClaimTemplates, got.VolumeClaimTemplates)
}

func sameVolumes(a, b []agentsv1beta1.PersistentVolumeClaimTemplate) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Metadata.Name != b[i].Metadata.Name || !equality.Semantic.DeepEqual(&a[i].Spec, &b[i].Spec) {
			return false
		}
	}
	return true
}
