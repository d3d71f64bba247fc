// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package registrytest

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	genericregistrytest "k8s.io/apiserver/pkg/registry/generic/testing"
)

// Object is an object of any kind.
type Object interface {
	runtime.Object
	metav1.Object
}

// Standard is what the library's own suite for stored resources must know of a kind, whose objects are of type O.
type Standard[O Object] struct {
	// NewStore returns the store of the kind, over an etcd of its own.
	NewStore func(t *testing.T) *genericregistry.Store
	// Valid returns an object that may be stored.
	Valid func() O
	// Change makes another object that may be stored out of a valid one, and Spoil one that may not.
	Change, Spoil func(O)
}

// Test runs the suite.
func (s Standard[O]) Test(t *testing.T) {
	tester := func(t *testing.T) *genericregistrytest.Tester {
		t.Helper()
		return genericregistrytest.New(t, s.NewStore(t))
	}
	with := func(change func(O)) func(runtime.Object) runtime.Object {
		return func(object runtime.Object) runtime.Object {
			change(object.(O))
			return object
		}
	}
	t.Run("create", func(t *testing.T) { tester(t).TestCreate(s.Valid(), with(s.Spoil)(s.Valid())) })
	t.Run("update", func(t *testing.T) { tester(t).TestUpdate(s.Valid(), with(s.Change), with(s.Spoil)) })
	t.Run("delete", func(t *testing.T) { tester(t).TestDelete(s.Valid()) })
	t.Run("get", func(t *testing.T) { tester(t).TestGet(s.Valid()) })
	t.Run("list", func(t *testing.T) { tester(t).TestList(s.Valid()) })
	t.Run("watch", func(t *testing.T) {
		tester(t).TestWatch(s.Valid(),
			[]labels.Set{}, []labels.Set{{"a": "b"}},
			[]fields.Set{{"metadata.name": s.Valid().GetName()}}, []fields.Set{{"metadata.name": "another"}})
	})
}
