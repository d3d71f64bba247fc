// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/failure"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/namespace"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/patch"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/recent"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/sandboxpod"
)

// reconcilePod sees to it that a running Sandbox has its one Pod and a suspended one has none. It returns the Pod, if there is
// one after that; for a suspended Sandbox this may be a Pod of somebody else. It adds to the events of the observation.
func (c *Controller) reconcilePod(ctx context.Context, sandbox *agentsv1beta1.Sandbox, o *observation) (*corev1.Pod, error) {
	pods, err := c.ownedPods(sandbox)
	if err != nil {
		return nil, err
	}
	var pod *corev1.Pod
	switch len(pods) {
	case 0:
		if pod, err = c.namedPod(ctx, sandbox); err != nil {
			return nil, err
		}
	case 1:
		pod = pods[0]
	default:
		return nil, &multiplePodsError{count: len(pods)}
	}
	switch {
	case suspended(sandbox):
		return c.suspendPod(ctx, sandbox, pod)
	case pod == nil:
		return c.createPod(ctx, sandbox, o)
	default:
		return c.syncPod(ctx, sandbox, pod)
	}
}

// ownedPods returns the Pods that the Sandbox controls.
func (c *Controller) ownedPods(sandbox *agentsv1beta1.Sandbox) ([]*corev1.Pod, error) {
	ref := sandboxpod.ControllerRef(sandbox)
	objects, err := c.podIndex.ByIndex(controllerIndex, controllerIndexKey(sandbox.Namespace, &ref))
	if err != nil {
		return nil, fmt.Errorf("looking up Pods by controller: %w", err)
	}
	var pods []*corev1.Pod
	for _, object := range objects {
		if pod, ok := object.(*corev1.Pod); ok {
			pod, _ = c.podWrites.Latest(cache.MetaObjectToName(pod), pod, true)
			pods = append(pods, pod)
		}
	}
	if len(pods) > 0 {
		return pods, nil
	}
	if pod := c.podNamed(sandbox.Namespace, naming.Pod(sandbox.Name)); pod != nil && relationTo(sandbox, pod) == owned {
		return []*corev1.Pod{pod}, nil
	}
	return nil, nil
}

// namedPod returns the Pod that the Sandbox does not control but could mean: one that the pod-name annotation names and that may
// be adopted, or whichever has the name that the Pod of the Sandbox should have. The annotation is a user's word, so it is
// heard only where it leads to a Pod that is up for adoption. Such a Pod may lack the label by which the informer finds Pods, and
// is then read from the server.
func (c *Controller) namedPod(ctx context.Context, sandbox *agentsv1beta1.Sandbox) (*corev1.Pod, error) {
	name := sandbox.Annotations[agentsv1beta1.SandboxPodNameAnnotation]
	if name == "" {
		return c.podNamed(sandbox.Namespace, naming.Pod(sandbox.Name)), nil
	}
	pod := c.podNamed(sandbox.Namespace, name)
	if pod == nil {
		live, err := c.config.KubeClient.CoreV1().Pods(sandbox.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil && !failure.ObjectNotFound(err) {
			return nil, fmt.Errorf("getting pod %q, which annotation %s names: %w", name, agentsv1beta1.SandboxPodNameAnnotation, err)
		}
		if err == nil {
			pod = trimPod(live)
		}
	}
	if pod != nil && relationTo(sandbox, pod) == unowned && adoptable(sandbox, pod) {
		return pod, nil
	}
	return c.podNamed(sandbox.Namespace, naming.Pod(sandbox.Name)), nil
}

func (c *Controller) podNamed(namespace, name string) *corev1.Pod {
	cached, err := c.pods.Pods(namespace).Get(name)
	pod, found := c.podWrites.Latest(cache.NewObjectName(namespace, name), cached, err == nil)
	if !found {
		return nil
	}
	return pod
}

// createPod creates the Pod. The name decides who wins if two creates race, so there is never a second one.
func (c *Controller) createPod(ctx context.Context, sandbox *agentsv1beta1.Sandbox, o *observation) (*corev1.Pod, error) {
	client := c.config.KubeClient.CoreV1().Pods(sandbox.Namespace)
	desired := sandboxpod.New(sandbox)
	pod, created, err := namespace.CreateOrGet(c.terminating, sandbox,
		func() (*corev1.Pod, error) {
			return client.Create(ctx, desired, metav1.CreateOptions{FieldManager: Name})
		},
		func() (*corev1.Pod, error) { return client.Get(ctx, desired.Name, metav1.GetOptions{}) },
	)
	if err != nil {
		if !failure.Outdated(err) && !namespace.IsTerminating(err) {
			o.podEvents = append(o.podEvents, event{corev1.EventTypeWarning, eventReasonPodCreateFailed, actionPodCreation, fmt.Sprintf("Creating Pod %s failed: %v", desired.Name, err)})
		}
		return nil, fmt.Errorf("creating pod %q: %w", desired.Name, err)
	}
	trimPod(pod)
	if !created {
		return c.syncPod(ctx, sandbox, pod)
	}
	c.podWrites.Created(pod)
	// Should the watch never deliver the Pod, the pass after this time looks for it again.
	c.loop.Queue.AddAfter(cache.MetaObjectToName(sandbox), recent.CreationTimeout)
	o.podEvents = append(o.podEvents, event{corev1.EventTypeNormal, eventReasonPodCreated, actionPodCreation, "Created Pod " + pod.Name})
	klog.FromContext(ctx).V(2).Info("Created Pod", "pod", klog.KObj(pod), "uid", pod.UID)
	return pod, nil
}

// syncPod brings owner and metadata of an existing Pod up to date, if the Sandbox controls or may adopt it. The spec of a Pod is
// never touched: it is what the user's work runs on.
func (c *Controller) syncPod(ctx context.Context, sandbox *agentsv1beta1.Sandbox, pod *corev1.Pod) (*corev1.Pod, error) {
	if err := checkUsable(sandbox, pod, "pod"); err != nil {
		return nil, err
	}
	if pod.DeletionTimestamp != nil {
		return pod, nil
	}
	desired := pod.DeepCopy()
	setOwner(sandbox, desired)
	sandboxpod.SyncMetadata(sandbox, desired)
	if equality.Semantic.DeepEqual(pod, desired) {
		return pod, nil
	}
	lock, err := c.lockFor(ctx, sandbox, pod)
	if err != nil {
		return c.withoutPatch(sandbox, pod), err
	}
	data, err := patch.Merge(pod, desired, lock)
	if err != nil {
		return pod, fmt.Errorf("computing the patch of pod %q: %w", pod.Name, err)
	}
	updated, err := c.config.KubeClient.CoreV1().Pods(pod.Namespace).
		Patch(ctx, pod.Name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: Name})
	if err != nil {
		return c.withoutPatch(sandbox, pod), fmt.Errorf("patching pod %q: %w", pod.Name, err)
	}
	trimPod(updated)
	c.podWrites.Updated(updated)
	return updated, nil
}

// withoutPatch is the Pod to report when it could not be brought up to date: one that was to be adopted is not the Sandbox's.
func (c *Controller) withoutPatch(sandbox *agentsv1beta1.Sandbox, pod *corev1.Pod) *corev1.Pod {
	if relationTo(sandbox, pod) != owned {
		return nil
	}
	return pod
}

// lockFor makes an adoption conditional on the version that was judged, for it replaces all owner references; everything else
// leaves other writers' fields alone and needs no lock. It returns ErrStale where the Sandbox is to be deleted: an object without an
// owner may be one that the garbage collector has just orphaned, and would be deleted with the Sandbox if that took it back.
func (c *Controller) lockFor(ctx context.Context, sandbox *agentsv1beta1.Sandbox, object metav1.Object) (patch.Lock, error) {
	if relationTo(sandbox, object) == owned {
		return patch.AnyVersion, nil
	}
	if _, err := c.liveSandbox(ctx, sandbox); err != nil {
		return patch.AnyVersion, err
	}
	return patch.SameVersion, nil
}

// suspendPod deletes the Pod if the Sandbox controls it, and returns it for as long as it exists.
func (c *Controller) suspendPod(ctx context.Context, sandbox *agentsv1beta1.Sandbox, pod *corev1.Pod) (*corev1.Pod, error) {
	if pod == nil {
		if suspensionConfirmed(sandbox) {
			return nil, nil
		}
		live, err := c.config.KubeClient.CoreV1().Pods(sandbox.Namespace).Get(ctx, naming.Pod(sandbox.Name), metav1.GetOptions{})
		if failure.ObjectNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("getting pod %q: %w", naming.Pod(sandbox.Name), err)
		}
		pod = live
	}
	if relationTo(sandbox, pod) != owned || pod.DeletionTimestamp != nil {
		return pod, nil
	}
	live, err := c.liveSandbox(ctx, sandbox)
	if err != nil {
		return pod, err
	}
	if !suspended(live) {
		return pod, failure.ErrStale
	}
	return c.deletePod(ctx, pod)
}

// suspensionConfirmed says whether a pass on this very spec has made sure already that there is no Pod.
func suspensionConfirmed(sandbox *agentsv1beta1.Sandbox) bool {
	condition := meta.FindStatusCondition(sandbox.Status.Conditions, agentsv1beta1.SandboxConditionSuspended)
	return condition != nil && condition.Status == metav1.ConditionTrue && condition.ObservedGeneration == sandbox.Generation
}

// deletePod deletes exactly this Pod, and returns it unless it turns out to be gone.
func (c *Controller) deletePod(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	err := c.config.KubeClient.CoreV1().Pods(pod.Namespace).
		Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	if failure.ObjectNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return pod, fmt.Errorf("deleting pod %q: %w", pod.Name, err)
	}
	klog.FromContext(ctx).V(2).Info("Deleted Pod", "pod", klog.KObj(pod), "uid", pod.UID)
	return pod, nil
}
