// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	agentsinstall "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/install"
	extensionsinstall "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/install"
)

// Serialization is everything that turns requests into objects and back.
type Serialization struct {
	Scheme *runtime.Scheme
	Codecs serializer.CodecFactory
	// ParameterCodec decodes query parameters into our own options kinds. That of meta/v1 would leave them empty without a word.
	ParameterCodec runtime.ParameterCodec
}

// NewSerialization returns a Serialization that knows all our API groups.
func NewSerialization() Serialization {
	scheme := runtime.NewScheme()
	agentsinstall.Install(scheme)
	extensionsinstall.Install(scheme)

	// What every API server answers with, whatever it serves, goes by the bare version v1.
	unversioned := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(scheme, unversioned)
	scheme.AddUnversionedTypes(unversioned,
		&metav1.Status{},
		&metav1.APIVersions{},
		&metav1.APIGroupList{},
		&metav1.APIGroup{},
		&metav1.APIResourceList{},
	)
	return Serialization{
		Scheme:         scheme,
		Codecs:         serializer.NewCodecFactory(scheme),
		ParameterCodec: runtime.NewParameterCodec(scheme),
	}
}
