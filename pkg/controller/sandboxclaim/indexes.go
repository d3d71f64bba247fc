// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxclaim

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/sandboxpod"
)

// The informers are shared with other controllers, which have indexes of their own.
const (
	// poolIndex finds claims by the pool that they name.
	poolIndex = loopName + "/pool"
	// templateIndex finds pools by the template that they name.
	templateIndex = loopName + "/template"
	// ownerIndex finds Sandboxes by the UID of the pool or claim that controls them.
	ownerIndex = loopName + "/owner"
)

func indexClaimByPool(obj any) ([]string, error) {
	claim, ok := obj.(*extensionsv1beta1.SandboxClaim)
	if !ok {
		return nil, fmt.Errorf("%T is no claim", obj)
	}
	return []string{nameKey(claim.Namespace, claim.Spec.WarmPoolRef.Name)}, nil
}

func indexPoolByTemplate(obj any) ([]string, error) {
	pool, ok := obj.(*extensionsv1beta1.SandboxWarmPool)
	if !ok {
		return nil, fmt.Errorf("%T is no pool", obj)
	}
	return []string{nameKey(pool.Namespace, pool.Spec.SandboxTemplateRef.Name)}, nil
}

func indexSandboxByOwner(obj any) ([]string, error) {
	sandbox, ok := obj.(*agentsv1beta1.Sandbox)
	if !ok {
		return nil, fmt.Errorf("%T is no Sandbox", obj)
	}
	owner := sandboxpod.ExtensionsOwner(sandbox)
	if owner == nil {
		return nil, nil
	}
	return []string{ownerKey(sandbox.Namespace, owner.UID)}, nil
}

func nameKey(namespace, name string) string { return namespace + "/" + name }

// ownerKey has the namespace in it because nothing stops a user from writing the UID of an object in another namespace into a reference.
func ownerKey(namespace string, uid types.UID) string { return namespace + "/" + string(uid) }

// lookUp returns the objects that an index has under a key.
func lookUp[T metav1.Object](indexer cache.Indexer, index, key string) ([]T, error) {
	found, err := indexer.ByIndex(index, key)
	if err != nil {
		return nil, fmt.Errorf("looking into the index %s: %w", index, err)
	}
	objects := make([]T, 0, len(found))
	for _, obj := range found {
		if object, ok := obj.(T); ok {
			objects = append(objects, object)
		}
	}
	return objects, nil
}
