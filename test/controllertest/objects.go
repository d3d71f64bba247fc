// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package controllertest

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	ktesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	sandboxscheme "github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned/scheme"
)

// ours says whether an object is of a kind of this project.
func ours(object runtime.Object) bool {
	_, _, err := sandboxscheme.Scheme.ObjectKinds(object)
	return err == nil
}

// resourceOf returns the resource that an object is one of.
func resourceOf(object runtime.Object) schema.GroupVersionResource {
	if _, ok := object.(*agentsv1beta1.Sandbox); ok {
		// The plural would be guessed wrong.
		return agentsv1beta1.SchemeGroupVersion.WithResource("sandboxes")
	}
	known := scheme.Scheme
	if ours(object) {
		known = sandboxscheme.Scheme
	}
	kinds, _, err := known.ObjectKinds(object)
	if err != nil {
		panic(err)
	}
	resource, _ := meta.UnsafeGuessKindToResource(kinds[0])
	return resource
}

// tracker returns what the server of an object keeps.
func (w *World[F]) tracker(object runtime.Object) ktesting.ObjectTracker {
	if ours(object) {
		return w.Server.Tracker()
	}
	return w.Kube.Tracker()
}

// OnServer puts new objects where live reads and writes find them.
func (w *World[F]) OnServer(objects ...runtime.Object) F {
	w.T.Helper()
	for _, object := range objects {
		var err error
		if ours(object) {
			err = w.Server.Tracker().Create(resourceOf(object), object.DeepCopyObject(), namespaceOf(object))
		} else {
			// Create would note who owns which fields.
			err = w.Kube.Tracker().Add(object.DeepCopyObject())
		}
		if err != nil {
			w.T.Fatal(err)
		}
	}
	return w.self
}

// Change replaces objects on the server.
func (w *World[F]) Change(objects ...runtime.Object) {
	w.T.Helper()
	for _, object := range objects {
		if err := w.tracker(object).Update(resourceOf(object), object.DeepCopyObject(), namespaceOf(object)); err != nil {
			w.T.Fatal(err)
		}
	}
}

// Remove removes an object from the server.
func (w *World[F]) Remove(object runtime.Object) {
	w.T.Helper()
	if err := w.tracker(object).Delete(resourceOf(object), namespaceOf(object), object.(metav1.Object).GetName()); err != nil {
		w.T.Fatal(err)
	}
}

// Live returns the object of a name on the server. The kind is that of the example.
func (w *World[F]) Live(example runtime.Object, name string) runtime.Object {
	w.T.Helper()
	object, err := w.tracker(example).Get(resourceOf(example), Namespace, name)
	if err != nil {
		w.T.Fatal(err)
	}
	return object
}

// Sandboxes returns the Sandboxes on the server, by name.
func (w *World[F]) Sandboxes() []*agentsv1beta1.Sandbox {
	w.T.Helper()
	list, err := w.Server.Tracker().List(resourceOf(&agentsv1beta1.Sandbox{}), agentsv1beta1.SchemeGroupVersion.WithKind("Sandbox"), Namespace)
	if err != nil {
		w.T.Fatal(err)
	}
	var found []*agentsv1beta1.Sandbox
	for i := range list.(*agentsv1beta1.SandboxList).Items {
		found = append(found, &list.(*agentsv1beta1.SandboxList).Items[i])
	}
	return found
}

// InCache puts objects where the informers keep them.
func (w *World[F]) InCache(objects ...runtime.Object) F {
	w.T.Helper()
	for _, object := range objects {
		if err := w.Cache(object).Update(object.DeepCopyObject()); err != nil {
			w.T.Fatal(err)
		}
	}
	return w.self
}

// DropFromCache takes an object out of where the informers keep it.
func (w *World[F]) DropFromCache(object runtime.Object) {
	w.T.Helper()
	if err := w.Cache(object).Delete(object); err != nil {
		w.T.Fatal(err)
	}
}

// Cache returns the cache of objects like the given one, of a kind that the controller watches.
func (w *World[F]) Cache(object runtime.Object) cache.Indexer {
	// The controller has made the informer already.
	if ours(object) {
		return w.Informers.InformerFor(object, nil).GetIndexer()
	}
	return w.KubeInformers.InformerFor(object, nil).GetIndexer()
}

// Everywhere puts new objects on the server and in the cache.
func (w *World[F]) Everywhere(objects ...runtime.Object) F {
	w.T.Helper()
	w.OnServer(objects...)
	return w.InCache(objects...)
}

func namespaceOf(object runtime.Object) string { return object.(metav1.Object).GetNamespace() }
