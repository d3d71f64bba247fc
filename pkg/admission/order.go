// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package admission puts the admission chain together. kube-apiserver runs no admission for aggregated resources, so whatever a cluster's
// administrator expects of it (policies, webhooks, quota) must run here.
package admission

import (
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	quotageneric "k8s.io/apiserver/pkg/quota/v1/generic"
	genericoptions "k8s.io/apiserver/pkg/server/options"
)

// AddPlugins adds to the generic plugins those that this server runs besides. ResourceQuota comes last: what another plugin refuses
// must not be charged.
func AddPlugins(options *genericoptions.AdmissionOptions) {
	resourcequota.Register(options.Plugins)
	options.RecommendedPluginOrder = append(options.RecommendedPluginOrder, resourcequota.PluginName)
}

// Initializers returns what gives the added plugins their dependencies.
func Initializers() []admission.PluginInitializer {
	return []admission.PluginInitializer{quotaInitializer{}}
}

// quotaInitializer gives ResourceQuota a configuration without evaluators: every resource of ours can then be counted, as
// count/<resource>.<group>, and nothing more.
type quotaInitializer struct{}

func (quotaInitializer) Initialize(plugin admission.Interface) {
	if wants, ok := plugin.(initializer.WantsQuotaConfiguration); ok {
		wants.SetQuotaConfiguration(quotageneric.NewConfiguration(nil, nil))
	}
}
