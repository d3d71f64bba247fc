// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
)

// AttemptAnnotation is on each claim of a test: its value names the one request that made it.
const AttemptAnnotation = "test.example.com/attempt"

// Resources whose objects are judged.
const (
	Claims    = "sandboxclaims"
	Sandboxes = "sandboxes"
	Pools     = "sandboxwarmpools"
)

// Kinds that an Owner may be of.
const (
	ClaimKind = "SandboxClaim." + extensionsv1beta1.GroupName
	PoolKind  = "SandboxWarmPool." + extensionsv1beta1.GroupName
)

// Key is where an object is stored.
type Key struct{ Resource, Namespace, Name string }

func (k Key) String() string { return k.Resource + " " + k.Namespace + "/" + k.Name }

// Owner is the controller of an object. Kind has the group, but not the version.
type Owner struct {
	Kind, Name string
	UID        types.UID
}

// Object is what of an object the rules are about. Exactly one of the pointers is set.
type Object struct {
	UID        types.UID
	Deleting   bool
	Controller Owner
	Claim      *Claim
	Sandbox    *Sandbox
	Pool       *Pool
}

// Claim is what matters of a SandboxClaim.
type Claim struct {
	// Attempt is the value of AttemptAnnotation.
	Attempt string
	Pool    string
	// Cold says that no member of a pool can be what the claim asks for.
	Cold bool
	// Expires says that the claim is to be deleted at some time.
	Expires bool
	// Sandbox is the name in the status.
	Sandbox string
	PodIPs  []string
	Ready   bool
	// Reason is that of the Ready condition.
	Reason string
}

// Sandbox is what matters of a Sandbox.
type Sandbox struct {
	LaunchType string
	Ready      bool
	PodIPs     []string
	// ReservedFor is the UID of a claim that the Sandbox is kept for, on the way of two steps.
	ReservedFor string
}

// Pool is what matters of a SandboxWarmPool.
type Pool struct {
	// Replicas is what is asked for.
	Replicas int32
	// Counted and CountedReady are the numbers in the status.
	Counted, CountedReady int32
}

// Describe returns what matters of an object, or nil if it is none of those that are judged.
func Describe(object runtime.Object) *Object {
	switch o := object.(type) {
	case *extensionsv1beta1.SandboxClaim:
		described := describeMeta(&o.ObjectMeta)
		ready := meta.FindStatusCondition(o.Status.Conditions, extensionsv1beta1.ClaimConditionReady)
		described.Claim = &Claim{
			Attempt: o.Annotations[AttemptAnnotation],
			Pool:    o.Spec.WarmPoolRef.Name,
			Cold:    len(o.Spec.Env)+len(o.Spec.VolumeClaimTemplates) > 0,
			Expires: expires(o.Spec.Lifecycle),
			Sandbox: o.Status.Sandbox.Name,
			PodIPs:  slices.Clone(o.Status.Sandbox.PodIPs),
		}
		if ready != nil {
			described.Claim.Ready, described.Claim.Reason = ready.Status == metav1.ConditionTrue, ready.Reason
		}
		return described
	case *agentsv1beta1.Sandbox:
		described := describeMeta(&o.ObjectMeta)
		described.Sandbox = &Sandbox{
			LaunchType:  o.Labels[agentsv1beta1.LaunchTypeLabel],
			Ready:       meta.IsStatusConditionTrue(o.Status.Conditions, agentsv1beta1.SandboxConditionReady),
			PodIPs:      slices.Clone(o.Status.PodIPs),
			ReservedFor: o.Annotations[extensionsv1beta1.ReservedForClaimAnnotation],
		}
		return described
	case *extensionsv1beta1.SandboxWarmPool:
		described := describeMeta(&o.ObjectMeta)
		described.Pool = &Pool{Replicas: 1, Counted: o.Status.Replicas, CountedReady: o.Status.ReadyReplicas}
		if o.Spec.Replicas != nil {
			described.Pool.Replicas = *o.Spec.Replicas
		}
		return described
	}
	return nil
}

func expires(lifecycle *extensionsv1beta1.Lifecycle) bool {
	return lifecycle != nil && lifecycle.ShutdownTime != nil && lifecycle.ShutdownPolicy != extensionsv1beta1.ClaimShutdownPolicyRetain
}

func describeMeta(m *metav1.ObjectMeta) *Object {
	described := &Object{UID: m.UID, Deleting: m.DeletionTimestamp != nil}
	if controller := metav1.GetControllerOf(m); controller != nil {
		kind := schema.FromAPIVersionAndKind(controller.APIVersion, controller.Kind).GroupKind().String()
		described.Controller = Owner{Kind: kind, Name: controller.Name, UID: controller.UID}
	}
	return described
}

// String returns what a person needs who reads the history of an object.
func (o *Object) String() string {
	if o == nil {
		return "gone"
	}
	text := fmt.Sprintf("uid=%s", o.UID)
	if o.Deleting {
		text += " deleting"
	}
	if o.Controller.UID != "" {
		text += fmt.Sprintf(" controller=%s %s %s", o.Controller.Kind, o.Controller.Name, o.Controller.UID)
	}
	switch {
	case o.Claim != nil:
		text += fmt.Sprintf(" %+v", *o.Claim)
	case o.Sandbox != nil:
		text += fmt.Sprintf(" %+v", *o.Sandbox)
	case o.Pool != nil:
		text += fmt.Sprintf(" %+v", *o.Pool)
	}
	return text
}
