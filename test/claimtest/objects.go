// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package claimtest

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/registrytest"
)

// Claim returns a claim on a pool.
func Claim(name, pool string) *extensions.SandboxClaim {
	claim := &extensions.SandboxClaim{ObjectMeta: meta(name)}
	claim.Spec.WarmPoolRef.Name = pool
	return claim
}

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: registrytest.Namespace}
}

// Template returns a template that allows claims nothing.
func Template(name string) *extensions.SandboxTemplate {
	template := &extensions.SandboxTemplate{ObjectMeta: meta(name)}
	template.Spec.NetworkPolicyManagement = extensions.NetworkPolicyManagementManaged
	template.Spec.EnvVarsInjectionPolicy = extensions.EnvVarsInjectionPolicyDisallowed
	template.Spec.VolumeClaimTemplatesPolicy = extensions.VolumeClaimTemplatesPolicyDisallowed
	template.Spec.PodTemplate = agents.PodTemplate{Spec: podSpec(), Metadata: agents.PodMetadata{Labels: map[string]string{"app": "agent"}}}
	return template
}

func podSpec() corev1.PodSpec {
	return corev1.PodSpec{
		Containers:                   []corev1.Container{{Name: "main", Image: "registry.example/agent:v1", Command: []string{"serve"}}},
		AutomountServiceAccountToken: ptr.To(false),
		DNSPolicy:                    corev1.DNSClusterFirst,
	}
}

// Pool returns a pool of a template.
func Pool(name, template string) *extensions.SandboxWarmPool {
	pool := &extensions.SandboxWarmPool{ObjectMeta: meta(name)}
	pool.Spec.SandboxTemplateRef.Name = template
	return pool
}

// Member returns what the pool's controller makes: the i-th member of a pool.
func Member(pool *extensions.SandboxWarmPool, i int) *agents.Sandbox {
	sandbox := &agents.Sandbox{ObjectMeta: meta(MemberName(pool.Name, i))}
	sandbox.Namespace = pool.Namespace
	sandbox.Labels = map[string]string{
		agentsv1beta1.WarmPoolSandboxLabel:        naming.Hash(pool.Name),
		agentsv1beta1.SandboxTemplateRefHashLabel: naming.Hash(pool.Spec.SandboxTemplateRef.Name),
		agentsv1beta1.LaunchTypeLabel:             agentsv1beta1.LaunchTypeWarm,
		agentsv1beta1.CreatedByLabel:              agentsv1beta1.CreatedByController,
	}
	sandbox.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(pool, extensionsv1beta1.SchemeGroupVersion.WithKind("SandboxWarmPool"))}
	sandbox.Spec.OperatingMode = agents.SandboxOperatingModeRunning
	sandbox.Spec.ShutdownPolicy = ptr.To(agents.ShutdownPolicyRetain)
	sandbox.Spec.PodTemplate = agents.PodTemplate{
		Spec: podSpec(),
		Metadata: agents.PodMetadata{
			Labels:      map[string]string{"app": "agent"},
			Annotations: map[string]string{agentsv1beta1.SafeToEvictAnnotation: "true"},
		},
	}
	return sandbox
}

// MemberName returns the name of the i-th member of a pool.
func MemberName(pool string, i int) string { return fmt.Sprintf("%s-%05d", pool, i) }

// ReadyStatus returns the status of a Sandbox that is ready.
func ReadyStatus() agents.SandboxStatus {
	return agents.SandboxStatus{
		ServiceFQDN: "member.test.svc.cluster.local",
		PodIPs:      []string{"10.0.0.1"},
		NodeName:    "node",
		Conditions: []metav1.Condition{{
			Type: agentsv1beta1.SandboxConditionReady, Status: metav1.ConditionTrue, Reason: agentsv1beta1.SandboxReasonDependenciesReady,
			Message: "Pod is Ready", ObservedGeneration: 1, LastTransitionTime: metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
		}},
	}
}

// AddTemplate creates a template.
func (s *Server) AddTemplate(template *extensions.SandboxTemplate) *extensions.SandboxTemplate {
	s.Helper()
	created, err := s.Templates.Create(s.context(), template, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	s.must(err)
	return created.(*extensions.SandboxTemplate)
}

// AddPool creates a pool.
func (s *Server) AddPool(pool *extensions.SandboxWarmPool) *extensions.SandboxWarmPool {
	s.Helper()
	created, err := s.Pools.Create(s.context(), pool, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	s.must(err)
	return created.(*extensions.SandboxWarmPool)
}

// AddMember stores a Sandbox that has the given status. It passes by strategy and status endpoint, because there are many of them.
func (s *Server) AddMember(sandbox *agents.Sandbox, status agents.SandboxStatus) *agents.Sandbox {
	s.Helper()
	rest.FillObjectMetaSystemFields(sandbox)
	sandbox.Generation = 1
	sandbox.Status = status
	key, err := s.Sandboxes.KeyFunc(s.context(), sandbox.Name)
	s.must(err)
	out := &agents.Sandbox{}
	s.must(s.Sandboxes.Storage.Create(s.context(), key, sandbox, out, 0, false))
	return out
}

// AddPoolOf creates a template, a pool of it and n members that are ready, and waits until the server could give them away.
func (s *Server) AddPoolOf(name string, n int) *extensions.SandboxWarmPool {
	s.Helper()
	s.AddTemplate(Template(name))
	pool := s.AddPool(Pool(name, name))
	for i := range n {
		s.AddMember(Member(pool, i), ReadyStatus())
	}
	s.AwaitCandidates(name, n)
	return pool
}

// AwaitCandidates waits until the server knows the pool, its template, and exactly n members that it could give away.
func (s *Server) AwaitCandidates(pool string, n int) {
	s.Helper()
	s.Eventually(fmt.Sprintf("%d candidates of pool %s are known", n, pool), func() bool {
		offer := s.Binder.Offer(registrytest.Namespace, pool)
		return offer.Pool != nil && offer.Template != nil && s.Candidates(pool) == n
	})
}
