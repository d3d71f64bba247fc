// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateTime refuses a time that is valid as it was sent (9999-12-31T23:59:59-01:00, or any number of seconds in protobuf) and that
// no client could read once it is written in UTC: stored, it would make every list that holds it undecodable.
func ValidateTime(time *metav1.Time, path *field.Path) field.ErrorList {
	if readable(time) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, field.OmitValueType{}, "the year in UTC must have four digits")}
}

// ManagedFieldsRules do so for the times that come with the owners of fields, which clients may send too.
func ManagedFieldsRules() []Rule[metav1.ObjectMeta] {
	return []Rule[metav1.ObjectMeta]{{
		Subject: func(m *metav1.ObjectMeta) any { return unreadableTimes(m.ManagedFields) },
		Check: func(m *metav1.ObjectMeta) field.ErrorList {
			return validateManagedFields(m.ManagedFields, field.NewPath("metadata", "managedFields"))
		},
	}}
}

func validateManagedFields(entries []metav1.ManagedFieldsEntry, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range entries {
		errs = append(errs, ValidateTime(entries[i].Time, path.Index(i).Child("time"))...)
	}
	return errs
}

// unreadableTimes returns those times that validateManagedFields refuses. Every write changes the entries; these it does not.
func unreadableTimes(entries []metav1.ManagedFieldsEntry) []metav1.Time {
	var times []metav1.Time
	for i := range entries {
		if !readable(entries[i].Time) {
			times = append(times, *entries[i].Time)
		}
	}
	return times
}

// readable says whether RFC 3339, whose years have four digits, has a form for the time.
func readable(time *metav1.Time) bool {
	if time == nil {
		return true
	}
	year := time.UTC().Year()
	return year >= 0 && year <= 9999
}
