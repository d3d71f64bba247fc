// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package claimedsandbox

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/sandboxpod"
)

// Controls says whether the Sandbox is the claim's: whether the claim is its controller, by group, kind and UID. Names and the version
// of the reference do not matter.
func Controls(claim *extensionsv1beta1.SandboxClaim, sandbox *agentsv1beta1.Sandbox) bool {
	owner := sandboxpod.ExtensionsOwner(sandbox)
	return owner != nil && owner.Kind == sandboxpod.ClaimKind && owner.UID == claim.UID && sandbox.Namespace == claim.Namespace
}

// Adoptable says whether the Sandbox is an idle member of exactly this pool that may be given to a claim, ready or not. One that a claim
// has had never may again, whatever owner it has got since: its user's files and processes are in it.
func Adoptable(sandbox *agentsv1beta1.Sandbox, pool *extensionsv1beta1.SandboxWarmPool) bool {
	owner := sandboxpod.ExtensionsOwner(sandbox)
	return owner != nil && owner.Kind == sandboxpod.WarmPoolKind && owner.Name == pool.Name && owner.UID == pool.UID &&
		sandbox.Namespace == pool.Namespace &&
		sandbox.DeletionTimestamp == nil &&
		sandbox.Spec.OperatingMode != agentsv1beta1.SandboxOperatingModeSuspended &&
		sandbox.Labels[agentsv1beta1.WarmPoolSandboxLabel] == naming.Hash(pool.Name) &&
		sandbox.Labels[agentsv1beta1.SandboxTemplateRefHashLabel] != "" &&
		!Used(sandbox) && !reserved(sandbox)
}

// Used says whether a claim has, or once had, the Sandbox.
func Used(sandbox *agentsv1beta1.Sandbox) bool {
	_, labelled := sandbox.Labels[agentsv1beta1.ClaimUIDLabel]
	_, prescribed := sandbox.Spec.PodTemplate.Metadata.Labels[agentsv1beta1.ClaimUIDLabel]
	return labelled || prescribed
}

func reserved(sandbox *agentsv1beta1.Sandbox) bool {
	_, ok := sandbox.Annotations[extensionsv1beta1.ReservedForClaimAnnotation]
	return ok
}

// Ready says whether the Sandbox can be used at once: it says that it is ready, and where it can be reached.
func Ready(sandbox *agentsv1beta1.Sandbox) bool {
	return meta.IsStatusConditionTrue(sandbox.Status.Conditions, agentsv1beta1.SandboxConditionReady) && len(sandbox.Status.PodIPs) > 0
}

func controllerRef(claim *extensionsv1beta1.SandboxClaim) metav1.OwnerReference {
	return *metav1.NewControllerRef(claim, extensionsv1beta1.SchemeGroupVersion.WithKind(sandboxpod.ClaimKind))
}
