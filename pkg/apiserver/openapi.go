// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	utilopenapi "k8s.io/apiserver/pkg/util/openapi"
	"k8s.io/kube-openapi/pkg/builder3"
	"k8s.io/kube-openapi/pkg/common"

	generatedopenapi "github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/openapi"
)

// setOpenAPI describes our API in both versions of OpenAPI: kubectl explain and apply read v3, older clients v2.
func setOpenAPI(config *genericapiserver.Config, scheme *runtime.Scheme, version string) {
	definitions := utilopenapi.GetOpenAPIDefinitionsWithoutDisabledFeatures(generatedopenapi.GetOpenAPIDefinitions)
	namer := openapi.NewDefinitionNamer(scheme)

	config.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(definitions, namer)
	config.OpenAPIConfig.Info.Title = "sandbox-apiserver"
	config.OpenAPIConfig.Info.Version = version

	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(definitions, namer)
	config.OpenAPIV3Config.Info.Title = "sandbox-apiserver"
	config.OpenAPIV3Config.Info.Version = version
}

// newTypeConverter returns what tracks field ownership for the named models. It fails if config does not describe one of them.
func newTypeConverter(config *common.OpenAPIV3Config, models ...string) (managedfields.TypeConverter, error) {
	schemas, err := builder3.BuildOpenAPIDefinitionsForResources(config, models...)
	if err != nil {
		return nil, fmt.Errorf("building the OpenAPI definitions of %v: %w", models, err)
	}
	converter, err := managedfields.NewTypeConverter(schemas, false)
	if err != nil {
		return nil, fmt.Errorf("building the type converter of %v: %w", models, err)
	}
	return converter, nil
}
