// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateConditionsUpdate returns what is wrong with a change of conditions.
func ValidateConditionsUpdate(conditions, old []metav1.Condition, path *field.Path) field.ErrorList {
	if apiequality.Semantic.DeepEqual(conditions, old) {
		return nil
	}
	errs := metav1validation.ValidateConditions(conditions, path)
	for i := range conditions {
		errs = append(errs, ValidateTime(&conditions[i].LastTransitionTime, path.Index(i).Child("lastTransitionTime"))...)
	}
	return errs
}
