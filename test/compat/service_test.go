// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

// ports returns an option of framework.NewSandbox that sets the ports of the container.
func ports(ports ...corev1.ContainerPort) func(*v1beta1.Sandbox) {
	return with(func(spec *v1beta1.SandboxSpec) { spec.PodTemplate.Spec.Containers[0].Ports = ports })
}

// portsOf returns the ports of a Service, one as name=port/protocol>target.
func portsOf(service *corev1.Service) []string {
	got := []string{}
	for _, port := range service.Spec.Ports {
		got = append(got, fmt.Sprintf("%s=%d/%s>%s", port.Name, port.Port, port.Protocol, port.TargetPort.String()))
	}
	return got
}

// existingService creates a Service that is there before its Sandbox.
func existingService(t *tester, namespace, name, clusterIP string, labels map[string]string, owners []metav1.OwnerReference) *corev1.Service {
	t.Helper()
	service, err := env.kube.CoreV1().Services(namespace).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, OwnerReferences: owners},
		Spec:       corev1.ServiceSpec{ClusterIP: clusterIP, Selector: map[string]string{"app": "other"}, Ports: []corev1.ServicePort{{Name: "other", Port: 7}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return service
}

func patchService(t *tester, namespace, name, patch string) {
	t.Helper()
	if _, err := env.kube.CoreV1().Services(namespace).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// awaitService waits until check returns nil for a Service.
func awaitService(t *tester, namespace, name string, check func(*corev1.Service) error) *corev1.Service {
	t.Helper()
	var service *corev1.Service
	eventually(t, "Service "+name, func(ctx context.Context) (err error) {
		if service, err = env.kube.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		return check(service)
	})
	return service
}

// TestService has the rules of the three values of spec.service.
func TestService(t *testing.T) {
	hash := map[string]string{v1beta1.SandboxNameHashLabel: hashOfMySandbox}
	hasPorts := func(want ...string) func(*corev1.Service) error {
		return func(service *corev1.Service) error {
			if diff := cmp.Diff(append([]string{}, want...), portsOf(service)); diff != "" {
				return fmt.Errorf("ports (-want +got):\n%s", diff)
			}
			return nil
		}
	}
	runRows(t,
		row{id: "true-makes", rule: "true makes a headless Service of the Sandbox's name that selects its Pod, and status has its name", run: func(t *tester) {
			namespace := newNamespace(t)
			sandbox := create(t, namespace, "my-sandbox", unscheduled, framework.WithService)
			awaitPod(t, namespace, "my-sandbox")
			patchPod(t, namespace, "my-sandbox", podReady, "status")
			status := await(t, namespace, "my-sandbox", conditions(condition{v1beta1.SandboxConditionReady, metav1.ConditionTrue, v1beta1.SandboxReasonDependenciesReady, "Pod is Ready; Service Exists"})).Status
			if status.Service != "my-sandbox" || !strings.HasPrefix(status.ServiceFQDN, "my-sandbox."+namespace+".svc.") {
				t.Errorf("service %q, FQDN %q", status.Service, status.ServiceFQDN)
			}
			got := service(t, namespace, "my-sandbox")
			controlled(t, got, sandbox)
			if got.Spec.ClusterIP != corev1.ClusterIPNone || !cmp.Equal(hash, got.Spec.Selector) || !cmp.Equal(hash, got.Labels) || len(got.Spec.Ports) != 0 || got.Spec.PublishNotReadyAddresses {
				t.Errorf("labels %v, spec %+v", got.Labels, got.Spec)
			}
		}},
		row{id: "ports", rule: "its ports are those of containers and sidecars: each number and protocol once, in order, with a name of their own", run: func(t *tester) {
			namespace := newNamespace(t)
			create(t, namespace, "box", unscheduled, framework.WithService, with(func(s *v1beta1.SandboxSpec) {
				spec := &s.PodTemplate.Spec
				spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8080}, {ContainerPort: 53, Protocol: corev1.ProtocolUDP, Name: "dns"}, {ContainerPort: 53, Name: "p-8080-tcp"}}
				spec.InitContainers = []corev1.Container{
					{Name: "once", Image: "a", Ports: []corev1.ContainerPort{{ContainerPort: 1}}},
					{Name: "sidecar", Image: "a", Ports: []corev1.ContainerPort{{ContainerPort: 9090, Name: "metrics"}}, RestartPolicy: new(corev1.ContainerRestartPolicyAlways)},
				}
			}))
			awaitService(t, namespace, "box", hasPorts("p-8080-tcp=53/TCP>53", "dns=53/UDP>53", "p-8080-tcp-2=8080/TCP>8080", "metrics=9090/TCP>9090"))
		}},
		row{id: "true-repairs", rule: "true repairs label, selector and ports of its Service", run: func(t *tester) {
			namespace := newNamespace(t)
			create(t, namespace, "my-sandbox", unscheduled, framework.WithService, ports(corev1.ContainerPort{ContainerPort: 80}))
			awaitService(t, namespace, "my-sandbox", hasPorts("p-80-tcp=80/TCP>80"))
			patchService(t, namespace, "my-sandbox", `{"metadata":{"labels":{"agents.x-k8s.io/sandbox-name-hash":"forged"}},"spec":{"selector":{"app":"forged"},"ports":[{"name":"forged","port":1}]}}`)
			awaitService(t, namespace, "my-sandbox", func(service *corev1.Service) error {
				if !cmp.Equal(hash, service.Labels) || service.Spec.Selector[v1beta1.SandboxNameHashLabel] != hashOfMySandbox || service.Spec.Selector["app"] != "" {
					return fmt.Errorf("labels %v, selector %v", service.Labels, service.Spec.Selector)
				}
				return hasPorts("p-80-tcp=80/TCP>80")(service)
			})
			patch(t, namespace, "my-sandbox", `{"spec":{"podTemplate":{"spec":{"containers":[{"name":"main","image":"a","ports":[{"containerPort":81}]}]}}}}`)
			awaitService(t, namespace, "my-sandbox", hasPorts("p-81-tcp=81/TCP>81"))
		}},
		row{id: "unset-keeps", rule: "unset keeps the Service there is: its selector is repaired, its ports are not, and the Sandbox is ready with it", run: func(t *tester) {
			namespace := newNamespace(t)
			createWithPod(t, namespace, "my-sandbox", podReady, framework.WithService, ports(corev1.ContainerPort{ContainerPort: 80}))
			before := awaitService(t, namespace, "my-sandbox", hasPorts("p-80-tcp=80/TCP>80"))
			patch(t, namespace, "my-sandbox", `{"spec":{"service":null,"podTemplate":{"spec":{"containers":[{"name":"main","image":"a","ports":[{"containerPort":81}]}]}}}}`)
			patchService(t, namespace, "my-sandbox", `{"spec":{"selector":{"app":"forged","agents.x-k8s.io/sandbox-name-hash":null}}}`)
			after := awaitService(t, namespace, "my-sandbox", func(service *corev1.Service) error {
				if service.Spec.Selector[v1beta1.SandboxNameHashLabel] != hashOfMySandbox {
					return fmt.Errorf("selector %v", service.Spec.Selector)
				}
				return hasPorts("p-80-tcp=80/TCP>80")(service)
			})
			if after.UID != before.UID {
				t.Error("the Service was replaced")
			}
			status := await(t, namespace, "my-sandbox", conditions(condition{v1beta1.SandboxConditionReady, metav1.ConditionTrue, "", "; Service Exists"})).Status
			if status.Service != "my-sandbox" {
				t.Errorf("service is %q", status.Service)
			}
		}},
		row{id: "unset-makes-none", rule: "unset makes no Service and needs none", run: func(t *tester) {
			namespace := newNamespace(t)
			createWithPod(t, namespace, "box", podReady)
			status := await(t, namespace, "box", conditions(condition{v1beta1.SandboxConditionReady, metav1.ConditionTrue, v1beta1.SandboxReasonDependenciesReady, "Pod is Ready"})).Status
			if got := service(t, namespace, "box"); got != nil || status.Service != "" || status.ServiceFQDN != "" {
				t.Errorf("Service %+v, status %+v", got, status)
			}
		}},
		row{id: "false-deletes", rule: "false deletes the Service of the Sandbox, and clears the status", run: func(t *tester) {
			namespace := newNamespace(t)
			createWithPod(t, namespace, "box", podReady, framework.WithService)
			awaitService(t, namespace, "box", hasPorts())
			patch(t, namespace, "box", `{"spec":{"service":false}}`)
			awaitGone(t, "Service", env.kube.CoreV1().Services(namespace).Get, "box")
			await(t, namespace, "box", all(ready(), func(s *v1beta1.Sandbox) error {
				if s.Status.Service != "" || s.Status.ServiceFQDN != "" {
					return fmt.Errorf("status is %+v", s.Status)
				}
				return nil
			}))
		}},
		row{id: "adopt", rule: "true adopts a headless Service that nobody controls, if it is marked adoptable or has the hash", run: func(t *tester) {
			namespace := newNamespace(t)
			for name, labels := range map[string]map[string]string{"marked": {v1beta1.AdoptableLabel: "true"}, "my-sandbox": hash} {
				before := existingService(t, namespace, name, corev1.ClusterIPNone, labels, nil)
				sandbox := create(t, namespace, name, unscheduled, framework.WithService, ports(corev1.ContainerPort{ContainerPort: 80}))
				after := awaitService(t, namespace, name, hasPorts("p-80-tcp=80/TCP>80"))
				controlled(t, after, sandbox)
				if after.UID != before.UID || after.Spec.Selector["app"] != "" {
					t.Errorf("%s: %+v", name, after.Spec)
				}
			}
		}},
		row{id: "adopt-not", rule: "true on any other Service of that name is an error, and leaves it alone", run: func(t *tester) {
			namespace := newNamespace(t)
			for name, test := range map[string]struct {
				clusterIP string
				labels    map[string]string
				owners    []metav1.OwnerReference
				message   string
			}{
				"plain":     {corev1.ClusterIPNone, nil, nil, "cannot adopt unowned"},
				"addressed": {"", map[string]string{v1beta1.AdoptableLabel: "true"}, nil, "addressed"},
				"strangers": {corev1.ClusterIPNone, map[string]string{v1beta1.AdoptableLabel: "true"}, stranger(t, namespace), "is owned by ConfigMap/"},
			} {
				before := existingService(t, namespace, name, test.clusterIP, test.labels, test.owners)
				createWithPod(t, namespace, name, podReady, framework.WithService)
				status := await(t, namespace, name, all(notReady(v1beta1.SandboxReasonReconcilerError, test.message), func(s *v1beta1.Sandbox) error {
					if len(s.Status.PodIPs) == 0 {
						return errors.New("no addresses yet")
					}
					return nil
				})).Status
				if status.Service != "" {
					t.Errorf("%s: the Service of somebody else is published: %+v", name, status)
				}
				if diff := cmp.Diff(before, service(t, namespace, name)); diff != "" {
					t.Errorf("%s: the Service changed (-before +after):\n%s", name, diff)
				}
			}
		}},
		row{id: "others-ignored", rule: "unset and false leave a Service that nobody controls alone and ignore it", run: func(t *tester) {
			namespace := newNamespace(t)
			for name, value := range map[string]*bool{"unset": nil, "false": new(false)} {
				before := existingService(t, namespace, name, corev1.ClusterIPNone, map[string]string{v1beta1.AdoptableLabel: "true"}, nil)
				createWithPod(t, namespace, name, podReady, with(func(s *v1beta1.SandboxSpec) { s.Service = value }))
				if status := await(t, namespace, name, ready()).Status; status.Service != "" {
					t.Errorf("%s: status is %+v", name, status)
				}
				if diff := cmp.Diff(before, service(t, namespace, name)); diff != "" {
					t.Errorf("%s: the Service changed (-before +after):\n%s", name, diff)
				}
			}
		}},
		row{id: "strangers-ignored", rule: "unset and false leave a Service of somebody else's alone and ignore it",
			beyond: "who asked for no Service is not hurt by one of the same name; there unset is an error", run: func(t *tester) {
				namespace := newNamespace(t)
				owners := stranger(t, namespace)
				for name, value := range map[string]*bool{"unset": nil, "false": new(false)} {
					before := existingService(t, namespace, name, corev1.ClusterIPNone, nil, owners)
					createWithPod(t, namespace, name, podReady, with(func(s *v1beta1.SandboxSpec) { s.Service = value }))
					if status := await(t, namespace, name, ready()).Status; status.Service != "" {
						t.Errorf("%s: status is %+v", name, status)
					}
					if diff := cmp.Diff(before, service(t, namespace, name)); diff != "" {
						t.Errorf("%s: the Service changed (-before +after):\n%s", name, diff)
					}
				}
			}},
		row{id: "outlives-suspension", rule: "the Service outlives suspension", run: func(t *tester) {
			namespace := newNamespace(t)
			createWithPod(t, namespace, "box", podReady, framework.WithService)
			before := awaitService(t, namespace, "box", hasPorts())
			suspend(t, namespace, "box")
			status := await(t, namespace, "box", suspended()).Status
			if after := service(t, namespace, "box"); after == nil || after.UID != before.UID || status.Service != "box" {
				t.Errorf("Service %+v, status %+v", after, status)
			}
		}},
	)
}
