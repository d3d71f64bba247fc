// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

func TestPodWatch(t *testing.T) {
	pod := func(uid, owner types.UID) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "box", UID: uid}}
		if owner != "" {
			pod.OwnerReferences = []metav1.OwnerReference{{Kind: "Sandbox", Name: "box", UID: owner, Controller: new(true)}}
		}
		return pod
	}
	for name, test := range map[string]struct {
		events []watch.Event
		fails  bool
	}{
		"one after the other": {events: []watch.Event{
			{Type: watch.Added, Object: pod("1", "a")}, {Type: watch.Modified, Object: pod("1", "a")}, {Type: watch.Deleted, Object: pod("1", "a")},
			{Type: watch.Added, Object: pod("2", "a")}, {Type: watch.Added, Object: pod("3", "b")},
		}},
		"two at once": {fails: true, events: []watch.Event{
			{Type: watch.Added, Object: pod("1", "a")}, {Type: watch.Added, Object: pod("2", "a")}, {Type: watch.Deleted, Object: pod("1", "a")},
		}},
		"nobody's":         {fails: true, events: []watch.Event{{Type: watch.Added, Object: pod("1", "a")}, {Type: watch.Added, Object: pod("2", "")}}},
		"none":             {fails: true},
		"what is no event": {fails: true, events: []watch.Event{{Type: watch.Added, Object: pod("1", "a")}, {Type: watch.Error, Object: &metav1.Status{}}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newPodWatch(watch.NewFake())
			for _, event := range test.events {
				w.count(event)
			}
			go w.run()
			if err := w.Stop(); (err != nil) != test.fails {
				t.Errorf("error is %v, want one: %t", err, test.fails)
			}
		})
	}
}
