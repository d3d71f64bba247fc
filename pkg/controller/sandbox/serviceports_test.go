// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestServicePorts(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	port := func(name string, number int32, protocol corev1.Protocol) corev1.ContainerPort {
		return corev1.ContainerPort{Name: name, ContainerPort: number, Protocol: protocol}
	}
	for name, test := range map[string]struct {
		containers [][]corev1.ContainerPort
		sidecar    []corev1.ContainerPort
		init       []corev1.ContainerPort
		want       []string
	}{
		"none": {containers: [][]corev1.ContainerPort{nil}},
		"sorted by number, then protocol": {
			containers: [][]corev1.ContainerPort{{port("b", 90, "UDP"), port("a", 90, "TCP"), port("c", 80, "")}},
			want:       []string{"c 80/TCP", "a 90/TCP", "b 90/UDP"},
		},
		"no protocol is TCP": {
			containers: [][]corev1.ContainerPort{{port("web", 80, ""), port("again", 80, "TCP")}},
			want:       []string{"web 80/TCP"},
		},
		"one number on TCP and UDP": {
			containers: [][]corev1.ContainerPort{{port("", 8006, "TCP"), port("", 5900, ""), port("", 3389, "TCP"), port("", 3389, "UDP")}},
			want:       []string{"p-3389-tcp 3389/TCP", "p-3389-udp 3389/UDP", "p-5900-tcp 5900/TCP", "p-8006-tcp 8006/TCP"},
		},
		"first name of a port wins, later containers included": {
			containers: [][]corev1.ContainerPort{{port("", 80, "")}, {port("web", 80, "")}, {port("late", 80, "")}},
			want:       []string{"web 80/TCP"},
		},
		"a name belongs to the first port that has it": {
			containers: [][]corev1.ContainerPort{{port("web", 80, "")}, {port("web", 81, "")}, {port("other", 81, "")}},
			want:       []string{"web 80/TCP", "other 81/TCP"},
		},
		"a port left without a name gets one": {
			containers: [][]corev1.ContainerPort{{port("web", 80, "")}, {port("web", 81, "")}},
			want:       []string{"web 80/TCP", "p-81-tcp 81/TCP"},
		},
		"generated names avoid given ones": {
			containers: [][]corev1.ContainerPort{{port("p-80-tcp", 90, ""), port("p-80-tcp-2", 91, ""), port("", 80, "")}},
			want:       []string{"p-80-tcp-3 80/TCP", "p-80-tcp 90/TCP", "p-80-tcp-2 91/TCP"},
		},
		"port 0 is none": {
			containers: [][]corev1.ContainerPort{{port("zero", 0, ""), port("zero", 80, "")}},
			want:       []string{"zero 80/TCP"},
		},
		"sidecars count, other init containers do not": {
			containers: [][]corev1.ContainerPort{{port("web", 80, "")}},
			sidecar:    []corev1.ContainerPort{port("proxy", 15001, "")},
			init:       []corev1.ContainerPort{port("setup", 99, "")},
			want:       []string{"web 80/TCP", "proxy 15001/TCP"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &corev1.PodSpec{InitContainers: []corev1.Container{{Ports: test.init}, {Ports: test.sidecar, RestartPolicy: &always}}}
			for _, ports := range test.containers {
				spec.Containers = append(spec.Containers, corev1.Container{Ports: ports})
			}
			var got []string
			for _, port := range servicePorts(spec) {
				if port.TargetPort.IntVal != port.Port {
					t.Errorf("target port of %d is %v", port.Port, port.TargetPort)
				}
				got = append(got, fmt.Sprintf("%s %d/%s", port.Name, port.Port, port.Protocol))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("ports differ (-want +got):\n%s", diff)
			}
		})
	}
}
