// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package claimedsandbox

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/labeldomains"
)

// A Pod with this label is let through to all Sandboxes by the default NetworkPolicy.
const (
	routerLabel = "app"
	routerValue = "sandbox-router"
)

// systemDomains are what annotations of claims may not be under: there they could tell controllers and the node what to do.
func systemDomains() []string { return []string{"kubernetes.io", "k8s.io", agentsv1beta1.GroupName} }

// CheckMetadata checks labels and annotations that somebody wants on the Pod of his Sandbox against the rules for all claims, whatever
// the template. Labels need a prefix that is allowed, because operators select Pods by labels without one and by those of the system.
func CheckMetadata(metadata *agentsv1beta1.PodMetadata, allowed labeldomains.List, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(metadata.Labels)) {
		errs = append(errs, checkLabel(key, metadata.Labels[key], allowed, path.Child("labels").Key(key))...)
	}
	for _, key := range slices.Sorted(maps.Keys(metadata.Annotations)) {
		errs = append(errs, checkAnnotation(key, path.Child("annotations").Key(key))...)
	}
	return errs
}

func checkLabel(key, value string, allowed labeldomains.List, path *field.Path) field.ErrorList {
	if problems := validation.IsQualifiedName(key); len(problems) > 0 {
		return invalid(path, key, problems)
	}
	if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
		return invalid(path, value, problems)
	}
	domain := prefix(key)
	switch {
	case strings.EqualFold(key, routerLabel) && strings.EqualFold(value, routerValue):
		return field.ErrorList{field.Forbidden(path, "restricted system label value: "+value)}
	case domain == "":
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf("label %q must have a domain prefix (one of: %s, or a subdomain)", key, allowed))}
	case labeldomains.Within(domain, agentsv1beta1.GroupName) || !allowed.Allows(domain):
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf("label domain %q is not in the allowlist: %s", domain, allowed))}
	default:
		return nil
	}
}

func checkAnnotation(key string, path *field.Path) field.ErrorList {
	if problems := validation.IsQualifiedName(strings.ToLower(key)); len(problems) > 0 {
		return invalid(path, key, problems)
	}
	if key == agentsv1beta1.SafeToEvictAnnotation {
		return nil
	}
	for _, domain := range systemDomains() {
		if labeldomains.Within(prefix(key), domain) {
			return field.ErrorList{field.Forbidden(path, fmt.Sprintf("annotation domain %q is reserved for the system", prefix(key)))}
		}
	}
	return nil
}

func invalid(path *field.Path, value string, problems []string) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range problems {
		errs = append(errs, field.Invalid(path, value, problem))
	}
	return errs
}

// prefix returns what is before the slash of a key, or nothing.
func prefix(key string) string {
	domain, _, found := strings.Cut(key, "/")
	if !found {
		return ""
	}
	return domain
}

// checkContradictions refuses metadata of the claim that has other values than the template for the same keys. Upstream repeats such a
// claim for ever, for which its clients wait; the reason stays the same here.
func checkContradictions(claim *extensionsv1beta1.SandboxClaim, template *agentsv1beta1.PodMetadata) *Rejection {
	path, wanted := field.NewPath("spec", "additionalPodMetadata"), &claim.Spec.AdditionalPodMetadata
	return reject(extensionsv1beta1.ClaimReasonReconcilerError, append(
		contradictions("label", wanted.Labels, template.Labels, path.Child("labels")),
		contradictions("annotation", wanted.Annotations, template.Annotations, path.Child("annotations"))...))
}

func contradictions(noun string, wanted, template map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		if value, set := template[key]; set && value != wanted[key] {
			errs = append(errs, field.Forbidden(path.Key(key), fmt.Sprintf(
				"metadata override conflict: %s %q is defined in template with value %q, but claim requests %q", noun, key, value, wanted[key])))
		}
	}
	return errs
}

// podMetadata returns the metadata for the Pod of the claim: what the template says, what the claim adds, and who it belongs to.
func podMetadata(claim *extensionsv1beta1.SandboxClaim, template *agentsv1beta1.PodMetadata, templateRefHash string) agentsv1beta1.PodMetadata {
	labels := union(template.Labels, claim.Spec.AdditionalPodMetadata.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	setIdentity(labels, claim, templateRefHash)
	return agentsv1beta1.PodMetadata{
		Labels:      labels,
		Annotations: union(template.Annotations, claim.Spec.AdditionalPodMetadata.Annotations),
	}
}

// setIdentity sets the labels that say whose a Sandbox is. An empty hash leaves that label as it is.
func setIdentity(labels map[string]string, claim *extensionsv1beta1.SandboxClaim, templateRefHash string) {
	labels[agentsv1beta1.ClaimUIDLabel] = string(claim.UID)
	if templateRefHash != "" {
		labels[agentsv1beta1.SandboxTemplateRefHashLabel] = templateRefHash
	}
	if createdBy := claim.Labels[agentsv1beta1.CreatedByLabel]; createdBy != "" {
		labels[agentsv1beta1.CreatedByLabel] = createdBy
	} else {
		delete(labels, agentsv1beta1.CreatedByLabel)
	}
}

// union returns a new map with the entries of both, or nil if there are none.
func union(a, b map[string]string) map[string]string {
	if len(a)+len(b) == 0 {
		return nil
	}
	both := make(map[string]string, len(a)+len(b))
	maps.Copy(both, a)
	maps.Copy(both, b)
	return both
}
