// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistrytest "k8s.io/apiserver/pkg/registry/generic/testing"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/install"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/extensions/sandboxtemplate/storage"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/registrytest"
)

func validTemplate() *extensions.SandboxTemplate {
	template := &extensions.SandboxTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: "template", Namespace: registrytest.Namespace},
		Spec: extensions.SandboxTemplateSpec{
			NetworkPolicyManagement:    extensions.NetworkPolicyManagementManaged,
			EnvVarsInjectionPolicy:     extensions.EnvVarsInjectionPolicyDisallowed,
			VolumeClaimTemplatesPolicy: extensions.VolumeClaimTemplatesPolicyDisallowed,
		},
	}
	template.Spec.PodTemplate.Spec.Containers = []corev1.Container{{Name: "main", Image: "image"}}
	return template
}

// TestStandardBehaviour runs the library's own suite for stored resources.
func TestStandardBehaviour(t *testing.T) {
	tester := func(t *testing.T) *genericregistrytest.Tester {
		scheme := runtime.NewScheme()
		install.Install(scheme)
		codec := registrytest.Codec(t, scheme, extensions.SchemeGroupVersion, v1beta1.SchemeGroupVersion)
		templates, err := storage.NewREST(scheme, registrytest.RESTOptions(codec, extensions.Resource("sandboxtemplates"), registrytest.StartEtcd(t)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(templates.Destroy)
		return genericregistrytest.New(t, templates.Store)
	}
	t.Run("create", func(t *testing.T) {
		invalid := validTemplate()
		invalid.Spec.PodTemplate.Spec.Containers = nil
		tester(t).TestCreate(validTemplate(), invalid)
	})
	t.Run("update", func(t *testing.T) {
		tester(t).TestUpdate(validTemplate(), func(obj runtime.Object) runtime.Object {
			template := obj.(*extensions.SandboxTemplate)
			template.Spec.PodTemplate.Spec.Containers[0].Image = "other"
			return template
		}, func(obj runtime.Object) runtime.Object {
			template := obj.(*extensions.SandboxTemplate)
			template.Spec.NetworkPolicyManagement = "None"
			return template
		})
	})
	t.Run("delete", func(t *testing.T) { tester(t).TestDelete(validTemplate()) })
	t.Run("get", func(t *testing.T) { tester(t).TestGet(validTemplate()) })
	t.Run("list", func(t *testing.T) { tester(t).TestList(validTemplate()) })
	t.Run("watch", func(t *testing.T) {
		tester(t).TestWatch(validTemplate(),
			[]labels.Set{}, []labels.Set{{"a": "b"}},
			[]fields.Set{{"metadata.name": "template"}}, []fields.Set{{"metadata.name": "other"}})
	})
}
