// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
)

// addFieldLabelConversions names the fields that a field selector may use. Without it every selector on this version is
// refused, metadata.name included.
func addFieldLabelConversions(scheme *runtime.Scheme) error {
	return scheme.AddFieldLabelConversionFunc(SchemeGroupVersion.WithKind("Sandbox"), func(label, value string) (string, string, error) {
		switch label {
		case "metadata.name", "metadata.namespace":
			return label, value, nil
		default:
			return "", "", fmt.Errorf("field label not supported: %s", label)
		}
	})
}
