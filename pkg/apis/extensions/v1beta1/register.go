// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the name of the API group that holds SandboxTemplate, SandboxWarmPool and SandboxClaim.
const GroupName = "extensions.agents.x-k8s.io"

// SchemeGroupVersion is the group and version of the types in this package.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1beta1"}

var (
	// SchemeBuilder collects what registers this version: types, defaults, conversions and field labels.
	SchemeBuilder      = runtime.NewSchemeBuilder(addKnownTypes, addDefaultingFuncs, addFieldLabelConversions)
	localSchemeBuilder = &SchemeBuilder
	// AddToScheme registers the types of this version with their defaults and conversions.
	AddToScheme = localSchemeBuilder.AddToScheme
)

// Resource returns the group-qualified resource, for use in API errors and by generated listers.
func Resource(resource string) schema.GroupResource {
	return SchemeGroupVersion.WithResource(resource).GroupResource()
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion,
		&SandboxTemplate{},
		&SandboxTemplateList{},
		&SandboxWarmPool{},
		&SandboxWarmPoolList{},
		&SandboxClaim{},
		&SandboxClaimList{},
		&SandboxClaimBind{},
	)
	// The scale subresource speaks autoscaling/v1.
	scheme.AddKnownTypes(autoscalingv1.SchemeGroupVersion, &autoscalingv1.Scale{})
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}
