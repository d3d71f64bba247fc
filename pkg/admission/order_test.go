// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	genericoptions "k8s.io/apiserver/pkg/server/options"
)

func TestOrder(t *testing.T) {
	options := genericoptions.NewAdmissionOptions()
	AddPlugins(options)
	want := []string{
		"NamespaceLifecycle", "MutatingAdmissionPolicy", "MutatingAdmissionWebhook",
		"PodTemplate", "ValidatingAdmissionPolicy", "ValidatingAdmissionWebhook", "ResourceQuota",
	}
	if diff := cmp.Diff(want, options.RecommendedPluginOrder); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	for _, err := range options.Validate() {
		t.Error(err)
	}
}
