// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"

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
	registrytest.Standard[*extensions.SandboxTemplate]{
		NewStore: newStore,
		Valid:    validTemplate,
		Change:   func(t *extensions.SandboxTemplate) { t.Spec.PodTemplate.Spec.Containers[0].Image = "other" },
		Spoil:    func(t *extensions.SandboxTemplate) { t.Spec.NetworkPolicyManagement = "None" },
	}.Test(t)
}

func newStore(t *testing.T) *genericregistry.Store {
	t.Helper()
	scheme := runtime.NewScheme()
	install.Install(scheme)
	codec := registrytest.Codec(t, scheme, extensions.SchemeGroupVersion, v1beta1.SchemeGroupVersion)
	templates, err := storage.NewREST(scheme, registrytest.RESTOptions(codec, extensions.Resource("sandboxtemplates"), registrytest.StartEtcd(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(templates.Destroy)
	return templates.Store
}
