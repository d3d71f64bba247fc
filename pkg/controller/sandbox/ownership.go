// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/sandboxpod"
)

const (
	kind = "Sandbox"

	// controllerIndex finds objects by the Sandbox that controls them.
	controllerIndex = "controller"
)

// relation says what an object is to a Sandbox.
type relation int

const (
	// unowned objects have no controller.
	unowned relation = iota
	// owned objects are controlled by the Sandbox itself, by UID.
	owned
	// foreign objects are controlled by something else.
	foreign
)

func relationTo(sandbox *agentsv1beta1.Sandbox, object metav1.Object) relation {
	ref := metav1.GetControllerOfNoCopy(object)
	switch {
	case ref == nil:
		return unowned
	case isSandboxRef(ref) && ref.UID == sandbox.UID && object.GetNamespace() == sandbox.Namespace:
		return owned
	default:
		return foreign
	}
}

// isSandboxRef compares the group and the kind but not the version: a reference outlives the version it was written with.
func isSandboxRef(ref *metav1.OwnerReference) bool {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && gv.Group == agentsv1beta1.GroupName && ref.Kind == kind
}

// claimed says whether the Sandbox is a claim's.
func claimed(sandbox *agentsv1beta1.Sandbox) bool {
	owner := sandboxpod.ExtensionsOwner(sandbox)
	return owner != nil && owner.Kind == sandboxpod.ClaimKind
}

// adoptable says whether the Sandbox may become the controller of an object that has none.
func adoptable(sandbox *agentsv1beta1.Sandbox, object metav1.Object) bool {
	labels := object.GetLabels()
	return object.GetDeletionTimestamp() == nil &&
		(labels[agentsv1beta1.AdoptableLabel] == "true" || labels[agentsv1beta1.SandboxNameHashLabel] == naming.Hash(sandbox.Name))
}

// checkUsable returns an error if the Sandbox neither controls the object nor may adopt it. The noun names the kind of the
// object in the error.
func checkUsable(sandbox *agentsv1beta1.Sandbox, object metav1.Object, noun string) error {
	switch relationTo(sandbox, object) {
	case owned:
		return nil
	case unowned:
		if adoptable(sandbox, object) {
			return nil
		}
		return fmt.Errorf("cannot adopt unowned %s %q: it has neither the label %s=true nor the %s of sandbox %q",
			noun, object.GetName(), agentsv1beta1.AdoptableLabel, agentsv1beta1.SandboxNameHashLabel, sandbox.Name)
	default:
		ref := metav1.GetControllerOfNoCopy(object)
		return fmt.Errorf("%s %q is owned by %s/%s (UID: %s), not by sandbox %q", noun, object.GetName(), ref.Kind, ref.Name, ref.UID, sandbox.Name)
	}
}

// setOwner makes the Sandbox the controller of an object that has none, and marks the object as the Sandbox's.
func setOwner(sandbox *agentsv1beta1.Sandbox, object metav1.Object) {
	if relationTo(sandbox, object) == unowned {
		object.SetOwnerReferences(append(object.GetOwnerReferences(), sandboxpod.ControllerRef(sandbox)))
	}
	object.SetLabels(withLabel(object.GetLabels(), agentsv1beta1.SandboxNameHashLabel, naming.Hash(sandbox.Name)))
}

func withLabel(labels map[string]string, key, value string) map[string]string {
	if labels == nil {
		labels = map[string]string{}
	}
	labels[key] = value
	return labels
}

// controllerIndexKey is the key of a Sandbox in controllerIndex. The namespace is part of it because nothing stops a user from
// writing the UID of a Sandbox in another namespace into a reference.
func controllerIndexKey(namespace string, ref *metav1.OwnerReference) string {
	return namespace + "/" + string(ref.UID)
}

func controllerIndexers() cache.Indexers {
	return cache.Indexers{controllerIndex: func(obj any) ([]string, error) {
		object, ok := obj.(metav1.Object)
		if !ok {
			return nil, fmt.Errorf("object of type %T has no metadata", obj)
		}
		ref := metav1.GetControllerOfNoCopy(object)
		if ref == nil || !isSandboxRef(ref) {
			return nil, nil
		}
		return []string{controllerIndexKey(object.GetNamespace(), ref)}, nil
	}}
}
