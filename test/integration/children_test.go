// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/sandboxpod"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

// dryRunChild asks kube-apiserver whether the Sandbox could have one of its children.
type dryRunChild func(ctx context.Context, sandbox *v1beta1.Sandbox) error

func dryRunPod(ctx context.Context, sandbox *v1beta1.Sandbox) error {
	pod := sandboxpod.New(sandbox)
	pod.OwnerReferences = nil
	_, err := env.kube.CoreV1().Pods(sandbox.Namespace).Create(ctx, pod, dryRun())
	return err
}

func dryRunClaim(ctx context.Context, sandbox *v1beta1.Sandbox) error {
	template := sandbox.Spec.VolumeClaimTemplates[0]
	_, err := env.kube.CoreV1().PersistentVolumeClaims(sandbox.Namespace).Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: naming.PersistentVolumeClaim(template.Metadata.Name, sandbox.Name), Labels: template.Metadata.Labels, Annotations: template.Metadata.Annotations,
		},
		Spec: template.Spec,
	}, dryRun())
	return err
}

func dryRunService(ctx context.Context, sandbox *v1beta1.Sandbox) error {
	_, err := env.kube.CoreV1().Services(sandbox.Namespace).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: naming.Service(sandbox.Name)},
		Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone},
	}, dryRun())
	return err
}

func dryRun() metav1.CreateOptions { return metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}} }

// TestNothingIsRefusedThatCouldRun holds each rule of the server's own about a child against what kube-apiserver says of that child:
// both refuse it, or both accept it.
func TestNothingIsRefusedThatCouldRun(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	type pairs = map[string]string
	pod := func(change func(*corev1.PodSpec)) *v1beta1.Sandbox {
		return framework.NewSandbox("box", func(s *v1beta1.Sandbox) { change(&s.Spec.PodTemplate.Spec) })
	}
	podMetadata := func(labels, annotations pairs) *v1beta1.Sandbox {
		return framework.NewSandbox("box", func(s *v1beta1.Sandbox) {
			s.Spec.PodTemplate.Metadata = v1beta1.PodMetadata{Labels: labels, Annotations: annotations}
		})
	}
	claim := func(change func(*v1beta1.PersistentVolumeClaimTemplate)) *v1beta1.Sandbox {
		return framework.NewSandbox("box", framework.WithVolume("data"), func(s *v1beta1.Sandbox) { change(&s.Spec.VolumeClaimTemplates[0]) })
	}
	claimSpec := func(change func(*corev1.PersistentVolumeClaimSpec)) *v1beta1.Sandbox {
		return claim(func(template *v1beta1.PersistentVolumeClaimTemplate) { change(&template.Spec) })
	}
	claimMetadata := func(labels, annotations pairs) *v1beta1.Sandbox {
		return claim(func(template *v1beta1.PersistentVolumeClaimTemplate) {
			template.Metadata.Labels, template.Metadata.Annotations = labels, annotations
		})
	}
	accessModes := func(modes ...corev1.PersistentVolumeAccessMode) *v1beta1.Sandbox {
		return claimSpec(func(spec *corev1.PersistentVolumeClaimSpec) { spec.AccessModes = modes })
	}
	size := func(size string) *v1beta1.Sandbox {
		return claimSpec(func(spec *corev1.PersistentVolumeClaimSpec) {
			spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
		})
	}
	selector := func(labels pairs) *v1beta1.Sandbox {
		return claimSpec(func(spec *corev1.PersistentVolumeClaimSpec) {
			spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		})
	}
	tooMuch := pairs{"a": strings.Repeat("x", 256<<10)}
	emptyDir := func(name string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
	}
	fromField := &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}
	const template, first = "spec.podTemplate.", "spec.volumeClaimTemplates[0]."

	for name, test := range map[string]struct {
		sandbox *v1beta1.Sandbox
		child   dryRunChild
		// field is where the Sandbox is refused, or empty if it is accepted.
		field string
	}{
		"containers of one name": {pod(func(s *corev1.PodSpec) { s.Containers = append(s.Containers, s.Containers[0]) }), dryRunPod, template + "spec.containers[1].name"},
		"init containers of one name": {pod(func(s *corev1.PodSpec) {
			s.InitContainers = []corev1.Container{{Name: "init", Image: "image"}, {Name: "init", Image: "image"}}
		}), dryRunPod, template + "spec.initContainers[1].name"},
		"volumes of one name": {pod(func(s *corev1.PodSpec) { s.Volumes = []corev1.Volume{emptyDir("a"), emptyDir("a")} }), dryRunPod, template + "spec.volumes[1].name"},
		"variable with two sources": {pod(func(s *corev1.PodSpec) {
			s.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "a", ValueFrom: fromField}}
		}), dryRunPod, template + "spec.containers[0].env[0].valueFrom"},
		"Pod label key":             {podMetadata(pairs{"not a key": ""}, nil), dryRunPod, template + "metadata.labels"},
		"Pod label value":           {podMetadata(pairs{"a": "not a value"}, nil), dryRunPod, template + "metadata.labels"},
		"Pod annotation key":        {podMetadata(nil, pairs{"not a key": ""}), dryRunPod, template + "metadata.annotations"},
		"Pod annotations":           {podMetadata(nil, tooMuch), dryRunPod, template + "metadata.annotations"},
		"reserved keys":             {podMetadata(pairs{"agents.x-k8s.io/a": "not a value"}, pairs{"agents.x-k8s.io/not a key": ""}), dryRunPod, ""},
		"claim name":                {framework.NewSandbox("box", framework.WithVolume(strings.Repeat("v", 64))), dryRunPod, first + "metadata.name"},
		"claim name with the box's": {framework.NewSandbox(strings.Repeat("s", 200), framework.WithVolume(strings.Repeat("v", 63))), dryRunClaim, first + "metadata.name"},
		"longest claim name":        {framework.NewSandbox(strings.Repeat("s", 189), framework.WithVolume(strings.Repeat("v", 63))), dryRunClaim, ""},
		"claim label key":           {claimMetadata(pairs{"not a key": ""}, nil), dryRunClaim, first + "metadata.labels"},
		"claim label value":         {claimMetadata(pairs{"a": "not a value"}, nil), dryRunClaim, first + "metadata.labels"},
		"claim annotation key":      {claimMetadata(nil, pairs{"not a key": ""}), dryRunClaim, first + "metadata.annotations"},
		"claim annotations":         {claimMetadata(nil, tooMuch), dryRunClaim, first + "metadata.annotations"},
		"no access mode":            {accessModes(), dryRunClaim, first + "spec.accessModes"},
		"unknown access mode":       {accessModes("RWO"), dryRunClaim, first + "spec.accessModes[0]"},
		"access modes that clash":   {accessModes(corev1.ReadWriteOncePod, corev1.ReadWriteMany), dryRunClaim, first + "spec.accessModes"},
		"access modes that do not":  {accessModes(corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany), dryRunClaim, ""},
		"access mode twice":         {accessModes(corev1.ReadWriteOncePod, corev1.ReadWriteOncePod), dryRunClaim, ""},
		"no size":                   {claimSpec(func(s *corev1.PersistentVolumeClaimSpec) { s.Resources.Requests = nil }), dryRunClaim, first + "spec.resources.requests[storage]"},
		"size of nothing":           {size("0"), dryRunClaim, first + "spec.resources.requests[storage]"},
		"size below nothing":        {size("-1Gi"), dryRunClaim, first + "spec.resources.requests[storage]"},
		"size of half a byte":       {size("500m"), dryRunClaim, ""},
		"class":                     {claimSpec(func(s *corev1.PersistentVolumeClaimSpec) { s.StorageClassName = ptr.To("Not_A_Name") }), dryRunClaim, first + "spec.storageClassName"},
		"no class":                  {claimSpec(func(s *corev1.PersistentVolumeClaimSpec) { s.StorageClassName = ptr.To("") }), dryRunClaim, ""},
		"class that is not there":   {claimSpec(func(s *corev1.PersistentVolumeClaimSpec) { s.StorageClassName = ptr.To("a.b") }), dryRunClaim, ""},
		"volume mode":               {claimSpec(func(s *corev1.PersistentVolumeClaimSpec) { s.VolumeMode = ptr.To(corev1.PersistentVolumeMode("block")) }), dryRunClaim, first + "spec.volumeMode"},
		"selector":                  {selector(pairs{"not a key": "a"}), dryRunClaim, first + "spec.selector.matchLabels"},
		"selector of nothing":       {selector(nil), dryRunClaim, ""},
		"service of 64 characters":  {framework.NewSandbox(strings.Repeat("s", 64), framework.WithService), dryRunService, "metadata.name"},
		"service of 63 characters":  {framework.NewSandbox(strings.Repeat("s", 63), framework.WithService), dryRunService, ""},
		"service with a dot":        {framework.NewSandbox("a.b", framework.WithService), dryRunService, "metadata.name"},
		"service without a letter":  {framework.NewSandbox("1", framework.WithService), dryRunService, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.sandbox.Namespace = namespace
			_, err := sandboxes(namespace).Create(t.Context(), test.sandbox, dryRun())
			childErr := test.child(t.Context(), test.sandbox)
			if test.field == "" {
				if err != nil || childErr != nil {
					t.Errorf("the Sandbox: %v; its child: %v; want both accepted", err, childErr)
				}
				return
			}
			checkStatusError(t, err, 422, test.field+": ")
			checkStatusError(t, childErr, 422, "")
		})
	}
}
