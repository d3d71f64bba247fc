// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	apimachineryvalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	agentsvalidation "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/validation"
)

// validateMeta returns what is wrong with the metadata of an object that is about to be created, be it of whatever kind.
func validateMeta(meta *metav1.ObjectMeta) field.ErrorList {
	return apimachineryvalidation.ValidateObjectMeta(meta, true, apimachineryvalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
}

func validateMetaUpdate(meta, old *metav1.ObjectMeta) field.ErrorList {
	return apimachineryvalidation.ValidateObjectMetaUpdate(meta, old, field.NewPath("metadata"))
}

func metaRules[T any](meta func(*T) *metav1.ObjectMeta) []agentsvalidation.Rule[T] {
	return agentsvalidation.RulesOf(meta, agentsvalidation.ManagedFieldsRules())
}

// enumRule is the rule that a field has one of the given values.
func enumRule[T any, E ~string](path *field.Path, value func(*T) E, supported ...E) agentsvalidation.Rule[T] {
	return agentsvalidation.Rule[T]{
		Subject: func(obj *T) any { return value(obj) },
		Check: func(obj *T) field.ErrorList {
			if known := sets.New(supported...); !known.Has(value(obj)) {
				return field.ErrorList{field.NotSupported(path, value(obj), sets.List(known))}
			}
			return nil
		},
	}
}

// nonNegativeRule is the rule that a field is not less than zero.
func nonNegativeRule[T any](path *field.Path, value func(*T) int64) agentsvalidation.Rule[T] {
	return agentsvalidation.Rule[T]{
		Subject: func(obj *T) any { return value(obj) },
		Check:   func(obj *T) field.ErrorList { return apimachineryvalidation.ValidateNonnegativeField(value(obj), path) },
	}
}

// orZero returns the number, or zero if there is none.
func orZero(n *int32) int64 {
	if n == nil {
		return 0
	}
	return int64(*n)
}

// nameRule is the rule that a field names an object.
func nameRule[T any](path *field.Path, name func(*T) string) agentsvalidation.Rule[T] {
	return agentsvalidation.Rule[T]{
		Subject: func(obj *T) any { return name(obj) },
		Check: func(obj *T) field.ErrorList {
			if name(obj) == "" {
				return field.ErrorList{field.Required(path, "")}
			}
			var errs field.ErrorList
			for _, msg := range apimachineryvalidation.NameIsDNSSubdomain(name(obj), false) {
				errs = append(errs, field.Invalid(path, name(obj), msg))
			}
			return errs
		},
	}
}
