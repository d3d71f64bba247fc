// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxwarmpool

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/message"
)

func TestStatusTellsTheCauseBeforeItsConsequences(t *testing.T) {
	for name, test := range map[string]struct {
		outcome outcome
		want    metav1.Condition
	}{
		"nothing wrong": {outcome{}, metav1.Condition{Status: "True", Reason: "Progressing", Message: progressingMessage}},
		"all wrong":     {outcome{templateMissing: true, refusal: "quota", unschedulable: 1}, metav1.Condition{Status: "False", Reason: "TemplateNotFound", Message: `SandboxTemplate "python" not found`}},
		"refused":       {outcome{refusal: "quota", unschedulable: 1}, metav1.Condition{Status: "False", Reason: "FailedCreate", Message: "quota"}},
		"a long story":  {outcome{refusal: strings.Repeat("x", message.MaxCondition+1)}, metav1.Condition{Status: "False", Reason: "FailedCreate", Message: strings.Repeat("x", message.MaxCondition)}},
		"no place": {outcome{unschedulable: 1, replicas: 4, grace: time.Minute}, metav1.Condition{Status: "False", Reason: "Unschedulable", Message: "1/4 sandboxes are unschedulable past the " +
			"1m0s readiness grace period; holding them instead of replacing (replacements would be equally unschedulable)"}},
	} {
		t.Run(name, func(t *testing.T) {
			test.want.Type, test.want.ObservedGeneration, test.want.LastTransitionTime = "Progressing", 2, metav1.NewTime(testTime())
			test.outcome.members, test.outcome.ready = 3, 2
			want := &extensionsv1beta1.SandboxWarmPoolStatus{
				Replicas: 3, ReadyReplicas: 2, ObservedGeneration: 2, Selector: selector(newPool(1)), Conditions: []metav1.Condition{test.want},
			}
			if diff := cmp.Diff(want, observedStatus(newPool(1), &test.outcome, testTime())); diff != "" {
				t.Errorf("status differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEventsTellOfTransitionsOnly(t *testing.T) {
	fine, missing, refused, homeless := outcome{}, outcome{templateMissing: true}, outcome{refusal: "quota"}, outcome{unschedulable: 1}
	for name, test := range map[string]struct {
		before *outcome
		after  outcome
		want   string
	}{
		"new and fine":       {nil, fine, ""},
		"new and not":        {nil, missing, "TemplateNotFound"},
		"still fine":         {&fine, fine, ""},
		"still refused":      {&refused, outcome{refusal: "another quota"}, ""},
		"no longer fine":     {&fine, refused, "FailedCreate"},
		"from bad to worse":  {&homeless, refused, "FailedCreate"},
		"no longer any room": {&fine, homeless, "WarmPoolNotProgressing"},
		"fine again":         {&homeless, fine, "WarmPoolProgressing"},
	} {
		before := newPool(1)
		if test.before != nil {
			before.Status = *observedStatus(before, test.before, testTime())
		}
		event, ok := transitionEvent(&before.Status, observedStatus(before, &test.after, testTime()))
		if event.reason != test.want || ok != (test.want != "") {
			t.Errorf("%s: event %q", name, event.reason)
		}
	}
}
