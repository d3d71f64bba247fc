// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"errors"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	apiregistrationclient "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"
	"k8s.io/utils/clock"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/servingcert"
)

// ServingCertOptions say whether the server keeps its own serving certificate, and where.
type ServingCertOptions struct {
	SecretName  string
	ServiceName string
}

// AddFlags adds the flags.
func (o *ServingCertOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.SecretName, "serving-cert-secret", o.SecretName,
		"Secret in --namespace in which the server keeps a serving certificate that it issues and renews itself, together with the caBundle of its "+
			"APIServices. Empty means that the certificate comes from --tls-cert-file.")
	fs.StringVar(&o.ServiceName, "serving-cert-service", o.ServiceName,
		"Service in --namespace that the certificate in --serving-cert-secret is for.")
}

// Enabled reports whether the server keeps its own certificate.
func (o *ServingCertOptions) Enabled() bool { return o.SecretName != "" }

// Validate returns what is wrong with the options, given the certificate that was named by file.
func (o *ServingCertOptions) Validate(file genericoptions.CertKey) []error {
	if !o.Enabled() {
		return nil
	}
	var errs []error
	if o.ServiceName == "" {
		errs = append(errs, errors.New("--serving-cert-secret needs --serving-cert-service"))
	}
	if file.CertFile != "" || file.KeyFile != "" {
		errs = append(errs, errors.New("--serving-cert-secret and --tls-cert-file exclude each other"))
	}
	return errs
}

// NewManager returns the keeper of the certificate. It fails if the Secret can be neither read nor made.
func (o *ServingCertOptions) NewManager(ctx context.Context, config *rest.Config, namespace string) (*servingcert.Manager, error) {
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	registration, err := apiregistrationclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	var apiServices []string
	for _, gv := range []schema.GroupVersion{agentsv1beta1.SchemeGroupVersion, extensionsv1beta1.SchemeGroupVersion} {
		apiServices = append(apiServices, gv.Version+"."+gv.Group)
	}
	host := o.ServiceName + "." + namespace + ".svc"
	return servingcert.New(ctx, servingcert.Config{
		Secret:      types.NamespacedName{Namespace: namespace, Name: o.SecretName},
		DNSNames:    []string{host, "localhost"},
		APIServices: apiServices,
	}, kube.CoreV1(), registration.ApiregistrationV1(), clock.RealClock{})
}
