// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// These say where kube-apiserver publishes the authority of its clients' certificates. The ConfigMap is the one from which
// k8s.io/apiserver takes that of the front proxy.
const (
	authenticationConfigMapName = "extension-apiserver-authentication"
	clientCAKey                 = "client-ca-file"
)

// followClientCA has the authority of clients' certificates taken from the main cluster, unless the options say otherwise, as
// k8s.io/apiserver would do without letting anybody see whether it has come. It returns the authority if it is to be waited for. Not
// every cluster has one; it fails if that cannot be found out.
func followClientCA(ctx context.Context, o *genericoptions.DelegatingAuthenticationOptions) (dynamiccertificates.CAContentProvider, error) {
	if o.ClientCert.ClientCA != "" || o.SkipInClusterLookup {
		return nil, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", o.RemoteKubeConfigFile)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig for authentication: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	authority, err := dynamiccertificates.NewDynamicCAFromConfigMapController("client-ca", metav1.NamespaceSystem, authenticationConfigMapName,
		clientCAKey, client)
	if err != nil {
		return nil, err
	}
	o.ClientCert.CAContentProvider = authority
	published, err := publishesClientCA(ctx, client)
	switch {
	case err != nil && !o.TolerateInClusterLookupFailure:
		return nil, err
	case err == nil && !published:
		return nil, nil
	}
	return authority, nil
}

// publishesClientCA reports whether the main cluster has, or may soon have, an authority of clients' certificates.
func publishesClientCA(ctx context.Context, client kubernetes.Interface) (bool, error) {
	configMap, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, authenticationConfigMapName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking up the certificate authority of clients: %w", err)
	}
	return configMap.Data[clientCAKey] != "", nil
}
