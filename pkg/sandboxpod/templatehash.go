// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxpod

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
)

// PodTemplateSpecHashAnnotation is on Pods, and identifies the podTemplate.spec that a Pod was made from. The spec of the Pod itself
// does not tell: admission and defaults have changed it. The value means nothing to anybody else.
const PodTemplateSpecHashAnnotation = "agents.x-k8s.io/pod-template-spec-hash"

// OutOfDate says whether the Pod is known to be made from another podTemplate.spec than the Sandbox has now. Of a Pod that was
// adopted, or made before Pods were marked, nothing is known.
func OutOfDate(sandbox *agentsv1beta1.Sandbox, pod *corev1.Pod) bool {
	made := pod.Annotations[PodTemplateSpecHashAnnotation]
	if made == "" {
		return false
	}
	current, err := templateSpecHash(&sandbox.Spec.PodTemplate.Spec)
	return err == nil && made != current
}

// templateSpecHash returns a hash of what the author of the spec has chosen. What defaulting has filled in, or would, does not
// count, and neither does what is empty. So the hash outlives a release that knows more fields or more defaults than the one
// that made the Pod.
func templateSpecHash(spec *corev1.PodSpec) (string, error) {
	chosen, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec)
	if err != nil {
		return "", fmt.Errorf("encoding the podTemplate: %w", err)
	}
	defaults, err := defaultsFor(chosen)
	if err != nil {
		return "", err
	}
	remainder, _ := subtract(chosen, defaults)
	encoded, err := json.Marshal(remainder)
	if err != nil {
		return "", fmt.Errorf("encoding the podTemplate: %w", err)
	}
	hash := fnv.New64a()
	hash.Write(encoded)
	return fmt.Sprintf("%016x", hash.Sum64()), nil
}

// defaultsFor returns the values that defaulting gives to a spec of this structure in which no value is set.
func defaultsFor(chosen map[string]any) (map[string]any, error) {
	skeleton, _ := structure(chosen).(map[string]any)
	var sandbox agentsv1beta1.Sandbox
	spec := &sandbox.Spec.PodTemplate.Spec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(skeleton, spec); err != nil {
		return nil, fmt.Errorf("decoding the structure of the podTemplate: %w", err)
	}
	agentsv1beta1.SetObjectDefaults_Sandbox(&sandbox)
	defaults, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec)
	if err != nil {
		return nil, fmt.Errorf("encoding the defaults of the podTemplate: %w", err)
	}
	return defaults, nil
}

// structure returns the objects and the lists of objects of a JSON value, without any other value in them.
func structure(value any) any {
	switch value := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for key, field := range value {
			if field := structure(field); field != nil {
				kept[key] = field
			}
		}
		return kept
	case []any:
		var kept []any
		for _, element := range value {
			if element := structure(element); element != nil {
				kept = append(kept, element)
			}
		}
		if kept == nil {
			return nil
		}
		return kept
	default:
		return nil
	}
}

// subtract returns what is in a JSON value and is neither in the other at the same place nor empty, and whether that is anything.
// Elements of lists keep their places, for their order matters.
func subtract(value, other any) (any, bool) {
	switch value := value.(type) {
	case nil:
		return nil, false
	case map[string]any:
		others, _ := other.(map[string]any)
		kept := map[string]any{}
		for key, field := range value {
			if field, some := subtract(field, others[key]); some {
				kept[key] = field
			}
		}
		return kept, len(kept) > 0
	case []any:
		others, _ := other.([]any)
		kept := make([]any, len(value))
		for i, element := range value {
			var counterpart any
			if len(others) == len(value) {
				counterpart = others[i]
			}
			kept[i], _ = subtract(element, counterpart)
		}
		return kept, len(kept) > 0
	default:
		return value, !reflect.DeepEqual(value, other)
	}
}
