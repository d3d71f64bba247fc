// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// selectableFields are the fields that a field selector may use, by kind.
var selectableFields = map[string][]string{
	"SandboxTemplate": {"metadata.name", "metadata.namespace"},
	"SandboxWarmPool": {"metadata.name", "metadata.namespace"},
	"SandboxClaim":    {"metadata.name", "metadata.namespace", "spec.warmPoolRef.name", "status.sandbox.name"},
}

// addFieldLabelConversions registers selectableFields. Without it every selector on this version is refused, metadata.name included.
func addFieldLabelConversions(scheme *runtime.Scheme) error {
	for kind, selectable := range selectableFields {
		err := scheme.AddFieldLabelConversionFunc(SchemeGroupVersion.WithKind(kind), func(label, value string) (string, string, error) {
			if !slices.Contains(selectable, label) {
				return "", "", fmt.Errorf("field label not supported: %s", label)
			}
			return label, value, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
