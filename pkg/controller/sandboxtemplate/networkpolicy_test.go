// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxtemplate

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
)

func TestR13PoliciesOpenExactlyWhatIsDocumented(t *testing.T) {
	port := []networkingv1.NetworkPolicyPort{{Port: ptr.To(intstr.FromInt32(8080))}}
	for name, rules := range map[string]*extensionsv1beta1.NetworkPolicySpec{
		"secure-default": nil,
		"deny-all":       {},
		"custom": {
			Ingress: []networkingv1.NetworkPolicyIngressRule{{Ports: port}},
			Egress:  []networkingv1.NetworkPolicyEgressRule{{Ports: port}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			template := testTemplate(func(template *extensionsv1beta1.SandboxTemplate) { template.Spec.NetworkPolicy = rules })
			before := template.DeepCopy()
			got, err := yaml.Marshal(desiredPolicy(template))
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("NetworkPolicy differs (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, template); diff != "" {
				t.Errorf("the template in the cache has changed (-before +after):\n%s", diff)
			}
		})
	}
}
