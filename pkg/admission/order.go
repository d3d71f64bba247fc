// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package admission puts the admission chain together. kube-apiserver runs no admission for aggregated resources, so whatever a cluster's
// administrator expects of it (policies, webhooks, quota) must run here.
package admission

import (
	"slices"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	validatingadmissionpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	quotageneric "k8s.io/apiserver/pkg/quota/v1/generic"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/admission/podtemplate"
)

// AddPlugins adds to the generic plugins those that this server runs besides. What is ours comes before the policies and webhooks of
// the cluster that only validate, so that these judge what would be stored. ResourceQuota comes last: what another plugin refuses
// must not be charged.
func AddPlugins(options *genericoptions.AdmissionOptions) {
	podtemplate.Register(options.Plugins)
	resourcequota.Register(options.Plugins)
	order := options.RecommendedPluginOrder
	order = slices.Insert(order, slices.Index(order, validatingadmissionpolicy.PluginName), podtemplate.PluginName)
	options.RecommendedPluginOrder = append(order, resourcequota.PluginName)
}

// Initializers returns what gives plugins their dependencies, beyond what the library does. It fails if no client can be made of the
// configuration.
func Initializers(config *rest.Config) ([]admission.PluginInitializer, error) {
	unlimited := rest.CopyConfig(config)
	unlimited.QPS = -1
	client, err := kubernetes.NewForConfig(unlimited)
	if err != nil {
		return nil, err
	}
	return []admission.PluginInitializer{clientInitializer{client}, quotaInitializer{}}, nil
}

// clientInitializer replaces the client that the library has given to plugins. That one limits itself to 5 requests a second, and would
// make those who create many Sandboxes at a time wait for dry runs and quotas. What is too much is for kube-apiserver to say.
type clientInitializer struct {
	client kubernetes.Interface
}

func (i clientInitializer) Initialize(plugin admission.Interface) {
	if wants, ok := plugin.(initializer.WantsExternalKubeClientSet); ok {
		wants.SetExternalKubeClientSet(i.client)
	}
}

// quotaInitializer gives ResourceQuota a configuration without evaluators: every resource of ours can then be counted, as
// count/<resource>.<group>, and nothing more.
type quotaInitializer struct{}

func (quotaInitializer) Initialize(plugin admission.Interface) {
	if wants, ok := plugin.(initializer.WantsQuotaConfiguration); ok {
		wants.SetQuotaConfiguration(quotageneric.NewConfiguration(nil, nil))
	}
}
