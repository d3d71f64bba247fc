// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
)

func testOwner() []metav1.OwnerReference {
	yes := true
	return []metav1.OwnerReference{{
		APIVersion: "agents.x-k8s.io/v1beta1", Kind: "Sandbox", Name: testName, UID: testUID, Controller: &yes, BlockOwnerDeletion: &yes,
	}}
}

func TestDesiredPersistentVolumeClaim(t *testing.T) {
	template := &agentsv1beta1.PersistentVolumeClaimTemplate{
		Metadata: agentsv1beta1.EmbeddedObjectMetadata{
			Name:        "data",
			Labels:      map[string]string{"tier": "fast", agentsv1beta1.SandboxNameHashLabel: "victim"},
			Annotations: map[string]string{"agents.x-k8s.io/kept": "verbatim"},
		},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}},
	}
	before := template.DeepCopy()
	want := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: testNamespace, Name: "data-s1", OwnerReferences: testOwner(),
			Labels:      map[string]string{"tier": "fast", agentsv1beta1.SandboxNameHashLabel: "0851b8c9"},
			Annotations: map[string]string{"agents.x-k8s.io/kept": "verbatim"},
		},
		Spec: before.Spec,
	}
	if diff := cmp.Diff(want, desiredPersistentVolumeClaim(testSandbox(), template)); diff != "" {
		t.Errorf("claim differs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, template); diff != "" {
		t.Errorf("the template was changed:\n%s", diff)
	}
}

func TestDesiredService(t *testing.T) {
	sandbox := testSandbox(wantService(true), func(s *agentsv1beta1.Sandbox) {
		s.Spec.PodTemplate.Metadata.Labels = map[string]string{"app": "not for the Service"}
	})
	hash := map[string]string{agentsv1beta1.SandboxNameHashLabel: "0851b8c9"}
	want := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: testName, Labels: hash, OwnerReferences: testOwner()},
		Spec:       corev1.ServiceSpec{ClusterIP: "None", Selector: hash},
	}
	if diff := cmp.Diff(want, desiredService(sandbox)); diff != "" {
		t.Errorf("Service differs (-want +got):\n%s", diff)
	}
}

func TestServicePlan(t *testing.T) {
	service := func(changes ...func(*corev1.Service)) *corev1.Service {
		s := desiredService(testSandbox())
		for _, change := range changes {
			change(s)
		}
		return s
	}
	free := func(s *corev1.Service) { s.OwnerReferences = nil }
	plain := func(s *corev1.Service) { s.Labels = nil }
	marked := func(s *corev1.Service) { s.Labels = map[string]string{agentsv1beta1.AdoptableLabel: "true"} }
	strange := func(s *corev1.Service) { s.OwnerReferences = []metav1.OwnerReference{strangerRef()} }
	address := func(ip string) func(*corev1.Service) { return func(s *corev1.Service) { s.Spec.ClusterIP = ip } }
	yes, no := true, false

	for name, test := range map[string]struct {
		wanted  *bool
		current *corev1.Service
		want    serviceAction
		wantErr string
	}{
		"true, missing":                {&yes, nil, serviceCreate, ""},
		"true, owned":                  {&yes, service(), serviceUpdate, ""},
		"true, unowned, labelled":      {&yes, service(free), serviceUpdate, ""},
		"true, unowned, adoptable":     {&yes, service(free, marked), serviceUpdate, ""},
		"true, unowned, no address":    {&yes, service(free, marked, address("")), serviceUpdate, ""},
		"true, unowned, not headless":  {&yes, service(free, marked, address("10.96.0.9")), serviceAbsent, `cannot adopt unowned service "s1": it is not headless`},
		"true, unowned, not adoptable": {&yes, service(free, plain), serviceAbsent, `cannot adopt unowned service "s1": it has neither the label agents.x-k8s.io/adoptable=true nor the agents.x-k8s.io/sandbox-name-hash of sandbox "s1"`},
		"true, foreign":                {&yes, service(strange), serviceAbsent, `service "s1" is owned by ReplicaSet/web (UID: stranger-uid), not by sandbox "s1"`},
		"unset, missing":               {nil, nil, serviceAbsent, ""},
		"unset, owned":                 {nil, service(), serviceUpdate, ""},
		"unset, unowned":               {nil, service(free), serviceAbsent, ""},
		"unset, foreign":               {nil, service(strange), serviceAbsent, `service "s1" is owned by ReplicaSet/web (UID: stranger-uid), not by sandbox "s1"`},
		"false, missing":               {&no, nil, serviceAbsent, ""},
		"false, owned":                 {&no, service(), serviceDelete, ""},
		"false, unowned":               {&no, service(free), serviceAbsent, ""},
		"false, foreign":               {&no, service(strange), serviceAbsent, ""},
	} {
		t.Run(name, func(t *testing.T) {
			sandbox := testSandbox()
			sandbox.Spec.Service = test.wanted
			got, err := planService(sandbox, test.current)
			if got != test.want {
				t.Errorf("action is %d, want %d", got, test.want)
			}
			if message := errorText(err); message != test.wantErr {
				t.Errorf("error is\n%s\nwant\n%s", message, test.wantErr)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestServiceRepair(t *testing.T) {
	sandbox := testSandbox(wantService(true), func(s *agentsv1beta1.Sandbox) {
		s.Spec.PodTemplate.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 80}}
	})
	unset := sandbox.DeepCopy()
	unset.Spec.Service = nil
	// What an API server makes of a headless Service.
	settled := desiredService(sandbox)
	settled.Spec.Type, settled.Spec.ClusterIPs, settled.Spec.SessionAffinity = corev1.ServiceTypeClusterIP, []string{"None"}, corev1.ServiceAffinityNone
	settled.Annotations = map[string]string{"others": "kept"}
	broken := settled.DeepCopy()
	broken.Labels = map[string]string{"others": "kept"}
	broken.Spec.Selector = map[string]string{"app": "elsewhere"}
	broken.Spec.Ports = []corev1.ServicePort{{Port: 81}}

	if diff := cmp.Diff(settled, repairedService(sandbox, settled)); diff != "" {
		t.Errorf("defaults are fought over (-want +got):\n%s", diff)
	}
	want := settled.DeepCopy()
	want.Labels["others"] = "kept"
	if diff := cmp.Diff(want, repairedService(sandbox, broken)); diff != "" {
		t.Errorf("repair differs (-want +got):\n%s", diff)
	}
	want.Spec.Ports = broken.Spec.Ports
	if diff := cmp.Diff(want, repairedService(unset, broken)); diff != "" {
		t.Errorf("repair without ports differs (-want +got):\n%s", diff)
	}
}
