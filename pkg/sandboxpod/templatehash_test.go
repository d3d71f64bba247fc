// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxpod

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
)

// richSandbox returns a Sandbox whose template has a bit of everything that defaulting could touch, before it did.
func richSandbox(changes ...func(*corev1.PodSpec)) *agentsv1beta1.Sandbox {
	sandbox := &agentsv1beta1.Sandbox{}
	sandbox.Namespace, sandbox.Name, sandbox.UID = testNamespace, testName, "uid-1"
	sandbox.Spec.PodTemplate.Spec = corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "init", Image: "example", Command: []string{"true"}}},
		Containers: []corev1.Container{{
			Name:          "main",
			Image:         "example",
			Args:          []string{"a", "b"},
			Ports:         []corev1.ContainerPort{{ContainerPort: 80}, {ContainerPort: 53}},
			Env:           []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}}}},
			LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 1}}},
			ReadinessProbe: &corev1.Probe{
				ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80)}},
			},
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000m")}},
		}},
		Volumes: []corev1.Volume{
			{Name: "disk", VolumeSource: corev1.VolumeSource{AzureDisk: &corev1.AzureDiskVolumeSource{DiskName: "d", DataDiskURI: "u"}}},
			{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "own", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}}}},
		},
		Affinity:         &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}},
		ImagePullSecrets: []corev1.LocalObjectReference{{}},
	}
	for _, change := range changes {
		change(&sandbox.Spec.PodTemplate.Spec)
	}
	return sandbox
}

func TestPodIsUpToDateUnlessTheTemplateWasEdited(t *testing.T) {
	pod := New(richSandbox())
	for name, test := range map[string]struct {
		change func(*corev1.PodSpec)
		want   bool
	}{
		"same":                  {func(*corev1.PodSpec) {}, false},
		"a default written out": {func(s *corev1.PodSpec) { s.Containers[0].Ports[0].Protocol = corev1.ProtocolTCP }, false},
		"a quantity in other words": {func(s *corev1.PodSpec) {
			s.Containers[0].Resources.Limits[corev1.ResourceCPU] = resource.MustParse("1")
		}, false},
		"an empty list":    {func(s *corev1.PodSpec) { s.Tolerations = []corev1.Toleration{} }, false},
		"an empty object":  {func(s *corev1.PodSpec) { s.SecurityContext = &corev1.PodSecurityContext{} }, false},
		"image":            {func(s *corev1.PodSpec) { s.Containers[0].Image = "example:2" }, true},
		"argument":         {func(s *corev1.PodSpec) { s.Containers[0].Args = []string{"b", "a"} }, true},
		"variable":         {func(s *corev1.PodSpec) { s.Containers[0].Env[0].Value = "2" }, true},
		"variable removed": {func(s *corev1.PodSpec) { s.Containers[0].Env = s.Containers[0].Env[1:] }, true},
		"protocol":         {func(s *corev1.PodSpec) { s.Containers[0].Ports[0].Protocol = corev1.ProtocolUDP }, true},
		"limit": {func(s *corev1.PodSpec) {
			s.Containers[0].Resources.Limits[corev1.ResourceCPU] = resource.MustParse("2")
		}, true},
		"order of ports":                {func(s *corev1.PodSpec) { p := s.Containers[0].Ports; p[0], p[1] = p[1], p[0] }, true},
		"false instead of unset":        {func(s *corev1.PodSpec) { s.AutomountServiceAccountToken = ptr.To(false) }, true},
		"zero instead of unset":         {func(s *corev1.PodSpec) { s.TerminationGracePeriodSeconds = ptr.To[int64](0) }, true},
		"another value than by default": {func(s *corev1.PodSpec) { s.Volumes[0].AzureDisk.FSType = ptr.To("xfs") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			sandbox := richSandbox(test.change)
			if got := OutOfDate(sandbox, pod); got != test.want {
				t.Errorf("out of date is %v", got)
			}
			// The server may store defaults from now on that it did not know of when the Pod was made.
			agentsv1beta1.SetObjectDefaults_Sandbox(sandbox)
			if got := OutOfDate(sandbox, pod); got != test.want {
				t.Errorf("with defaults, out of date is %v", got)
			}
		})
	}
}

func TestOnlyTheSpecOfTheTemplateCounts(t *testing.T) {
	sandbox := richSandbox()
	pod := New(sandbox)
	sandbox.Spec.PodTemplate.Metadata.Labels = map[string]string{"a": "b"}
	sandbox.Spec.OperatingMode = agentsv1beta1.SandboxOperatingModeSuspended
	sandbox.Generation++
	if OutOfDate(sandbox, pod) {
		t.Error("out of date though the Pod would be made the same way")
	}
}

func TestNothingIsKnownOfAnUnmarkedPod(t *testing.T) {
	pod := New(richSandbox())
	delete(pod.Annotations, PodTemplateSpecHashAnnotation)
	if OutOfDate(richSandbox(func(s *corev1.PodSpec) { s.Containers[0].Image = "example:2" }), pod) {
		t.Error("out of date")
	}
}

func TestMarkSurvivesTheSyncOfMetadata(t *testing.T) {
	sandbox := richSandbox()
	pod := New(sandbox)
	want := pod.Annotations[PodTemplateSpecHashAnnotation]
	// Whoever may write Pods may write this list.
	pod.Annotations[agentsv1beta1.PropagatedAnnotationsAnnotation] = PodTemplateSpecHashAnnotation
	sandbox.Spec.PodTemplate.Metadata.Annotations = map[string]string{PodTemplateSpecHashAnnotation: "forged"}
	SyncMetadata(sandbox, pod)
	if diff := cmp.Diff(want, pod.Annotations[PodTemplateSpecHashAnnotation]); diff != "" {
		t.Errorf("mark differs (-want +got):\n%s", diff)
	}
}

// TestHashStaysTheSameFromReleaseToRelease fails if Pods of an earlier release would be taken for out of date.
func TestHashStaysTheSameFromReleaseToRelease(t *testing.T) {
	got, err := templateSpecHash(&richSandbox().Spec.PodTemplate.Spec)
	if err != nil {
		t.Fatal(err)
	}
	if want := "921d7dcb5f073af8"; got != want {
		t.Errorf("hash is %s, want %s", got, want)
	}
}

func BenchmarkOutOfDate(b *testing.B) {
	sandbox := richSandbox()
	pod := New(sandbox)
	for b.Loop() {
		OutOfDate(sandbox, pod)
	}
}
