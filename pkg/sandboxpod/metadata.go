// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxpod

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
)

// extensionsGroup is the API group of templates, pools and claims.
const extensionsGroup = "extensions.agents.x-k8s.io"

// The kinds of the extensions group that control Sandboxes.
const (
	WarmPoolKind = "SandboxWarmPool"
	ClaimKind    = "SandboxClaim"
)

// SyncMetadata sets the labels and annotations that the Sandbox prescribes on the Pod, and removes those that it once
// prescribed and no longer does. What others have put on the Pod is kept. The keys that come from podTemplate.metadata are
// remembered in two annotations of the Pod; without them nothing could tell a removed key from somebody else's.
func SyncMetadata(sandbox *agentsv1beta1.Sandbox, pod *corev1.Pod) {
	template := &sandbox.Spec.PodTemplate.Metadata

	labels := orEmpty(pod.Labels)
	annotations := orEmpty(pod.Annotations)
	labelKeys := propagateKeys(template.Labels, labels, annotations[agentsv1beta1.PropagatedLabelsAnnotation])
	annotationKeys := propagateKeys(template.Annotations, annotations, annotations[agentsv1beta1.PropagatedAnnotationsAnnotation])

	for key, value := range systemLabels(sandbox) {
		if value == "" {
			delete(labels, key)
		} else {
			labels[key] = value
		}
	}
	track(annotations, agentsv1beta1.PropagatedLabelsAnnotation, labelKeys)
	track(annotations, agentsv1beta1.PropagatedAnnotationsAnnotation, annotationKeys)
	pod.Labels, pod.Annotations = labels, annotations
}

// propagateKeys copies the template's entries to current, removes those that were copied before and have left the template, and
// returns the copied keys in order. Reserved keys are not copied, and removed if the list of before, which a user can write,
// names them; those that the system needs are set again afterwards. An empty list names no key, not the empty one.
func propagateKeys(template, current map[string]string, before string) []string {
	for key := range strings.SplitSeq(before, ",") {
		if key == "" {
			continue
		}
		if _, keep := template[key]; (!keep || agentsv1beta1.IsReservedPodMetadataKey(key)) && !tracking(key) {
			delete(current, key)
		}
	}
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(template)) {
		if agentsv1beta1.IsReservedPodMetadataKey(key) {
			continue
		}
		current[key] = template[key]
		keys = append(keys, key)
	}
	return keys
}

// track notes the propagated keys in the annotation. An empty list is not worth a write to a Pod that has none.
func track(annotations map[string]string, annotation string, keys []string) {
	if _, present := annotations[annotation]; present || len(keys) > 0 {
		annotations[annotation] = strings.Join(keys, ",")
	}
}

// systemLabels returns the labels of the Pod that only the system may set. An empty value means that the Pod must not have it.
func systemLabels(sandbox *agentsv1beta1.Sandbox) map[string]string {
	labels := map[string]string{
		agentsv1beta1.SandboxNameHashLabel:        naming.Hash(sandbox.Name),
		agentsv1beta1.CreatedByLabel:              "",
		agentsv1beta1.WarmPoolSandboxLabel:        "",
		agentsv1beta1.SandboxTemplateRefHashLabel: "",
		agentsv1beta1.ClaimUIDLabel:               "",
	}
	if createdBy := sandbox.Labels[agentsv1beta1.CreatedByLabel]; createdBy != "" {
		labels[agentsv1beta1.CreatedByLabel] = NormalizeCreatedBy(createdBy)
	}
	owner := ExtensionsOwner(sandbox)
	if owner == nil {
		return labels
	}
	labels[agentsv1beta1.SandboxTemplateRefHashLabel] = sandbox.Labels[agentsv1beta1.SandboxTemplateRefHashLabel]
	switch owner.Kind {
	case WarmPoolKind:
		labels[agentsv1beta1.WarmPoolSandboxLabel] = sandbox.Labels[agentsv1beta1.WarmPoolSandboxLabel]
	case ClaimKind:
		labels[agentsv1beta1.ClaimUIDLabel] = sandbox.Labels[agentsv1beta1.ClaimUIDLabel]
	}
	return labels
}

// ExtensionsOwner returns the controller of a Sandbox, of any version, if it is of the extensions group: without such an owner, labels
// that say so were put there by a user.
func ExtensionsOwner(sandbox metav1.Object) *metav1.OwnerReference {
	ref := metav1.GetControllerOfNoCopy(sandbox)
	if ref == nil {
		return nil
	}
	if gv, err := schema.ParseGroupVersion(ref.APIVersion); err != nil || gv.Group != extensionsGroup {
		return nil
	}
	return ref
}

// NormalizeCreatedBy keeps the values that are known and folds all others into one, because the value becomes a metric label and
// clients choose it freely.
func NormalizeCreatedBy(value string) string {
	switch value {
	case "go-client", "python-client", "controller":
		return value
	default:
		return "unknown"
	}
}

func tracking(key string) bool {
	switch key {
	case agentsv1beta1.SandboxNameHashLabel, agentsv1beta1.PropagatedLabelsAnnotation, agentsv1beta1.PropagatedAnnotationsAnnotation,
		PodTemplateSpecHashAnnotation:
		return true
	default:
		return false
	}
}

func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}
