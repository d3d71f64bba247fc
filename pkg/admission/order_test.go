// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/admission"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
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

// clientHolder is a plugin that wants a client.
type clientHolder struct {
	*admission.Handler
	client kubernetes.Interface
}

func (*clientHolder) ValidateInitialization() error { return nil }

func (h *clientHolder) SetExternalKubeClientSet(client kubernetes.Interface) { h.client = client }

// TestPluginsAreNotThrottled makes sure that many requests at a time do not wait for each other's dry runs.
func TestPluginsAreNotThrottled(t *testing.T) {
	initializers, err := Initializers(&rest.Config{Host: "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	plugin := &clientHolder{}
	for _, initializer := range initializers {
		initializer.Initialize(plugin)
	}
	if plugin.client == nil {
		t.Fatal("the plugin was given no client")
	}
	if limiter := plugin.client.CoreV1().RESTClient().GetRateLimiter(); limiter != nil {
		t.Errorf("the client limits itself to %v requests a second", limiter.QPS())
	}
}
