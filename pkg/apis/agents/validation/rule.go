// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Rule is a requirement of an object of type T, or of a part of one. In an update it is applied only to a change of what it is about: what
// a stored object came to break through a newer release never stands in the way of other writes.
type Rule[T any] struct {
	// Subject returns what the requirement is about.
	Subject func(*T) any
	// Check returns what is wrong with it.
	Check func(*T) field.ErrorList
}

// RulesOf turns rules for a part of an object into rules for the object.
func RulesOf[T, Part any](part func(*T) *Part, rules []Rule[Part]) []Rule[T] {
	lifted := make([]Rule[T], 0, len(rules))
	for _, rule := range rules {
		lifted = append(lifted, Rule[T]{
			Subject: func(obj *T) any { return rule.Subject(part(obj)) },
			Check:   func(obj *T) field.ErrorList { return rule.Check(part(obj)) },
		})
	}
	return lifted
}

// Check returns what is wrong with an object that is about to be created.
func Check[T any](rules []Rule[T], obj *T) field.ErrorList {
	var errs field.ErrorList
	for _, rule := range rules {
		errs = append(errs, rule.Check(obj)...)
	}
	return errs
}

// CheckChange returns what is wrong with a change of an object.
func CheckChange[T any](rules []Rule[T], obj, old *T) field.ErrorList {
	var errs field.ErrorList
	for _, rule := range rules {
		if !apiequality.Semantic.DeepEqual(rule.Subject(obj), rule.Subject(old)) {
			errs = append(errs, rule.Check(obj)...)
		}
	}
	return errs
}
