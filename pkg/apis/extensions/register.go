// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package extensions

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the name of the API group that holds SandboxTemplate, SandboxWarmPool and SandboxClaim.
const GroupName = "extensions.agents.x-k8s.io"

// SchemeGroupVersion is the internal version of the group.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: runtime.APIVersionInternal}

// Kind returns the group-qualified kind, for use in API errors.
func Kind(kind string) schema.GroupKind {
	return SchemeGroupVersion.WithKind(kind).GroupKind()
}

// Resource returns the group-qualified resource, for use in API errors and storage.
func Resource(resource string) schema.GroupResource {
	return SchemeGroupVersion.WithResource(resource).GroupResource()
}

// AddToScheme registers the internal types of the group.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion,
		&SandboxTemplate{},
		&SandboxTemplateList{},
		&SandboxWarmPool{},
		&SandboxWarmPoolList{},
		&SandboxClaim{},
		&SandboxClaimList{},
		&SandboxClaimBind{},
	)
	// The scale subresource has one form, that of autoscaling/v1, which is its own hub.
	scheme.AddKnownTypes(schema.GroupVersion{Group: autoscalingv1.GroupName, Version: runtime.APIVersionInternal}, &autoscalingv1.Scale{})
	return nil
}
