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
