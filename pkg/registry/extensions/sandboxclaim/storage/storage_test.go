// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/claimtest"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/registrytest"
)

func start(t *testing.T) *claimtest.Server {
	t.Helper()
	return claimtest.Start(t, registrytest.StartEtcd(t))
}

// TestStandardBehaviour runs the library's own suite for stored resources.
func TestStandardBehaviour(t *testing.T) {
	registrytest.Standard[*extensions.SandboxClaim]{
		NewStore: func(t *testing.T) *genericregistry.Store { return start(t).Claims.Store },
		Valid:    func() *extensions.SandboxClaim { return claimtest.Claim("claim", "pool") },
		Change:   func(c *extensions.SandboxClaim) { c.Spec.WarmPoolRef.Name = "other" },
		Spoil:    func(c *extensions.SandboxClaim) { c.Spec.Lifecycle = &extensions.Lifecycle{ShutdownPolicy: "Never"} },
	}.Test(t)
}

func TestListsSelectByPoolAndSandbox(t *testing.T) {
	s := start(t)
	s.AddPoolOf("pool", 1)
	s.MustCreate(claimtest.Claim("bound", "pool"))
	s.MustCreate(claimtest.Claim("waiting", "pool"))
	s.MustCreate(claimtest.Claim("other", "other"))
	for selector, want := range map[string][]string{
		"spec.warmPoolRef.name=pool":                      {"bound", "waiting"},
		"status.sandbox.name=pool-00000":                  {"bound"},
		"spec.warmPoolRef.name=pool,status.sandbox.name=": {"waiting"},
		"metadata.name=other":                             {"other"},
	} {
		obj, err := s.Claims.List(claimtest.Context(t.Context()), &metainternalversion.ListOptions{
			LabelSelector: labels.Everything(), FieldSelector: fields.ParseSelectorOrDie(selector),
		})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, claim := range obj.(*extensions.SandboxClaimList).Items {
			got = append(got, claim.Name)
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", selector, diff)
		}
	}
}

func volume(name string) agents.PersistentVolumeClaimTemplate {
	return agents.PersistentVolumeClaimTemplate{
		Metadata: agents.EmbeddedObjectMetadata{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

// TestTemplatesRefuseClaims creates claims that the template of their pool does not allow. They would be refused by the controller
// otherwise, when nobody looks.
func TestTemplatesRefuseClaims(t *testing.T) {
	env := func(names ...string) []extensions.EnvVar {
		var env []extensions.EnvVar
		for _, name := range names {
			env = append(env, extensions.EnvVar{Name: name, Value: "v"})
		}
		return env
	}
	allow := func(template *extensions.SandboxTemplate) {
		template.Spec.EnvVarsInjectionPolicy = extensions.EnvVarsInjectionPolicyAllowed
		template.Spec.VolumeClaimTemplatesPolicy = extensions.VolumeClaimTemplatesPolicyAllowed
		template.Spec.PodTemplate.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "TAKEN"}}
		template.Spec.VolumeClaimTemplates = []agents.PersistentVolumeClaimTemplate{volume("taken")}
	}
	override := func(template *extensions.SandboxTemplate) {
		allow(template)
		template.Spec.EnvVarsInjectionPolicy = extensions.EnvVarsInjectionPolicyOverrides
		template.Spec.VolumeClaimTemplatesPolicy = extensions.VolumeClaimTemplatesPolicyOverrides
	}
	for name, test := range map[string]struct {
		template func(*extensions.SandboxTemplate)
		claim    func(*extensions.SandboxClaim)
		want     string
	}{
		"C4 env that is not allowed": {claim: func(c *extensions.SandboxClaim) { c.Spec.Env = env("A") }, want: "spec.env"},
		"C5 a new variable":          {template: allow, claim: func(c *extensions.SandboxClaim) { c.Spec.Env = env("A") }},
		"C5 a variable of the template's": {
			template: allow, claim: func(c *extensions.SandboxClaim) { c.Spec.Env = env("A", "TAKEN") }, want: "spec.env[1].name",
		},
		"C5 a variable that is overridden": {template: override, claim: func(c *extensions.SandboxClaim) { c.Spec.Env = env("TAKEN") }},
		"C6 a container that there is not": {template: allow, claim: func(c *extensions.SandboxClaim) {
			c.Spec.Env = env("A")
			c.Spec.Env[0].ContainerName = "none"
		}, want: "spec.env[0].containerName"},
		"C8 a label of the template's": {
			template: func(t *extensions.SandboxTemplate) { t.Spec.PodTemplate.Metadata.Labels["sandbox.users.io/a"] = "b" },
			claim: func(c *extensions.SandboxClaim) {
				c.Spec.AdditionalPodMetadata.Labels = map[string]string{"sandbox.users.io/a": "c"}
			},
			want: "spec.additionalPodMetadata.labels[sandbox.users.io/a]",
		},
		"C8 a label that is as the template's": {
			template: func(t *extensions.SandboxTemplate) { t.Spec.PodTemplate.Metadata.Labels["sandbox.users.io/a"] = "b" },
			claim: func(c *extensions.SandboxClaim) {
				c.Spec.AdditionalPodMetadata.Labels = map[string]string{"sandbox.users.io/a": "b"}
			},
		},
		"C9 volumes that are not allowed": {
			claim: func(c *extensions.SandboxClaim) {
				c.Spec.VolumeClaimTemplates = []agents.PersistentVolumeClaimTemplate{volume("new")}
			},
			want: "spec.volumeClaimTemplates",
		},
		"C9 a volume of the template's": {
			template: allow,
			claim: func(c *extensions.SandboxClaim) {
				c.Spec.VolumeClaimTemplates = []agents.PersistentVolumeClaimTemplate{volume("taken")}
			},
			want: "spec.volumeClaimTemplates[0].metadata.name",
		},
		"C9 a volume that is overridden": {
			template: override,
			claim: func(c *extensions.SandboxClaim) {
				c.Spec.VolumeClaimTemplates = []agents.PersistentVolumeClaimTemplate{volume("taken")}
			},
		},
		"C1 a pool that does not exist yet": {claim: func(c *extensions.SandboxClaim) {
			c.Spec.WarmPoolRef.Name, c.Spec.Env = "later", env("A")
		}},
		"C1 a template that does not exist yet": {claim: func(c *extensions.SandboxClaim) {
			c.Spec.WarmPoolRef.Name, c.Spec.Env = "orphan", env("A")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			template := claimtest.Template("template")
			if test.template != nil {
				test.template(template)
			}
			s.AddPool(claimtest.Pool("orphan", "none"))
			s.AddPool(claimtest.Pool("pool", "template"))
			s.AddTemplate(template)
			// Whatever was observed of them by now, what is stored counts.
			claim := claimtest.Claim("claim", "pool")
			test.claim(claim)
			_, err := s.Create(t.Context(), claim, &metav1.CreateOptions{})
			if test.want == "" {
				if err != nil {
					t.Errorf("the claim is refused: %v", err)
				}
				return
			}
			if diff := cmp.Diff([]string{test.want}, causes(err)); diff != "" || !apierrors.IsInvalid(err) {
				t.Errorf("error is %v, fields (-want +got):\n%s", err, diff)
			}
		})
	}
}

// causes returns the fields that an error names.
func causes(err error) []string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var names []string
	for _, cause := range status.Status().Details.Causes {
		names = append(names, cause.Field)
	}
	return names
}

// TestStaleTemplateRefusesNothing lets the server know only a template that contradicts the claim, when another is stored.
func TestStaleTemplateRefusesNothing(t *testing.T) {
	s := start(t)
	template := claimtest.Template("pool")
	template.Spec.PodTemplate.Metadata.Labels["sandbox.users.io/a"] = "b"
	template = s.AddTemplate(template)
	s.AddPool(claimtest.Pool("pool", "pool"))
	s.AwaitCandidates("pool", 0)
	delete(template.Spec.PodTemplate.Metadata.Labels, "sandbox.users.io/a")
	s.UpdateTemplate(template)
	claim := claimtest.Claim("claim", "pool")
	claim.Spec.AdditionalPodMetadata.Labels = map[string]string{"sandbox.users.io/a": "c"}
	s.MustCreate(claim)
}

func TestDryRunRefusesToo(t *testing.T) {
	s := start(t)
	s.AddPoolOf("pool", 0)
	claim := claimtest.Claim("claim", "pool")
	claim.Spec.Env = []extensions.EnvVar{{Name: "A", Value: "b"}}
	if _, err := s.Create(t.Context(), claim, &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); !apierrors.IsInvalid(err) {
		t.Errorf("error is %v, want Invalid", err)
	}
}
