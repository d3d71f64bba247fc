// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package controllertest

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ktesting "k8s.io/client-go/testing"
)

// Refuse lets the servers answer requests with an error. A subresource follows the resource after a slash; * is any of either.
func (w *World[F]) Refuse(verb, resource string, err error) {
	for _, server := range w.servers() {
		server.PrependReactor(verb, resource, func(ktesting.Action) (bool, runtime.Object, error) { return true, nil, err })
	}
}

// Requests returns what was asked of the servers since the last call, as "verb resource[/subresource]", and whether it was not for good.
func (w *World[F]) Requests() []string {
	var requests []string
	for _, server := range w.servers() {
		for _, action := range server.Actions() {
			requests = append(requests, describe(action))
		}
		server.ClearActions()
	}
	return requests
}

func describe(action ktesting.Action) string {
	request := action.GetVerb() + " " + action.GetResource().Resource
	if action.GetSubresource() != "" {
		request += "/" + action.GetSubresource()
	}
	if IsDryRun(action) {
		request += " (dry run)"
	}
	return request
}

// IsDryRun says whether an action is the creation of what is not to be kept.
func IsDryRun(action ktesting.Action) bool {
	create, ok := action.(ktesting.CreateActionImpl)
	return ok && len(create.CreateOptions.DryRun) > 0
}

// WantRequests checks what was asked of the servers since the last look at it.
func (w *World[F]) WantRequests(want ...string) {
	w.T.Helper()
	WantLines(w.T, "requests", w.Requests(), want)
}

// WantEvents checks what events were recorded since the last call, as "type reason note".
func (w *World[F]) WantEvents(want ...string) {
	w.T.Helper()
	var got []string
	for len(w.Recorder.Events) > 0 {
		got = append(got, <-w.Recorder.Events)
	}
	WantLines(w.T, "events", got, want)
}

// DescribeCondition returns a condition as "Status/Reason: message", or "absent".
func DescribeCondition(conditions []metav1.Condition, conditionType string) string {
	condition := meta.FindStatusCondition(conditions, conditionType)
	if condition == nil {
		return "absent"
	}
	return string(condition.Status) + "/" + condition.Reason + ": " + condition.Message
}

// WantLines compares things that are described in a line each.
func WantLines(t testing.TB, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s are\n\t%s\nwant\n\t%s", what, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}
