// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
)

func testTime() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func owner(namespace string, created time.Time) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "owner", CreationTimestamp: metav1.NewTime(created)}}
}

func refusal() error {
	err := apierrors.NewForbidden(corev1.Resource("pods"), "p", nil)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return err
}

func TestTerminatingNamespaceIsAskedOnce(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(testTime())
	terminating := NewTerminating(clock)
	asked := 0
	create := func(owner *corev1.Pod) error {
		_, err := Create(terminating, owner, func() (*corev1.Pod, error) { asked++; return nil, refusal() })
		return err
	}
	before := testTime().Add(-time.Minute)
	for name, step := range map[string]*corev1.Pod{"first": owner("going", before), "again": owner("going", before)} {
		if err := create(step); !IsTerminating(err) {
			t.Errorf("%s: error is %v", name, err)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	for name, other := range map[string]*corev1.Pod{
		"another namespace":     owner("staying", before),
		"a new one of the name": owner("going", testTime().Add(time.Second)),
	} {
		if terminating.Holds(other) {
			t.Errorf("%s is taken for the one that goes", name)
		}
	}
	clock.SetTime(testTime().Add(TerminatingDelay))
	if terminating.Holds(owner("going", before)) {
		t.Error("the refusal is believed for ever")
	}
}

func TestCreateOrGetTakesWhatExists(t *testing.T) {
	exists := apierrors.NewAlreadyExists(corev1.Resource("pods"), "p")
	forbidden := apierrors.NewForbidden(corev1.Resource("pods"), "p", nil)
	missing := apierrors.NewNotFound(corev1.Resource("pods"), "p")
	unavailable := apierrors.NewServiceUnavailable("no endpoints")
	pod := owner("tenant", testTime())
	for name, test := range map[string]struct {
		create, get, want error
		created, found    bool
	}{
		"created":                     {create: nil, created: true, found: true},
		"exists":                      {create: exists, found: true},
		"exists, then does not":       {create: exists, get: missing, want: exists},
		"refused, exists":             {create: forbidden, found: true},
		"refused, does not exist":     {create: forbidden, get: missing, want: forbidden},
		"refused, nobody can tell":    {create: forbidden, get: unavailable, want: unavailable},
		"not answered, not looked at": {create: unavailable, want: unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			answer := func(err error) func() (*corev1.Pod, error) {
				return func() (*corev1.Pod, error) {
					if err != nil {
						return nil, err
					}
					return pod, nil
				}
			}
			got, created, err := CreateOrGet(NewTerminating(clocktesting.NewFakePassiveClock(testTime())), pod, answer(test.create), answer(test.get))
			if created != test.created || (got != nil) != test.found || err != test.want { //nolint:errorlint // the very error
				t.Errorf("%v, created %v, %v", got, created, err)
			}
		})
	}
}
