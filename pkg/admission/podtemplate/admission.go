// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package podtemplate is the admission plugin that refuses a Sandbox, or a template of Sandboxes, whose Pod could never be made. It asks
// kube-apiserver, which alone knows the rules for Pods: a server-side dry-run create of the very Pod that the controller would make. Whoever
// makes a mistake learns of it from his own request, and not from a condition minutes later.
package podtemplate

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/sandboxpod"
)

// PluginName is the name of the plugin in --enable-admission-plugins and --disable-admission-plugins.
const PluginName = "PodTemplate"

const (
	// timeout bounds the dry run. A kube-apiserver that takes longer is not to hold up what asks for it.
	timeout = 5 * time.Second
	// acceptedTTL is how long a template that was accepted in a namespace needs no other look. The namespace's rules may change in
	// the meantime; then the controller reports it.
	acceptedTTL = time.Minute
	// acceptedSize is the number of accepted templates that are remembered.
	acceptedSize = 1024
)

// Register adds the plugin to those that may be enabled.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// Plugin is the admission plugin.
type Plugin struct {
	*admission.Handler
	pods     corev1client.PodsGetter
	accepted *cache.LRUExpireCache
}

var (
	_ admission.ValidationInterface          = &Plugin{}
	_ admission.InitializationValidator      = &Plugin{}
	_ initializer.WantsExternalKubeClientSet = &Plugin{}
)

// New returns a plugin that still needs a client.
func New() *Plugin {
	return &Plugin{
		Handler:  admission.NewHandler(admission.Create, admission.Update),
		accepted: cache.NewLRUExpireCache(acceptedSize),
	}
}

// SetExternalKubeClientSet implements initializer.WantsExternalKubeClientSet.
func (p *Plugin) SetExternalKubeClientSet(client kubernetes.Interface) { p.pods = client.CoreV1() }

// ValidateInitialization implements admission.InitializationValidator.
func (p *Plugin) ValidateInitialization() error {
	if p.pods == nil {
		return fmt.Errorf("%s needs a client", PluginName)
	}
	return nil
}

// Validate implements admission.ValidationInterface. It answers what kube-apiserver says of the Pod for good (it is invalid, or violates the
// namespace's Pod security level) as an error of the same kind, whose fields are those of the object. What may pass by itself,
// like an exhausted quota, becomes a warning.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	kind, ok := kinds[a.GetResource().GroupResource()]
	if !ok || a.GetSubresource() != "" {
		return nil
	}
	sandbox, err := changedSandbox(kind, a)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if sandbox == nil {
		return nil
	}
	key, err := cacheKey(sandbox)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if _, ok := p.accepted.Get(key); ok {
		return nil
	}
	err = p.dryRun(ctx, sandbox)
	switch judge(err) {
	case accepted:
		p.accepted.Add(key, struct{}{}, acceptedTTL)
	case refused:
		return translate(err, a.GetResource().GroupResource(), kind.name, sandbox.Name)
	case undecided:
		warning.AddWarning(ctx, "", fmt.Sprintf("spec.podTemplate: the Pod cannot be made at present: %v", err))
	case unknowable:
	}
	return nil
}

func (p *Plugin) dryRun(ctx context.Context, sandbox *v1beta1.Sandbox) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	pod := sandboxpod.New(sandbox)
	// The Sandbox need not exist yet, and then nothing can be its dependent.
	pod.OwnerReferences = nil
	_, err := p.pods.Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: "sandbox-apiserver"})
	return err
}

// cacheKey identifies all that kube-apiserver judges the Pod by, except for its name and the labels that say whose it is: Sandboxes of one
// template share an answer, whichever claims they are for.
func cacheKey(sandbox *v1beta1.Sandbox) (any, error) {
	pod := sandboxpod.New(&v1beta1.Sandbox{Spec: v1beta1.SandboxSpec{SandboxBlueprint: v1beta1.SandboxBlueprint{
		PodTemplate: sandbox.Spec.PodTemplate, VolumeClaimTemplates: sandbox.Spec.VolumeClaimTemplates,
	}}})
	encoded, err := pod.Marshal()
	if err != nil {
		return nil, fmt.Errorf("encoding the Pod of sandbox %s/%s: %w", sandbox.Namespace, sandbox.Name, err)
	}
	return [2]any{sandbox.Namespace, sha256.Sum256(encoded)}, nil
}
