// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxwarmpool

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/client-go/tools/cache"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/claimedsandbox"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/sandboxpod"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/sandboxtemplate"
)

// memberIndex finds the Sandboxes that a pool controls, by memberKey, and those that nobody does and that have the label of a pool, by
// orphanKey.
const memberIndex = "warmpool"

// memberKey contains the namespace because nothing stops a user from writing the UID of a pool in another one into a reference.
func memberKey(namespace string, uid string) string { return "member/" + namespace + "/" + uid }

func orphanKey(namespace, poolHash string) string { return "orphan/" + namespace + "/" + poolHash }

func memberIndexers() cache.Indexers {
	return cache.Indexers{memberIndex: func(obj any) ([]string, error) {
		sandbox, ok := obj.(*agentsv1beta1.Sandbox)
		if !ok {
			return nil, fmt.Errorf("object of type %T is no Sandbox", obj)
		}
		if owner := poolOwner(sandbox); owner != nil {
			return []string{memberKey(sandbox.Namespace, string(owner.UID))}, nil
		}
		if hash := sandbox.Labels[agentsv1beta1.WarmPoolSandboxLabel]; hash != "" && metav1.GetControllerOfNoCopy(sandbox) == nil {
			return []string{orphanKey(sandbox.Namespace, hash)}, nil
		}
		return nil, nil
	}}
}

// poolOwner returns the controller of the Sandbox if it is a pool.
func poolOwner(sandbox *agentsv1beta1.Sandbox) *metav1.OwnerReference {
	if owner := sandboxpod.ExtensionsOwner(sandbox); owner != nil && owner.Kind == sandboxpod.WarmPoolKind {
		return owner
	}
	return nil
}

func owns(pool *extensionsv1beta1.SandboxWarmPool, sandbox *agentsv1beta1.Sandbox) bool {
	owner := poolOwner(sandbox)
	return owner != nil && owner.UID == pool.UID && sandbox.Namespace == pool.Namespace
}

func controllerRef(pool *extensionsv1beta1.SandboxWarmPool) metav1.OwnerReference {
	return *metav1.NewControllerRef(pool, extensionsv1beta1.SchemeGroupVersion.WithKind(sandboxpod.WarmPoolKind))
}

// selector is the label selector that finds the members of a pool, and their Pods.
func selector(pool *extensionsv1beta1.SandboxWarmPool) string {
	return agentsv1beta1.WarmPoolSandboxLabel + "=" + naming.Hash(pool.Name)
}

// namePrefix is what the names of the members of a pool begin with.
func namePrefix(pool *extensionsv1beta1.SandboxWarmPool) string { return pool.Name + "-" }

// newName returns a name for a member as the API server would generate it.
func newName(pool *extensionsv1beta1.SandboxWarmPool) cache.ObjectName {
	return cache.NewObjectName(pool.Namespace, names.SimpleNameGenerator.GenerateName(namePrefix(pool)))
}

// newMember returns the Sandbox that a pool makes from its template. With evictable, the cluster autoscaler may remove its Pod, unless the
// template has its own opinion about that.
func newMember(pool *extensionsv1beta1.SandboxWarmPool, template *extensionsv1beta1.SandboxTemplate, name string, evictable bool) *agentsv1beta1.Sandbox {
	member := &agentsv1beta1.Sandbox{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       pool.Namespace,
			Name:            name,
			GenerateName:    namePrefix(pool),
			Annotations:     map[string]string{agentsv1beta1.SandboxTemplateRefAnnotation: template.Name},
			OwnerReferences: []metav1.OwnerReference{controllerRef(pool)},
		},
		Spec: agentsv1beta1.SandboxSpec{
			SandboxBlueprint: sandboxtemplate.Blueprint(template),
			OperatingMode:    agentsv1beta1.SandboxOperatingModeRunning,
		},
	}
	metadata := &member.Spec.PodTemplate.Metadata
	for key, value := range map[string]string{
		agentsv1beta1.WarmPoolSandboxLabel:        naming.Hash(pool.Name),
		agentsv1beta1.SandboxTemplateRefHashLabel: naming.Hash(template.Name),
		agentsv1beta1.SandboxTemplateHashLabel:    sandboxtemplate.Hash(template),
		agentsv1beta1.CreatedByLabel:              agentsv1beta1.CreatedByController,
	} {
		setLabel(&member.Labels, key, value)
		setLabel(&metadata.Labels, key, value)
	}
	setLabel(&member.Labels, agentsv1beta1.LaunchTypeLabel, agentsv1beta1.LaunchTypeWarm)
	if _, decided := metadata.Annotations[agentsv1beta1.SafeToEvictAnnotation]; evictable && !decided {
		setLabel(&metadata.Annotations, agentsv1beta1.SafeToEvictAnnotation, "true")
	}
	return member
}

// marked returns the member with the owner and the labels that make it one, or nil if it has them. Without the labels it would never be
// given to a claim.
func marked(pool *extensionsv1beta1.SandboxWarmPool, template *extensionsv1beta1.SandboxTemplate, sandbox *agentsv1beta1.Sandbox) *agentsv1beta1.Sandbox {
	owned, poolHash, hasTemplate := owns(pool, sandbox), naming.Hash(pool.Name), sandbox.Labels[agentsv1beta1.SandboxTemplateRefHashLabel] != ""
	if owned && sandbox.Labels[agentsv1beta1.WarmPoolSandboxLabel] == poolHash &&
		sandbox.Labels[agentsv1beta1.LaunchTypeLabel] == agentsv1beta1.LaunchTypeWarm && (hasTemplate || template == nil) {
		return nil
	}
	changed := sandbox.DeepCopy()
	if !owned {
		changed.OwnerReferences = append(changed.OwnerReferences, controllerRef(pool))
	}
	setLabel(&changed.Labels, agentsv1beta1.WarmPoolSandboxLabel, poolHash)
	setLabel(&changed.Labels, agentsv1beta1.LaunchTypeLabel, agentsv1beta1.LaunchTypeWarm)
	if !hasTemplate && template != nil {
		setLabel(&changed.Labels, agentsv1beta1.SandboxTemplateRefHashLabel, naming.Hash(template.Name))
	}
	return changed
}

// adoptable says whether the pool may become the controller of a Sandbox that nobody controls: it is what the pool would make, and could
// be given to a claim then.
func adoptable(pool *extensionsv1beta1.SandboxWarmPool, template *extensionsv1beta1.SandboxTemplate, orphan *agentsv1beta1.Sandbox) bool {
	adopted := marked(pool, template, orphan)
	return adopted != nil && claimedsandbox.Adoptable(adopted, pool) &&
		adopted.Labels[agentsv1beta1.SandboxTemplateRefHashLabel] == naming.Hash(template.Name) && sandboxtemplate.Matches(template, orphan)
}

func setLabel(labels *map[string]string, key, value string) {
	if *labels == nil {
		*labels = map[string]string{}
	}
	(*labels)[key] = value
}
