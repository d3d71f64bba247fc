// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxtemplate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
)

func testTemplate(changes ...func(*extensionsv1beta1.SandboxTemplate)) *extensionsv1beta1.SandboxTemplate {
	template := &extensionsv1beta1.SandboxTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "t1"}}
	template.Spec.PodTemplate = agentsv1beta1.PodTemplate{
		Metadata: agentsv1beta1.PodMetadata{Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: "example", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}},
		}}},
	}
	template.Spec.VolumeClaimTemplates = []agentsv1beta1.PersistentVolumeClaimTemplate{{Metadata: agentsv1beta1.EmbeddedObjectMetadata{Name: "data"}}}
	for _, change := range changes {
		change(template)
	}
	return template
}

func TestSecureDefaults(t *testing.T) {
	own := &corev1.PodDNSConfig{Nameservers: []string{"10.0.0.10"}}
	type defaults struct {
		Mount     *bool
		DNSPolicy corev1.DNSPolicy
		DNSConfig *corev1.PodDNSConfig
	}
	public := &corev1.PodDNSConfig{Nameservers: []string{"8.8.8.8", "1.1.1.1"}}
	for name, test := range map[string]struct {
		change func(*extensionsv1beta1.SandboxTemplate)
		want   defaults
	}{
		"nothing said": {func(*extensionsv1beta1.SandboxTemplate) {}, defaults{ptr.To(false), corev1.DNSNone, public}},
		"managed by name": {
			func(t *extensionsv1beta1.SandboxTemplate) { t.Spec.NetworkPolicyManagement = "Managed" },
			defaults{ptr.To(false), corev1.DNSNone, public},
		},
		"unmanaged": {
			func(t *extensionsv1beta1.SandboxTemplate) { t.Spec.NetworkPolicyManagement = "Unmanaged" }, defaults{Mount: ptr.To(false)},
		},
		"own rules, even empty": {func(t *extensionsv1beta1.SandboxTemplate) {
			t.Spec.NetworkPolicy = &extensionsv1beta1.NetworkPolicySpec{}
		}, defaults{Mount: ptr.To(false)}},
		"token wanted": {
			func(t *extensionsv1beta1.SandboxTemplate) {
				t.Spec.PodTemplate.Spec.AutomountServiceAccountToken = ptr.To(true)
			},
			defaults{ptr.To(true), corev1.DNSNone, public},
		},
		"dnsPolicy set": {
			func(t *extensionsv1beta1.SandboxTemplate) { t.Spec.PodTemplate.Spec.DNSPolicy = corev1.DNSDefault },
			defaults{Mount: ptr.To(false), DNSPolicy: corev1.DNSDefault},
		},
		"dnsConfig without a dnsPolicy": {
			func(t *extensionsv1beta1.SandboxTemplate) { t.Spec.PodTemplate.Spec.DNSConfig = own },
			defaults{ptr.To(false), corev1.DNSNone, public},
		},
	} {
		t.Run(name, func(t *testing.T) {
			template := testTemplate(test.change)
			before := template.DeepCopy()
			got := Blueprint(template)
			pod := got.PodTemplate.Spec
			if diff := cmp.Diff(test.want, defaults{pod.AutomountServiceAccountToken, pod.DNSPolicy, pod.DNSConfig}); diff != "" {
				t.Errorf("defaults differ (-want +got):\n%s", diff)
			}
			got.PodTemplate.Metadata.Labels["app"] = "changed"
			got.VolumeClaimTemplates[0].Metadata.Name = "changed"
			if diff := cmp.Diff(before, template); diff != "" {
				t.Errorf("the template was changed:\n%s", diff)
			}
		})
	}
}

// withReservedKeys makes the template claim for its Pods what only the system may say.
func withReservedKeys(template *extensionsv1beta1.SandboxTemplate) {
	template.Spec.PodTemplate.Metadata = agentsv1beta1.PodMetadata{
		Labels: map[string]string{
			"app": "web", agentsv1beta1.ClaimUIDLabel: "stolen", agentsv1beta1.WarmPoolSandboxLabel: "other", "extensions.agents.x-k8s.io/x": "y",
		},
		Annotations: map[string]string{"note": "1", agentsv1beta1.TraceContextAnnotation: "{}"},
	}
}

func TestReservedKeysOfATemplateAreIgnored(t *testing.T) {
	template := testTemplate(withReservedKeys)
	before := template.DeepCopy()
	want := agentsv1beta1.PodMetadata{Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"note": "1"}}
	if diff := cmp.Diff(want, Blueprint(template).PodTemplate.Metadata); diff != "" {
		t.Errorf("metadata differs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, template); diff != "" {
		t.Errorf("the template was changed:\n%s", diff)
	}
	if !Fresh(template, member(template)) {
		t.Error("a member that was just made does not follow the template")
	}
}

// member returns what a pool has made from the template, as the API server gives it back.
func member(template *extensionsv1beta1.SandboxTemplate) *agentsv1beta1.Sandbox {
	sandbox := &agentsv1beta1.Sandbox{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
		agentsv1beta1.SandboxTemplateRefHashLabel: naming.Hash(template.Name),
		agentsv1beta1.SandboxTemplateHashLabel:    Hash(template),
	}}}
	sandbox.Spec.SandboxBlueprint = Blueprint(template)
	sandbox.Spec.PodTemplate.Metadata.Annotations = map[string]string{agentsv1beta1.SafeToEvictAnnotation: "true"}
	return sandbox
}

// TestDrift is case W8: what an edit of the template makes of a member.
func TestDrift(t *testing.T) {
	for name, test := range map[string]struct {
		edit func(*extensionsv1beta1.SandboxTemplate)
		want bool
	}{
		"none":             {func(*extensionsv1beta1.SandboxTemplate) {}, true},
		"label of the Pod": {func(t *extensionsv1beta1.SandboxTemplate) { t.Spec.PodTemplate.Metadata.Labels["app"] = "db" }, true},
		"annotation of the Pod": {func(t *extensionsv1beta1.SandboxTemplate) {
			t.Spec.PodTemplate.Metadata.Annotations = map[string]string{"a": "b"}
		}, true},
		"label of a volume": {func(t *extensionsv1beta1.SandboxTemplate) {
			t.Spec.VolumeClaimTemplates[0].Metadata.Labels = map[string]string{"a": "b"}
		}, true},
		"reserved keys": {withReservedKeys, true},
		"a default written out": {func(t *extensionsv1beta1.SandboxTemplate) {
			t.Spec.PodTemplate.Spec.AutomountServiceAccountToken = ptr.To(false)
		}, true},
		"an empty list": {func(t *extensionsv1beta1.SandboxTemplate) {
			t.Spec.PodTemplate.Spec.Tolerations = []corev1.Toleration{}
		}, true},
		"a quantity in other words": {func(t *extensionsv1beta1.SandboxTemplate) {
			t.Spec.PodTemplate.Spec.Containers[0].Resources.Limits[corev1.ResourceMemory] = resource.MustParse("1024Mi")
		}, true},
		"policy for env":  {func(t *extensionsv1beta1.SandboxTemplate) { t.Spec.EnvVarsInjectionPolicy = "Allowed" }, true},
		"label of itself": {func(t *extensionsv1beta1.SandboxTemplate) { t.Labels = map[string]string{"a": "b"} }, true},
		"network policy":  {func(t *extensionsv1beta1.SandboxTemplate) { t.Spec.NetworkPolicyManagement = "Unmanaged" }, true},
		"image":           {func(t *extensionsv1beta1.SandboxTemplate) { t.Spec.PodTemplate.Spec.Containers[0].Image = "example:2" }, false},
		"token mounted": {func(t *extensionsv1beta1.SandboxTemplate) {
			t.Spec.PodTemplate.Spec.AutomountServiceAccountToken = ptr.To(true)
		}, false},
		"volume renamed": {func(t *extensionsv1beta1.SandboxTemplate) { t.Spec.VolumeClaimTemplates[0].Metadata.Name = "disk" }, false},
		"volume removed": {func(t *extensionsv1beta1.SandboxTemplate) { t.Spec.VolumeClaimTemplates = nil }, false},
		"class of a volume": {func(t *extensionsv1beta1.SandboxTemplate) {
			t.Spec.VolumeClaimTemplates[0].Spec.StorageClassName = ptr.To("fast")
		}, false},
		"service":          {func(t *extensionsv1beta1.SandboxTemplate) { t.Spec.Service = ptr.To(true) }, false},
		"service refused":  {func(t *extensionsv1beta1.SandboxTemplate) { t.Spec.Service = ptr.To(false) }, false},
		"another template": {func(t *extensionsv1beta1.SandboxTemplate) { t.Name = "t2" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			sandbox := member(testTemplate())
			if got := Fresh(testTemplate(test.edit), sandbox); got != test.want {
				t.Errorf("fresh is %v, want %v", got, test.want)
			}
		})
	}
}

func TestMemberOfAnotherReleaseIsComparedByWhatItRuns(t *testing.T) {
	sandbox := member(testTemplate())
	sandbox.Labels[agentsv1beta1.SandboxTemplateHashLabel] = "other"
	if !Fresh(testTemplate(), sandbox) {
		t.Error("not fresh though it runs the same")
	}
	delete(sandbox.Labels, agentsv1beta1.SandboxTemplateHashLabel)
	if !Fresh(testTemplate(), sandbox) {
		t.Error("not fresh without a hash")
	}
}

func TestHashLabelIsNotTakenForWhatRuns(t *testing.T) {
	sandbox := member(testTemplate())
	sandbox.Spec.PodTemplate.Spec.Containers[0].Image = "evil"
	if Matches(testTemplate(), sandbox) {
		t.Error("an edited Sandbox matches by its label")
	}
}

func TestPoolRecreatesOnlyIfItSaysSo(t *testing.T) {
	strategy := func(of extensionsv1beta1.SandboxWarmPoolUpdateStrategyType) *extensionsv1beta1.SandboxWarmPoolUpdateStrategy {
		return &extensionsv1beta1.SandboxWarmPoolUpdateStrategy{Type: of}
	}
	for name, test := range map[string]struct {
		strategy *extensionsv1beta1.SandboxWarmPoolUpdateStrategy
		want     bool
	}{
		"nothing said": {nil, false}, "empty": {strategy(""), false}, "OnReplenish": {strategy("OnReplenish"), false}, "Recreate": {strategy("Recreate"), true},
	} {
		t.Run(name, func(t *testing.T) {
			pool := &extensionsv1beta1.SandboxWarmPool{}
			pool.Spec.UpdateStrategy = test.strategy
			if got := Recreates(pool); got != test.want {
				t.Errorf("recreates is %v, want %v", got, test.want)
			}
		})
	}
}

func BenchmarkFresh(b *testing.B) {
	template := testTemplate()
	sandbox := member(template)
	for b.Loop() {
		Fresh(template, sandbox)
	}
}
