// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package claimedsandbox

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/sandboxtemplate"
)

func envPolicy(policy extensionsv1beta1.EnvVarsInjectionPolicy) func(*template) {
	return func(t *template) { t.Spec.EnvVarsInjectionPolicy = policy }
}

func volumePolicy(policy extensionsv1beta1.VolumeClaimTemplatesPolicy) func(*template) {
	return func(t *template) { t.Spec.VolumeClaimTemplatesPolicy = policy }
}

func env(variables ...extensionsv1beta1.EnvVar) func(*claim) {
	return func(c *claim) { c.Spec.Env = variables }
}

func variable(container, name, value string) extensionsv1beta1.EnvVar {
	return extensionsv1beta1.EnvVar{ContainerName: container, Name: name, Value: value}
}

func TestNew(t *testing.T) {
	service := func(t *template) { t.Spec.Service = ptr.To(true) }
	c := testClaim(func(c *claim) {
		c.Labels = pairs{agentsv1beta1.CreatedByLabel: "go-client"}
		c.Annotations = pairs{agentsv1beta1.TraceContextAnnotation: "{}"}
		c.Spec.AdditionalPodMetadata = agentsv1beta1.PodMetadata{Labels: pairs{"sandbox.users.io/a": "b"}, Annotations: pairs{"own": "2"}}
	})
	tmpl := testTemplate(service, withReservedKeys)
	claimBefore, templateBefore := c.DeepCopy(), tmpl.DeepCopy()

	got, err := New(c, tmpl)
	if err != nil {
		t.Fatal(err)
	}
	identity := pairs{
		agentsv1beta1.ClaimUIDLabel: "claim-uid", agentsv1beta1.CreatedByLabel: "go-client", agentsv1beta1.SandboxTemplateRefHashLabel: naming.Hash("t1"),
	}
	want := &sandbox{ObjectMeta: metav1.ObjectMeta{
		Namespace: testNamespace, Name: "c1",
		Labels:      union(identity, pairs{agentsv1beta1.LaunchTypeLabel: "cold"}),
		Annotations: pairs{agentsv1beta1.SandboxTemplateRefAnnotation: "t1", agentsv1beta1.TraceContextAnnotation: "{}"},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "extensions.agents.x-k8s.io/v1beta1", Kind: "SandboxClaim", Name: "c1", UID: "claim-uid", Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
		}},
	}}
	want.Spec.SandboxBlueprint = sandboxtemplate.Blueprint(testTemplate(service))
	want.Spec.PodTemplate.Metadata = agentsv1beta1.PodMetadata{
		Labels: union(identity, pairs{"app": "web", "sandbox.users.io/a": "b"}), Annotations: pairs{"note": "1", "own": "2"},
	}
	wantDiff(t, "Sandbox", want, got)
	if !Controls(c, got) {
		t.Error("the claim does not control it")
	}
	got.Spec.PodTemplate.Spec.Containers[0].Env[0].Name = "changed"
	got.Spec.PodTemplate.Metadata.Labels["app"] = "changed"
	wantDiff(t, "claim", claimBefore, c)
	wantDiff(t, "template", templateBefore, tmpl)
}

// TestEnv is cases C4, C5 and C6: what becomes of the env of a claim.
func TestEnv(t *testing.T) {
	const allowed, overrides = extensionsv1beta1.EnvVarsInjectionPolicyAllowed, extensionsv1beta1.EnvVarsInjectionPolicyOverrides
	const rejected, failed = extensionsv1beta1.ClaimReasonEnvVarsInjectionRejected, extensionsv1beta1.ClaimReasonReconcilerError
	secret, mode := testTemplate().Spec.PodTemplate.Spec.Containers[0].Env[0], corev1.EnvVar{Name: "MODE", Value: "a"}
	type perContainer = map[string][]corev1.EnvVar
	for name, test := range map[string]struct {
		policy     extensionsv1beta1.EnvVarsInjectionPolicy
		env        []extensionsv1beta1.EnvVar
		want       perContainer
		wantReason string
		wantErrors []string
	}{
		"C4: disallowed": {
			policy: extensionsv1beta1.EnvVarsInjectionPolicyDisallowed, env: []extensionsv1beta1.EnvVar{variable("", "X", "1")},
			wantReason: rejected, wantErrors: []string{"Forbidden spec.env environment variable injection rejected"},
		},
		"C4: no policy": {
			env:        []extensionsv1beta1.EnvVar{variable("", "X", "1")},
			wantReason: rejected, wantErrors: []string{"Forbidden spec.env environment variable injection rejected"},
		},
		"no env": {policy: "Disallowed", want: perContainer{"main": {secret, mode}}},
		"C5: new variable, allowed": {
			policy: allowed, env: []extensionsv1beta1.EnvVar{variable("", "X", "1")},
			want: perContainer{"main": {secret, mode, {Name: "X", Value: "1"}}},
		},
		"C5: variable of the template, allowed": {
			policy: allowed, env: []extensionsv1beta1.EnvVar{variable("", "X", "1"), variable("main", "TOKEN", "x")},
			wantReason: failed, wantErrors: []string{`Forbidden spec.env[1].name environment variable "TOKEN" is set by the template for container "main"`},
		},
		"C5: variable of the template, overrides": {
			policy: overrides, env: []extensionsv1beta1.EnvVar{variable("", "TOKEN", "x"), variable("", "X", "1")},
			want: perContainer{"main": {{Name: "TOKEN", Value: "x"}, mode, {Name: "X", Value: "1"}}},
		},
		"envFrom, allowed": {
			policy: allowed, env: []extensionsv1beta1.EnvVar{variable("side", "X", "1")},
			wantReason: rejected, wantErrors: []string{`Forbidden spec.env[0].containerName environment variable injection rejected: container "side" has envFrom`},
		},
		"envFrom, overrides": {
			policy: overrides, env: []extensionsv1beta1.EnvVar{variable("side", "X", "1")},
			want: perContainer{"main": {secret, mode}, "side": {{Name: "X", Value: "1"}}},
		},
		"C6: init container": {
			policy: allowed, env: []extensionsv1beta1.EnvVar{variable("init", "X", "1")},
			want: perContainer{"main": {secret, mode}, "init": {{Name: "X", Value: "1"}}},
		},
		"C6: unknown container": {
			policy: overrides, env: []extensionsv1beta1.EnvVar{variable("nope", "X", "1")},
			wantReason: failed, wantErrors: []string{`Invalid spec.env[0].containerName target container not found: the template has no container or init container "nope"`},
		},
		"C6: twice for the same container": {
			policy: overrides, env: []extensionsv1beta1.EnvVar{variable("init", "X", "1"), variable("init", "X", "2")},
			wantReason: failed, wantErrors: []string{"Duplicate spec.env[1].name "},
		},
		"C6: twice, once without naming the container": {
			policy: allowed, env: []extensionsv1beta1.EnvVar{variable("main", "X", "1"), variable("", "X", "1")},
			wantReason: failed, wantErrors: []string{"Duplicate spec.env[1].name "},
		},
		"same name for two containers": {
			policy: allowed, env: []extensionsv1beta1.EnvVar{variable("init", "X", "1"), variable("", "X", "2")},
			want: perContainer{"main": {secret, mode, {Name: "X", Value: "2"}}, "init": {{Name: "X", Value: "1"}}},
		},
		"those that name the container come first": {
			policy: allowed, env: []extensionsv1beta1.EnvVar{variable("", "A", "1"), variable("main", "B", "2"), variable("", "C", "3"), variable("main", "D", "4")},
			want: perContainer{"main": {secret, mode, {Name: "B", Value: "2"}, {Name: "D", Value: "4"}, {Name: "A", Value: "1"}, {Name: "C", Value: "3"}}},
		},
		"all errors, that of the policy first": {
			policy: allowed, env: []extensionsv1beta1.EnvVar{variable("nope", "X", "1"), variable("side", "X", "1")},
			wantReason: rejected, wantErrors: []string{"Forbidden spec.env[1].containerName ", "Invalid spec.env[0].containerName "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, tmpl := testClaim(env(test.env...)), testTemplate(envPolicy(test.policy))
			if rejection := Check(c, tmpl); rejection != nil || test.wantReason != "" {
				wantRejection(t, rejection, test.wantReason, test.wantErrors)
				return
			}
			got, err := New(c, tmpl)
			if err != nil {
				t.Fatal(err)
			}
			if cold := got.Labels[agentsv1beta1.LaunchTypeLabel]; cold != agentsv1beta1.LaunchTypeCold {
				t.Errorf("launch type is %q", cold)
			}
			injected := perContainer{}
			pod := &got.Spec.PodTemplate.Spec
			for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
				for i := range containers {
					if containers[i].Env != nil {
						injected[containers[i].Name] = containers[i].Env
					}
				}
			}
			wantDiff(t, "env", test.want, injected)
		})
	}
}

func TestEnvForATemplateWithoutContainersIsRejected(t *testing.T) {
	tmpl := testTemplate(envPolicy("Allowed"), func(t *template) { t.Spec.PodTemplate.Spec.Containers = nil })
	wantRejection(t, Check(testClaim(env(variable("", "X", "1"))), tmpl), extensionsv1beta1.ClaimReasonReconcilerError,
		[]string{"Invalid spec.env[0].containerName target container not found"})
}

func wantRejection(t *testing.T, got *Rejection, reason string, errs []string) {
	t.Helper()
	if got == nil || got.Reason != reason {
		t.Fatalf("rejection is %+v, want %s", got, reason)
	}
	wantErrors(t, errs, got.Errs)
}

// TestVolumes is case C9: what becomes of the volumeClaimTemplates of a claim.
func TestVolumes(t *testing.T) {
	const allowed, overrides = extensionsv1beta1.VolumeClaimTemplatesPolicyAllowed, extensionsv1beta1.VolumeClaimTemplatesPolicyOverrides
	fast := func(name string) agentsv1beta1.PersistentVolumeClaimTemplate {
		volume := volumes(name)[0]
		volume.Spec.StorageClassName = ptr.To("fast")
		return volume
	}
	type list = []agentsv1beta1.PersistentVolumeClaimTemplate
	for name, test := range map[string]struct {
		policy     extensionsv1beta1.VolumeClaimTemplatesPolicy
		volumes    list
		want       list
		wantErrors []string
	}{
		"none": {policy: "Disallowed", want: volumes("data", "logs")},
		"disallowed": {
			policy: "Disallowed", volumes: volumes("x"),
			wantErrors: []string{"Forbidden spec.volumeClaimTemplates volume claim templates are disallowed by the template"},
		},
		"no policy": {
			volumes:    volumes("x"),
			wantErrors: []string{"Forbidden spec.volumeClaimTemplates volume claim templates are disallowed by the template"},
		},
		"added": {policy: allowed, volumes: volumes("x", "a"), want: volumes("data", "logs", "x", "a")},
		"override under allowed": {
			policy: allowed, volumes: volumes("x", "data"),
			wantErrors: []string{`Forbidden spec.volumeClaimTemplates[1].metadata.name overriding volume claim templates is forbidden by the template: cannot override template volume "data"`},
		},
		"overridden in place": {policy: overrides, volumes: list{fast("x"), fast("logs")}, want: list{volumes("data")[0], fast("logs"), fast("x")}},
		"no name": {
			policy: overrides, volumes: volumes("x", ""),
			wantErrors: []string{"Required spec.volumeClaimTemplates[1].metadata.name name at index 1 is empty"},
		},
		"twice": {
			policy: overrides, volumes: volumes("x", "x"), wantErrors: []string{"Duplicate spec.volumeClaimTemplates[1].metadata.name "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, tmpl := testClaim(func(c *claim) { c.Spec.VolumeClaimTemplates = test.volumes }), testTemplate(volumePolicy(test.policy))
			if rejection := Check(c, tmpl); rejection != nil || test.wantErrors != nil {
				wantRejection(t, rejection, extensionsv1beta1.ClaimReasonVolumeClaimTemplatesError, test.wantErrors)
				return
			}
			before := tmpl.DeepCopy()
			got, err := New(c, tmpl)
			if err != nil {
				t.Fatal(err)
			}
			wantDiff(t, "volumes", test.want, got.Spec.VolumeClaimTemplates)
			wantDiff(t, "template", before, tmpl)
		})
	}
}

func TestNeedsColdStart(t *testing.T) {
	for name, test := range map[string]struct {
		claim *claim
		want  bool
	}{
		"plain":    {testClaim(), false},
		"metadata": {testClaim(func(c *claim) { c.Spec.AdditionalPodMetadata.Labels = pairs{"sandbox.users.io/a": "b"} }), false},
		"env":      {testClaim(env(variable("", "X", "1"))), true},
		"volumes":  {testClaim(func(c *claim) { c.Spec.VolumeClaimTemplates = volumes("x") }), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := NeedsColdStart(test.claim); got != test.want {
				t.Errorf("needs a cold start: %v, want %v", got, test.want)
			}
		})
	}
}

// TestEveryProblemIsToldOfAtOnce checks that a client need not mend one field to hear of the next.
func TestEveryProblemIsToldOfAtOnce(t *testing.T) {
	c := testClaim(env(variable("", "X", "1")), func(c *claim) {
		c.Spec.VolumeClaimTemplates = volumes("x")
		c.Spec.AdditionalPodMetadata.Labels = pairs{"app": "db"}
	})
	wantRejection(t, Check(c, testTemplate()), extensionsv1beta1.ClaimReasonVolumeClaimTemplatesError,
		[]string{"Forbidden spec.volumeClaimTemplates ", "Forbidden spec.additionalPodMetadata.labels[app] ", "Forbidden spec.env "})
}
