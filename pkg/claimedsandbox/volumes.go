// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package claimedsandbox

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
)

func checkVolumeClaimTemplates(claim *extensionsv1beta1.SandboxClaim, template *extensionsv1beta1.SandboxTemplate) *Rejection {
	wanted := claim.Spec.VolumeClaimTemplates
	if len(wanted) == 0 {
		return nil
	}
	path := field.NewPath("spec", "volumeClaimTemplates")
	var errs field.ErrorList
	policy := template.Spec.VolumeClaimTemplatesPolicy
	if policy != extensionsv1beta1.VolumeClaimTemplatesPolicyAllowed && policy != extensionsv1beta1.VolumeClaimTemplatesPolicyOverrides {
		errs = append(errs, field.Forbidden(path, "volume claim templates are disallowed by the template"))
	}
	seen := sets.New[string]()
	for i := range wanted {
		name, path := wanted[i].Metadata.Name, path.Index(i).Child("metadata", "name")
		switch {
		case name == "":
			errs = append(errs, field.Required(path, fmt.Sprintf("invalid volume claim templates: name at index %d is empty", i)))
		case seen.Has(name):
			errs = append(errs, field.Duplicate(path, name))
		case policy == extensionsv1beta1.VolumeClaimTemplatesPolicyAllowed && hasVolume(template.Spec.VolumeClaimTemplates, name):
			errs = append(errs, field.Forbidden(path, fmt.Sprintf(
				"overriding volume claim templates is forbidden by the template: cannot override template volume %q", name)))
		}
		seen.Insert(name)
	}
	return reject(extensionsv1beta1.ClaimReasonVolumeClaimTemplatesError, errs)
}

func hasVolume(templates []agentsv1beta1.PersistentVolumeClaimTemplate, name string) bool {
	return slices.ContainsFunc(templates, named(name))
}

func named(name string) func(agentsv1beta1.PersistentVolumeClaimTemplate) bool {
	return func(template agentsv1beta1.PersistentVolumeClaimTemplate) bool { return template.Metadata.Name == name }
}

// mergeVolumeClaimTemplates returns the volumes of the template, in the place of some those of the claim that have their names, and the
// rest of the claim's. It may change base.
func mergeVolumeClaimTemplates(base, wanted []agentsv1beta1.PersistentVolumeClaimTemplate) []agentsv1beta1.PersistentVolumeClaimTemplate {
	for i := range wanted {
		volume := *wanted[i].DeepCopy()
		if at := slices.IndexFunc(base, named(volume.Metadata.Name)); at >= 0 {
			base[at] = volume
		} else {
			base = append(base, volume)
		}
	}
	return base
}
