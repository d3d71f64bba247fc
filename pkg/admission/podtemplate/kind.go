// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/sandboxtemplate"
)

// kind is a kind whose objects lead to Pods.
type kind struct {
	name string
	// sandbox returns a Sandbox that the object is, or would lead to. It has the name of the object.
	sandbox func(runtime.Object) (*agentsv1beta1.Sandbox, error)
}

// kinds are those that the plugin looks at.
var kinds = map[schema.GroupResource]kind{
	agents.Resource("sandboxes"):            {"Sandbox", sandboxItself},
	extensions.Resource("sandboxtemplates"): {"SandboxTemplate", sandboxOfTemplate},
}

func sandboxItself(obj runtime.Object) (*agentsv1beta1.Sandbox, error) {
	sandbox, ok := obj.(*agents.Sandbox)
	if !ok {
		return nil, fmt.Errorf("not a Sandbox: %T", obj)
	}
	versioned := &agentsv1beta1.Sandbox{}
	if err := agentsv1beta1.Convert_agents_Sandbox_To_v1beta1_Sandbox(sandbox, versioned, nil); err != nil {
		return nil, fmt.Errorf("converting sandbox %s/%s: %w", sandbox.Namespace, sandbox.Name, err)
	}
	return versioned, nil
}

func sandboxOfTemplate(obj runtime.Object) (*agentsv1beta1.Sandbox, error) {
	template, ok := obj.(*extensions.SandboxTemplate)
	if !ok {
		return nil, fmt.Errorf("not a SandboxTemplate: %T", obj)
	}
	versioned := &extensionsv1beta1.SandboxTemplate{}
	if err := extensionsv1beta1.Convert_extensions_SandboxTemplate_To_v1beta1_SandboxTemplate(template, versioned, nil); err != nil {
		return nil, fmt.Errorf("converting sandboxtemplate %s/%s: %w", template.Namespace, template.Name, err)
	}
	sandbox := &agentsv1beta1.Sandbox{Spec: agentsv1beta1.SandboxSpec{SandboxBlueprint: sandboxtemplate.Blueprint(versioned)}}
	sandbox.Name = template.Name
	return sandbox, nil
}

// changedSandbox returns the Sandbox that is to be looked at, in the namespace of the request, or nil if there is nothing to look at: the
// object is being deleted, or its Pod would be the same as before.
func changedSandbox(kind kind, a admission.Attributes) (*agentsv1beta1.Sandbox, error) {
	object, err := meta.Accessor(a.GetObject())
	if err != nil || object.GetDeletionTimestamp() != nil {
		return nil, err
	}
	sandbox, err := kind.sandbox(a.GetObject())
	if err != nil {
		return nil, err
	}
	sandbox.Namespace = a.GetNamespace()
	if a.GetOldObject() == nil {
		return sandbox, nil
	}
	old, err := kind.sandbox(a.GetOldObject())
	if err != nil {
		return nil, err
	}
	if apiequality.Semantic.DeepEqual(sandbox.Spec.PodTemplate, old.Spec.PodTemplate) &&
		apiequality.Semantic.DeepEqual(sandbox.Spec.VolumeClaimTemplates, old.Spec.VolumeClaimTemplates) {
		return nil, nil
	}
	return sandbox, nil
}
