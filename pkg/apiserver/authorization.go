// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// garbageCollector is who collects garbage in a cluster whose controllers each have an identity of their own.
const garbageCollector = "system:serviceaccount:kube-system:generic-garbage-collector"

// garbageCollection are the verbs with which it does so, one object at a time.
var garbageCollection = sets.New("get", "patch", "update", "delete")

// namesLast asks about the garbage collector first whether it may do something with all objects of a resource, and only then about the one
// that it names. Answers are remembered by what was asked: each object that it looks at would be a request to kube-apiserver otherwise,
// thousands when a namespace goes, and the number of these in a second is bounded for all clients together.
//
// Of others names are asked about first, because an authorizer may forbid what is allowed for all names but one. kube-apiserver asks its
// own for each request that it passes on; the garbage collector sends no others.
type namesLast struct{ authorizer.Authorizer }

// Authorize implements authorizer.Authorizer.
func (a namesLast) Authorize(ctx context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	if collectsGarbage(attributes) {
		decision, reason, err := a.Authorizer.Authorize(ctx, anyName{attributes})
		if decision == authorizer.DecisionAllow || err != nil {
			return decision, reason, err
		}
	}
	return a.Authorizer.Authorize(ctx, attributes)
}

func collectsGarbage(attributes authorizer.Attributes) bool {
	user := attributes.GetUser()
	return user != nil && user.GetName() == garbageCollector && attributes.IsResourceRequest() && attributes.GetName() != "" &&
		garbageCollection.Has(attributes.GetVerb())
}

// anyName are the attributes of the same request for whichever object.
type anyName struct{ authorizer.Attributes }

// GetName implements authorizer.Attributes.
func (anyName) GetName() string { return "" }
